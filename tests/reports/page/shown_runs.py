"""Runs of a refund agent, scored by real evaluators, and pages of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spanscore.compare.expected import ReferenceCall
from spanscore.evaluators.tool_call_trajectory import ToolCallTrajectory
from spanscore.evaluators.trajectory_match import TrajectoryMatch
from spanscore.model import CloseReason, Evaluation, Report, Trajectory
from spanscore.reports.page.page_data import IN_A_FILE, PageBudget, RunBatch, reasons_data, runs_page
from spanscore.reports.reason_table import ReasonTable

START_NS = 1_790_000_000_000_000_000
EXPECTED = ("lookup_order", "check_policy", "issue_refund")
NAMES = ("fine", "skips", "retries")
"""Of the runs of `some_runs`."""


def report_of(
    number: int, *calls: str | Mapping[str, Any], agent: str = "refund-agent", content: bool = True
) -> Report:
    """Return the report of one run, whose calls last 10 ms each, one after the other."""
    told = [{"name": call, "arguments": {}, "result": "ok"} if isinstance(call, str) else call for call in calls]
    made = Trajectory.from_calls(told).calls
    timed = tuple(
        replace(
            call,
            span_id=(index + 2).to_bytes(8),
            start_ns=START_NS + number * 10**9 + index * 10**7,
            end_ns=START_NS + number * 10**9 + (index + 1) * 10**7,
        )
        for index, call in enumerate(made)
    )
    trajectory = Trajectory(
        calls=timed,
        trace_id=number.to_bytes(16),
        root_span_id=(1).to_bytes(8),
        service="shop",
        agent=agent,
        start_ns=START_NS + number * 10**9,
        end_ns=START_NS + number * 10**9 + max(1, len(timed)) * 10**7,
    )
    golden = TrajectoryMatch(
        reference=tuple(ReferenceCall(name=name) for name in EXPECTED), arguments="ignore", scoring="f1"
    )
    evaluators = {"health": ToolCallTrajectory(), "golden": golden}
    return Report(
        trajectory=trajectory,
        evaluations=tuple(
            Evaluation(name=name, type=type(each).__name__, outcome=each.evaluate(trajectory))
            for name, each in evaluators.items()
        ),
        close_reason=CloseReason.ROOT_ENDED,
        tool_content=content,
    )


def batch_of(reports: Iterable[Report], names: Sequence[str] | None = None, room: PageBudget = IN_A_FILE) -> str:
    """Return runs as the data of a page has them."""
    batch, count = RunBatch(room), 0
    for report in reports:
        batch.add(report)
        count += 1
    return batch.embedded(names or [f"run {number + 1}" for number in range(count)])


def page_of(
    reports: Iterable[Report], names: Sequence[str] | None = None, data: Mapping[str, Any] | None = None, **values: Any
) -> str:
    """Return a page of runs, with the table of their reasons."""
    reports, table = list(reports), ReasonTable()
    for report in reports:
        table.add(report)
    told = {"title": "Runs", "verdict": "failed", "headline": "Failed", "sentence": "Some failed."}
    why = {"why": reasons_data(table.rows())}
    return runs_page(
        [batch_of(reports, names)], {**why, **(data or {})}, **{**told, "reasons": [], "notes": [], **values}
    )


def embedded_in(html: str) -> Any:
    """Return the data that stands in a page."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def some_runs() -> list[Report]:
    """Return three runs: one passed, one skipped a step, one had a call that failed."""
    failing = {"name": "check_policy", "arguments": {"order": "A-1"}, "error": "TimeoutError: slow"}
    return [
        report_of(1, *EXPECTED),
        report_of(2, "lookup_order", {"name": "issue_refund", "arguments": {"amount": 400}}, agent="trainee"),
        report_of(3, "lookup_order", failing, "check_policy", "issue_refund"),
    ]
