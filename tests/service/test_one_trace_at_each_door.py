"""Runs that pause and continue in the same trace, or fail for one reason, over each protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pytest

from one_trace import counted_reasons, counted_runs, paused_runs
from service.test_recordings_live import over_grpc, over_http, over_http_as_json
from serving import ON_ANY_PORT, Running, serving

NAME: Final = "strands-interrupt"
RULES: Final = """
traces: {decision_delay: 50ms}
evaluators: {order: {type: tool_policy, must_precede: [[lookup_order, issue_refund]], forbidden: [cancel_order]}}
"""


@pytest.mark.parametrize("send", [over_grpc, over_http, over_http_as_json])
def test_over_otlp(send: Callable[[Running, Sequence[bytes]], None]) -> None:
    """The pause has no verdict, the whole run has one, which is counted once."""
    (run,) = (run for run in paused_runs(NAME) if run.scenario == "approved")
    first, second = run.requests(NAME)
    with serving(f"{ON_ANY_PORT}{RULES}") as running:
        send(running, first)
        running.reports.wait_for(1)
        assert running.thread.call(lambda: running.service.engine.table.past.is_paused(bytes.fromhex(run.trace_id)))
        send(running, second)
        reports = running.reports.wait_for(2)
        page = running.page("/metrics")[1]

    assert [("none", 0, False), ("pass", 1, True)] == [(each.verdict, each.revision, each.complete) for each in reports]
    assert {"runs pass": 1, "runs_paused": 1, "runs_resumed": 1} == counted_runs(page)


@pytest.mark.parametrize("send", [over_grpc, over_http, over_http_as_json])
def test_reasons_over_otlp(send: Callable[[Running, Sequence[bytes]], None]) -> None:
    """Five runs that fail for one reason are counted, the fifth one with the reason."""
    (run,) = (run for run in paused_runs(NAME) if run.scenario == "approved")
    _, whole = run.requests(NAME)
    with serving(f"{ON_ANY_PORT}{RULES.replace('cancel_order', 'issue_refund')}") as running:
        for number in range(1, 6):
            send(running, [body.replace(run.trace_id.encode(), f"{number:032x}".encode()) for body in whole])
        running.reports.wait_for(5)
        page = running.page("/metrics")[1]

    assert {"_other": 4, "order: issue_refund breaks forbidden: issue_refund": 1} == counted_reasons(page)
    assert 5 == counted_runs(page)["runs fail"]
