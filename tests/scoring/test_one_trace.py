"""A run that pauses and continues in the same trace: one verdict, counted once, however long the pause."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import pytest

import spanscore
from dialects.spans import built_in_reader, span
from one_trace import APPROVALS, PausedRun, paused_runs
from spanscore.collect.remembered import GivenUp, LateReason
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.contracts.instruments.instrument import EVALUATIONS, FAIL_REASONS, RUNS, RUNS_PAUSED, RUNS_RESUMED
from spanscore.metrics.measurements import measurements
from spanscore.model import Report, Span, Unit
from spanscore.scoring.engine import Engine
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.owner import Owner
from spanscore.scoring.pipeline import Pipeline
from traces import agent, asked, lasting, model, tool

HOUR: Final = 3600.0
RULES: Final[dict[str, dict[str, Any]]] = {
    "order": {"must_precede": [["lookup_order", "issue_refund"]]},
    "once": {"max_calls_per_tool": {"issue_refund": 1}},
}
NEVER: Final[dict[str, dict[str, Any]]] = {"never": {"forbidden": ["issue_refund"]}}
LANGGRAPH: Final = {run.scenario: run for run in paused_runs("langgraph-approval")}
APPROVED: Final = LANGGRAPH["interrupt-approved"]
OWN_WORDS: Final = {("langgraph-approval-before", "refused")}
"""Refusals in words of the person's own, which look like the result of the tool."""


class Live:
    """An engine with a clock of its own, the reports that it made, and what metrics count of them."""

    def __init__(self, rules: dict[str, dict[str, Any]] = RULES, unit: Unit = Unit.TRACE, **settings: Any) -> None:
        self.now = 0.0
        self.reports: list[Report] = []
        self.counted: Counter[tuple[str, str | None]] = Counter()
        table = TraceTable(TraceSettings(**settings), lambda span: not span.parent_span_id)
        entries = [entry(name, parameters) for name, parameters in rules.items()]
        self.engine = Engine(table, Pipeline(entries, built_in_reader(), unit), {"kept": self}, lambda: self.now)

    def emit(self, report: Report) -> None:
        """Keep it, and count its runs."""
        self.reports.append(report)
        for instrument, count, values in measurements(report):
            if instrument in {RUNS, RUNS_PAUSED, RUNS_RESUMED}:
                self.counted[instrument.name, values[0] if instrument is RUNS else None] += int(count)
            elif instrument is EVALUATIONS:
                self.counted[instrument.name, values[1]] += int(count)
            elif instrument is FAIL_REASONS:
                self.counted[instrument.name, values[0]] += int(count)

    def flush(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    close = flush

    def send(self, spans: list[Span], requests: int = 1, every_s: float = 5.0) -> None:
        """Send spans in so many requests, and let the engine look at the clock every second meanwhile."""
        for number in range(requests):
            self.engine.add(spans[number::requests])
            self.wait(every_s)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while self.now < until:
            due = self.engine.table.next_due()
            self.now = until if due is None else min(until, max(self.now, due))
            self.engine.expire()

    @property
    def verdicts(self) -> list[str]:
        """The verdicts, by revision."""
        return [report.verdict for report in self.reports]


def entry(name: str, parameters: dict[str, Any]) -> EvaluatorEntry:
    """Return a policy of tools as configured."""
    evaluator = spanscore.evaluator("tool_policy", parameters)
    return EvaluatorEntry(name=name, type="tool_policy", resolve=lambda _: evaluator)


@pytest.mark.parametrize("pause_s", [90.0, HOUR / 3, 23 * HOUR])
@pytest.mark.parametrize(
    ("rules", "verdict", "reasons"),
    [(RULES, "pass", ()), (NEVER, "fail", ("never: issue_refund breaks forbidden: issue_refund",))],
)
def test_one_verdict_counted_once(
    rules: dict[str, dict[str, Any]], verdict: str, reasons: Sequence[str], pause_s: float
) -> None:
    """The rest comes in ten requests, as agents send it: every five seconds, the root last."""
    live = Live(rules)
    live.send(APPROVED.first, every_s=pause_s)
    assert ["none"] == live.verdicts
    assert {(RUNS_PAUSED.name, None): 1} == live.counted
    live.send(APPROVED.second, requests=10)

    assert ["none", verdict] == live.verdicts
    assert {
        (RUNS_PAUSED.name, None): 1,
        (RUNS_RESUMED.name, None): 1,
        (RUNS.name, verdict): 1,
        (EVALUATIONS.name, verdict): len(rules),
        **{(FAIL_REASONS.name, reason): 1 for reason in reasons},
    } == live.counted
    final = live.reports[-1]
    assert (1, True) == (final.revision, final.complete)
    assert ["lookup_order", "issue_refund"] == [call.name for call in final.trajectory.calls]
    assert {LateReason.RESCORED: len(APPROVED.second)} == live.engine.counts().late
    assert {} == dict(live.engine.tallies.revised)


@pytest.mark.parametrize("name", APPROVALS)
def test_recorded_pauses(name: str) -> None:
    """Whatever the framework: the whole run keeps its rules, and the refund is in it if it was made."""
    for run in paused_runs(name):
        if (name, run.scenario) in OWN_WORDS:
            continue
        live = Live()
        live.send(run.first, every_s=12 * HOUR)
        live.send(run.second, every_s=60)

        if any(report.trajectory.completeness.paused for report in live.reports[:1]):
            assert 2 == len(live.reports), run.scenario
        assert "fail" not in live.verdicts, run.scenario


@pytest.mark.parametrize(("approved", "calls"), [(True, ("lookup_order", "issue_refund")), (False, ("lookup_order",))])
def test_mastra(*, approved: bool, calls: tuple[str, ...]) -> None:
    """Its run is suspended, and another run in the trace says whether the call was approved."""
    named = {"toolCallId": "c2", "toolName": "issue_refund"}
    first = [
        mastra(2, "model_step", output={"toolCalls": [{"toolCallId": "c1", "toolName": "lookup_order", "args": {}}]}),
        mastra(3, "tool_call", name="lookup_order", call_id="c1"),
        mastra(4, "model_step", output={"toolCalls": [{**named, "args": {}}]}),
        lasting(mastra(1, "agent_run", output={"status": "suspended", **named}, parent=0), 4),
    ]
    second = [
        *([mastra(6, "tool_call", name="issue_refund", call_id="c2", parent=5)] if approved else []),
        mastra(7, "model_step", output={"text": "done"}, parent=5),
        lasting(mastra(5, "agent_run", input={"approved": approved, **named}, output={"text": "done"}, parent=0), 9),
    ]
    live = Live()
    live.send(first, every_s=20 * HOUR)
    live.send(second, requests=len(second))

    assert [("none", ("issue_refund",)), ("pass", ())] == [
        (report.verdict, report.trajectory.completeness.paused) for report in live.reports
    ]
    assert calls == live.reports[-1].trajectory.names
    assert 1 == live.counted[RUNS.name, "pass"]


def mastra(number: int, kind: str, *, parent: int = 1, name: str = "", call_id: str = "", **content: Any) -> Span:
    """Return a span as Mastra writes it."""
    attributes = {f"mastra.{kind}.{key}": json.dumps(value) for key, value in content.items()}
    if name:
        attributes |= {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id, "gen_ai.tool.call.result": "{}"}
    return span(number, kind, {"mastra.span.type": kind, **attributes}, parent=parent)


def test_two_approvals_in_a_row() -> None:
    """Each pause is waited for anew; the run is counted when it has ended."""
    again, live = LANGGRAPH["parallel"], Live()
    for spans in (APPROVED.first, again.first, again.second):
        live.send([span._replace(trace_id=APPROVED.first[0].trace_id) for span in spans], every_s=20 * HOUR)

    assert ["none", "none", "pass"] == live.verdicts
    assert (1, 1, 1) == (
        live.counted[RUNS_PAUSED.name, None],
        live.counted[RUNS_RESUMED.name, None],
        live.counted[RUNS.name, "pass"],
    )


def test_late_spans_of_a_run_that_continued() -> None:
    """They make further revisions, which are counted from the pause on, and change a verdict that was counted."""
    (refund,) = (span for span in APPROVED.second if span.attributes.get("tool.name") == "issue_refund")
    late = [
        refund._replace(span_id=name.encode(), name=name, attributes={**refund.attributes, "tool.name": name})
        for name in ("send_msg", "cancel_1", "cancel_2")
    ]
    live = Live({"never": {"forbidden": ["cancel_*"]}}, max_revisions=2)
    live.send(APPROVED.first, every_s=HOUR)
    live.send(APPROVED.second, every_s=10)
    live.send(late, requests=3, every_s=10)

    assert ["none", "pass", "pass", "fail"] == live.verdicts
    assert {("pass", "fail"): 1} == dict(live.engine.tallies.revised)
    assert (1, 0) == (live.counted[RUNS.name, "pass"], live.counted[RUNS.name, "fail"])
    assert {LateReason.RESCORED: len(APPROVED.second) + 2, LateReason.NOT_KEPT: 1} == live.engine.counts().late


def test_runs_of_agents() -> None:
    """With unit `agent` the run that continues is one of its own, and counted, too."""
    (run,) = (each for each in paused_runs("strands-interrupt") if each.scenario == "approved")
    live = Live(NEVER, unit=Unit.AGENT)
    live.send(run.first, every_s=HOUR)
    live.send(run.second, every_s=60)

    assert ["none", "pass", "fail"] == live.verdicts
    assert {"pass": 1, "fail": 1} == {value: n for (name, value), n in live.counted.items() if name == RUNS.name}
    assert (1, 1) == (live.counted[RUNS_PAUSED.name, None], live.counted[RUNS_RESUMED.name, None])


def test_a_rest_without_a_root() -> None:
    """It is scored `trace_timeout` after its last span, and is whole: the root ended before the pause."""
    live = Live()
    live.send(APPROVED.first, every_s=HOUR)
    (first_root,) = (span.span_id for span in APPROVED.first if not span.parent_span_id)
    (root,) = (span.span_id for span in APPROVED.second if not span.parent_span_id)
    below = [span for span in APPROVED.second if span.span_id != root]
    live.send(
        [span._replace(parent_span_id=first_root) if span.parent_span_id == root else span for span in below],
        every_s=29,
    )
    assert ["none"] == live.verdicts
    live.wait(1)

    assert ["none", "pass"] == live.verdicts
    assert live.reports[-1].close_reason == "root_ended"


def test_a_failure_before_the_pause_is_counted_with_it() -> None:
    """The run that continues is no second failure, but it has continued."""
    live = Live({"lookups": {"forbidden": ["lookup_order"]}})
    live.send(APPROVED.first, every_s=HOUR)
    live.send(APPROVED.second, every_s=60)

    assert ["fail", "fail"] == live.verdicts
    assert (1, 1, 1, 1) == (
        live.counted[RUNS.name, "fail"],
        live.counted[FAIL_REASONS.name, "lookups: lookup_order breaks forbidden: lookup_order"],
        live.counted[RUNS_PAUSED.name, None],
        live.counted[RUNS_RESUMED.name, None],
    )


@pytest.mark.parametrize("answered", [True, False])
def test_a_run_that_blocks_while_a_person_thinks(*, answered: bool) -> None:
    """It writes nothing until the answer, so that its trace times out with an open root; it is scored when it ends."""
    spans = [
        model(2, asked("lookup_order", {}, "c1"), parent=1),
        tool(3, "lookup_order", {}, "c1", parent=1),
        model(4, asked("issue_refund", {}, "c2"), told={"c1": "A-1"}, parent=1),
    ]
    rest = [tool(5, "issue_refund", {}, "c2", parent=1), model(6, told={"c2": "done"}, parent=1), lasting(agent(1), 90)]
    live = Live()
    live.send(spans, every_s=10 * HOUR)
    live.send(rest if answered else [], every_s=60)

    assert ["none", "pass"][: 1 + answered] == live.verdicts
    assert (1, int(answered)) == (live.counted[RUNS_PAUSED.name, None], live.counted[RUNS.name, "pass"])


def test_after_the_wait() -> None:
    """Nothing more is said of the run; its rest is late, and the run that was given up is counted."""
    live = Live(pause_wait_s=2 * HOUR)
    live.send(APPROVED.first, every_s=2 * HOUR)
    live.send(APPROVED.second, every_s=60)

    assert ["none"] == live.verdicts
    assert {LateReason.NOT_KEPT: len(APPROVED.second)} == live.engine.counts().late
    assert ({GivenUp.EXPIRED: 1}, 0) == (live.engine.counts().given_up, live.engine.counts().held_bytes)


@pytest.mark.parametrize(("pause_s", "expected"), [(50.0, ["none", "pass"]), (90.0, ["none"])])
@pytest.mark.parametrize("settings", [{"pause_wait_s": 0.0}, {"late_spans": "ignore"}])
def test_switched_off(settings: dict[str, Any], pause_s: float, expected: list[str]) -> None:
    """Spans are kept as those of any closed trace: a minute, or not at all."""
    live = Live(**settings)
    live.send(APPROVED.first, every_s=pause_s)
    live.send(APPROVED.second, every_s=60)

    assert (expected if "pause_wait_s" in settings else ["none"]) == live.verdicts
    assert {} == live.engine.counts().given_up


def test_many_pauses() -> None:
    """All of them together take no more than `pause_bytes`; the ones that paused first are given up, and counted."""
    live = Live(pause_bytes=10_000, keep_closed_spans=20)
    for number in range(100):
        spans = [span._replace(trace_id=number.to_bytes(16, "big")) for span in APPROVED.first]
        live.engine.add(spans, [100] * len(spans))
        live.wait(10)
    held = [number for number in range(100) if live.engine.table.past.is_paused(number.to_bytes(16, "big"))]

    assert 8_000 <= live.engine.counts().held_bytes <= 10_000
    assert held == list(range(100 - len(held), 100))
    assert {GivenUp.NO_ROOM: 100 - len(held)} == live.engine.counts().given_up


def test_a_pause_that_gives_way_is_noted_at_once() -> None:
    """The owner releases the stored requests of the pause, although no further span comes."""
    live = Live(pause_bytes=10_000, keep_closed_spans=20)
    noted: list[bytes] = []
    live.engine.queue.owner = Owner(gave_up=noted.append)
    number = 0
    while not live.engine.counts().given_up:
        number += 1
        spans = [span._replace(trace_id=number.to_bytes(16, "big")) for span in APPROVED.first]
        live.engine.take(spans, [100] * len(spans))
        live.now += 10
        while not live.engine.work(math.inf):
            pass

    assert [(1).to_bytes(16, "big")] == noted


def test_other_traces_are_held_as_before() -> None:
    """A run that does not pause is kept for a minute, and takes none of the room of those that do."""
    live = Live()
    whole: PausedRun = LANGGRAPH["interrupt-approved"]
    live.send(whole.second, every_s=10)
    assert not live.engine.table.past.is_paused(whole.second[0].trace_id)
    assert len(whole.second) == live.engine.counts().held_spans
    live.wait(60)
    live.send([], every_s=1)

    assert (0, 0) == (live.engine.counts().held_spans, live.engine.counts().held_bytes)
