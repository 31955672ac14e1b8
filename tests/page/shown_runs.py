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
from spanscore.page import render
from spanscore.page.runs import COLUMNS, IN_A_FILE, SCRIPTS, Batch, Room

START_NS = 1_790_000_000_000_000_000
EXPECTED = ("lookup_order", "check_policy", "issue_refund")


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


def data_of(reports: Iterable[Report], names: Sequence[str] | None = None, room: Room = IN_A_FILE) -> str:
    """Return the data of a page."""
    batch, count = Batch(room), 0
    for report in reports:
        batch.add(report)
        count += 1
    return f'{{"batches":[{batch.embedded(names or [f"run {number + 1}" for number in range(count)])}]}}'


def page_of(reports: Iterable[Report], names: Sequence[str] | None = None, **values: Any) -> str:
    """Return a page of runs."""
    told = {"verdict": "failed", "headline": "Failed", "sentence": "Some failed.", "reasons": [], "notes": []} | values
    return render("runs.html", data_of(reports, names), title="Runs", scripts=SCRIPTS, columns=COLUMNS, **told)


def embedded_in(html: str) -> Any:
    """Return the data that stands in a page."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)
