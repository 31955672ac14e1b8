"""What tools returned is kept only where something looks at it, and nothing else is lost by that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from receivers.otlp_requests import (
    request_of,
    simple_span,
    texts,
    trace_id,
)
from serving import ON_ANY_PORT, Reports, Running, Sparing, serving
from spanscore import config
from spanscore.model import Score, Skipped

OPEN: Final = "traces: {decision_delay: 1h}"
SPARING: Final = "evaluators: {it: {type: tool_call_count, tool_calls_count: {lookup: 1}}}"
LOOKING: Final = (
    "evaluators: {it: {type: tool_call_output, tool_outputs: [{name: lookup, output: {found: {$any: true}}}]}}"
)
RESULT: Final = json.dumps({"found": "x" * 10_000})


def called(trace: int) -> bytes:
    """Return a request with a call of a tool that returned much, below a root that did not come yet."""
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.result": RESULT}
    call = simple_span(trace, 2, parent_span_id=bytes(7) + b"\1", attributes=texts(told))
    return request_of(call).SerializeToString()


def ended(trace: int) -> bytes:
    """Return a request with its root."""
    return request_of(simple_span(trace)).SerializeToString()


def held(running: Running) -> int:
    """Return what open traces hold, in bytes."""
    return running.thread.call(lambda: running.service.engine.counts().held_bytes)


@pytest.mark.parametrize(
    ("configuration", "emitter", "is_looked_at"),
    [
        (SPARING, Sparing, False),
        (LOOKING, Sparing, True),
        (f"{SPARING}\ntool_content: true", Sparing, True),
        (SPARING, Reports, True),
    ],
    ids=["by nobody", "by an evaluator", "where content is shown", "by an emitter that does not say"],
)
def test_open_traces_hold_results_where_they_are_looked_at(
    configuration: str,
    emitter: type[Reports],
    is_looked_at: bool,  # noqa: FBT001 - a parameter
) -> None:
    """Else they are let go of when they arrive."""
    with serving(f"{ON_ANY_PORT}\n{OPEN}\n{configuration}", emitter()) as running:
        running.post(called(1))
        assert (held(running) > len(RESULT)) == is_looked_at


def test_lines_of_json_have_results(tmp_path: Path) -> None:
    """Whatever evaluators look at: they are a record of the calls."""
    lines = tmp_path / "scores.jsonl"
    exporting = ON_ANY_PORT.replace("exporters: {", f'exporters: {{jsonl: {{path: "{lines}"}}, ')
    with serving(f"{exporting}\n{OPEN}\n{SPARING}", Sparing()) as running:
        running.post(called(1))
        running.post(ended(1))
        running.stop()
    (call,) = json.loads(lines.read_text())["tool_calls"]
    assert call["result"] == json.loads(RESULT)


def test_a_reload_that_looks_at_results_has_those_that_come_from_then_on() -> None:
    """And says of the others that they are not there."""
    with serving(f"{ON_ANY_PORT}\n{OPEN}\n{SPARING}", Sparing()) as running:
        running.post(called(1))
        loaded = config.loads(f"{ON_ANY_PORT}\n{OPEN}\n{LOOKING}", "", Path()).for_serve()
        running.thread.call(lambda: running.service.reload(loaded))
        running.post(called(2))
        for trace in (1, 2):
            running.post(ended(trace))
        running.stop()
        outcomes = {report.trajectory.trace_id: report.evaluations[0].outcome for report in running.reports.emitted}
    assert outcomes[trace_id(1)] == Skipped("results of 1 call of 'lookup' were not recorded")
    found = outcomes[trace_id(2)]
    assert isinstance(found, Score)
    assert found.passed
