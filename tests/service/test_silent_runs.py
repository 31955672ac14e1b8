"""Runs whose spans do not say what tools did are skipped through every door, and plain runs are not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otlp.log_requests import pairs
from receivers.otlp_requests import request_of, simple_span, span_id, to_json
from service.test_recordings_live import over_grpc, over_http, over_http_as_json
from serving import ON_ANY_PORT, Running, Sparing, serving
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import Report, Skipped
from spanscore.recordings.files import Recording
from spanscore.runs import offline

RESULT = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "booked"}]}]
OUTPUT = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "final_result"}]}]


def chat(trace: int, number: int, **held: Any) -> Span:
    """Return a request to a model below the run of the agent."""
    attributes = {
        "gen_ai.operation.name": "chat",
        **{f"gen_ai.{key.replace('__', '.')}": each for key, each in held.items()},
    }
    return simple_span(trace, number, parent_span_id=span_id(1), name="chat", attributes=pairs(attributes))


def run_of(trace: int, *requests: Span) -> list[Span]:
    """Return the spans of a run, its root last."""
    attributes = pairs({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"})
    return [*requests, simple_span(trace, 1, name="invoke_agent planner", attributes=attributes)]


def requests() -> list[ExportTraceServiceRequest]:
    """Return runs without a call: two whose models asked for tools, one with structured output, and a plain one."""
    runs = [
        run_of(1, chat(1, 2, response__finish_reasons=["tool_calls"])),
        run_of(2, chat(2, 2, response__finish_reasons=["stop"]), chat(2, 3, input__messages=json.dumps(RESULT))),
        run_of(3, chat(3, 2, output__messages=json.dumps(OUTPUT), response__finish_reasons=["tool_call"])),
        run_of(4, chat(4, 2, response__finish_reasons=["stop"])),
    ]
    made = [request_of(*spans) for spans in runs]
    made[2].resource_spans[0].scope_spans[0].scope.name = "pydantic-ai"
    return made


def skipped(reports: Sequence[Report]) -> dict[int, str | None]:
    """Return by number of the run why it was skipped, if it was."""
    found: dict[int, str | None] = {}
    for report in reports:
        (evaluation,) = report.evaluations
        reason = evaluation.outcome.reason if isinstance(evaluation.outcome, Skipped) else None
        found[int.from_bytes(report.trajectory.trace_id, "big")] = reason and reason.partition(",")[0]
    return found


WHY = "no span or log of it says what tools did"
EXPECTED = {1: WHY, 2: WHY, 3: None, 4: None}


@pytest.mark.parametrize("send", [over_grpc, over_http, over_http_as_json])
def test_live(send: Callable[[Running, Sequence[bytes]], None]) -> None:
    """Over each protocol, where results are not kept as well."""
    reports = Sparing()
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 1h}}", reports) as running:
        send(running, [to_json(each) for each in requests()])
        running.stop()

    assert EXPECTED == skipped(reports.emitted)


def test_offline(tmp_path: Path) -> None:
    """As in a file."""
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"\n".join(to_json(each) for each in requests()))
    settings = config.default().for_files()

    assert EXPECTED == skipped([*offline.score(Recording([path]), settings, wiring.pipeline(settings))])
