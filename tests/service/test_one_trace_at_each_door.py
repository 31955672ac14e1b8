"""A run that pauses and continues in the same trace, over each protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pytest

from one_trace import counted_runs, paused_runs
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
