"""Conversations in an engine: what is emitted of them, and when."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.config import loads
from spanscore.config import parts as wiring
from spanscore.metrics.measurements import measurements
from spanscore.model import FinishReason, Outcome, Report, Score, Span, Unit
from spanscore.scoring.engine import Engine
from spanscore.scoring.pipeline import Pipeline
from traces import agent, having, tool

CONFIG: Final = """
conversations: {idle: 10s}
evaluators:
  health: {type: tool_call_trajectory}
  once: {type: tool_policy, over: conversation, max_calls_per_tool: {refund: 1}}
  order: {type: tool_policy, over: conversation, must_precede: [[look, refund]]}
"""


class Emitted:
    """An emitter that keeps reports."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    def emit(self, report: Report) -> None:
        """Keep it."""
        self.reports.append(report)

    def flush(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    close = flush

    def conversations(self) -> list[Report]:
        """Take the reports of conversations."""
        found = [each for each in self.reports if each.conversation is not None]
        self.reports = [each for each in self.reports if each.conversation is None]
        return found


class Clocked:
    """An engine on a clock that tests set."""

    def __init__(self, text: str = CONFIG, pipeline: Pipeline | None = None, **settings: Any) -> None:
        self.now = 0.0
        self.emitted = Emitted()
        config = loads(text, "c.yaml", Path())
        pipeline = pipeline or wiring.pipeline(config)
        assert config.conversations is not None
        config = replace(config, conversations=replace(config.conversations, **settings))
        self.engine = Engine(
            TraceTable(
                TraceSettings(decision_delay_s=0.0, unit=config.traces.unit), lambda each: not each.parent_span_id
            ),
            pipeline,
            {"emitted": self.emitted},
            lambda: self.now,
            conversations=wiring.conversations(config, pipeline),
        )

    def add(self, number: int, *tools: str, of: str = "c") -> list[Report]:
        """Have a trace be received, and return what is told of conversations."""
        self.engine.add(trace(number, *tools, of=of))
        return self.emitted.conversations()


def trace(number: int, *tools: str, of: str = "c") -> list[Span]:
    """Return the spans of a turn; they start after those of turns with lower numbers."""
    root = having(agent(1), {"gen_ai.conversation.id": of, "user.tier": "gold"})
    spans = [*(tool(place, name, {"id": "A-1"}, parent=1) for place, name in enumerate(tools, 2)), root]
    return [
        each._replace(
            trace_id=number.to_bytes(16, "big"),
            start_ns=each.start_ns + number * 10**9,
            end_ns=each.end_ns + number * 10**9,
            resource={"service.name": "shop"},
        )
        for each in spans
    ]


def names(reports: list[Report]) -> list[list[tuple[str, str | None]]]:
    """Return the evaluations of each report, with their labels."""
    return [[(each.name, each.label) for each in report.evaluations] for report in reports]


def counted(reports: list[Report]) -> Iterator[tuple[str, float, Any]]:
    """Yield the measurements of reports."""
    for report in reports:
        yield from ((instrument.name, value, values) for instrument, value, values in measurements(report))


def test_a_double_refund_over_two_turns_fails_at_its_turn() -> None:
    """It is told once, and again at the end, with the rest; only the end is counted."""
    clocked = Clocked()
    first = clocked.add(1, "look", "refund")
    second = clocked.add(2, "refund")
    third = clocked.add(3, "look")
    clocked.now = 10.0
    clocked.engine.expire()
    last = clocked.emitted.conversations()

    assert [[], [[("once", "fail")]], [], [[("once", "fail"), ("order", "pass")]]] == [
        names(each) for each in (first, second, third, last)
    ]
    assert [] == list(counted(second))
    assert [
        ("spanscore.evaluations", 1, ("once", "fail", "planner", "shop", "conversation")),
        ("gen_ai.evaluation.score", 0.0, ("once", "planner", "shop", "conversation")),
        ("spanscore.evaluations", 1, ("order", "pass", "planner", "shop", "conversation")),
        ("gen_ai.evaluation.score", 1.0, ("order", "planner", "shop", "conversation")),
    ] == list(counted(last))
    assert clocked.engine.conversations is not None
    assert {"fail": 1} == clocked.engine.conversations.counts().verdicts
    assert (Unit.CONVERSATION, 3, 3, FinishReason.IDLE) == (
        last[0].trajectory.unit,
        last[0].revision,
        len(last[0].conversation.turns) if last[0].conversation else 0,
        last[0].conversation and last[0].conversation.finished,
    )


def test_runs_are_reported_as_without_conversations() -> None:
    """With the evaluators over runs."""
    clocked = Clocked()
    clocked.add(1, "look", "refund")

    assert [[("health", "pass")]] == names(clocked.emitted.reports)
    assert [("health", "planner", "shop")] == [
        values for name, _, values in counted(clocked.emitted.reports) if name == "gen_ai.evaluation.score"
    ]


def test_a_good_second_turn_passes() -> None:
    """The rule that the second trace alone would break is kept in the first one."""
    clocked = Clocked()
    assert [] == clocked.add(1, "look")
    assert [] == clocked.add(2, "refund")
    clocked.engine.finish_conversations(1.0)

    assert [[("once", "pass"), ("order", "pass")]] == names(clocked.emitted.conversations())


def test_a_turn_that_came_late_takes_a_failure_back() -> None:
    """Nothing but the next revision says so."""
    text = """
        conversations: {}
        evaluators:
          again: {type: tool_loops, over: conversation, identical: 2, results: any, adjacent: true, cycle: null}
    """
    clocked = Clocked(text)
    clocked.add(1, "refund")
    assert [[("again", "fail")]] == names(clocked.add(3, "refund"))
    assert [] == clocked.add(2, "look")
    clocked.engine.finish_conversations(1.0)

    assert [[("again", "pass")]] == names(clocked.emitted.conversations())


def test_late_spans_revise_a_turn() -> None:
    """A call that came late is in the conversation; the conversation gets another revision."""
    clocked = Clocked()
    spans = trace(1, "look", "refund", "refund")
    clocked.engine.add([each for each in spans if each.span_id[-1] != 4])
    assert [] == clocked.emitted.conversations()
    clocked.engine.add(spans)
    clocked.now = 5.0
    clocked.engine.expire()

    (told,) = clocked.emitted.conversations()
    assert (["look", "refund", "refund"], 2) == ([*told.trajectory.names], told.revision)


@pytest.mark.parametrize("unit", ["trace", "agent"])
def test_a_turn_is_a_whole_trace(unit: str) -> None:
    """Whatever is a run."""
    clocked = Clocked(f"{CONFIG}\ntraces: {{unit: {unit}}}")
    sub = agent(2, "helper", parent=1)
    spans = [*trace(1, "look"), tool(5, "refund", {}, parent=4), sub._replace(span_id=bytes(7) + b"\4")]
    root = spans[1]
    clocked.engine.add(
        [each._replace(trace_id=root.trace_id, resource=root.resource) for each in (*spans[2:], *spans[:2])]
    )
    clocked.engine.finish_conversations(1.0)
    *_, told = clocked.emitted.conversations()

    assert {"look", "refund"} == {*told.trajectory.names}
    assert ("once", "pass") in names([told])[0]


@pytest.mark.parametrize(("has_root_an_id", "expected"), [(True, "root"), (False, "1")])
def test_a_trace_with_many_ids(expected: str, *, has_root_an_id: bool) -> None:
    """It is a turn of one conversation: that of its root, else that which is named first."""
    clocked = Clocked()
    *_, root = trace(1, of="root")
    others = [
        having(tool(number, "look", {}, parent=1), {"gen_ai.conversation.id": str(number)})._replace(
            trace_id=root.trace_id, resource=root.resource, start_ns=root.start_ns + number
        )
        for number in range(2, 2_000)
    ]
    others[0] = having(others[0], {"gen_ai.conversation.id": "1"})
    root = root if has_root_an_id else root._replace(attributes={"gen_ai.operation.name": "invoke_agent"})
    clocked.engine.add([*others, root])
    assert clocked.engine.conversations is not None
    counts = clocked.engine.conversations.counts()
    clocked.engine.finish_conversations(1.0)
    *_, told = clocked.emitted.conversations()

    assert (1, 1, 1) == (counts.received, counts.ambiguous, counts.open)
    assert expected == told.trajectory.conversation_id


def test_traces_of_others_are_no_turns() -> None:
    """Though they may have the id of a session."""
    clocked = Clocked()
    root = having(agent(1), {})._replace(name="GET /", attributes={"session.id": "c"})
    clocked.engine.add([root])
    assert clocked.engine.conversations is not None
    assert 0 == clocked.engine.conversations.counts().received


def test_work_finishes_one_at_a_time() -> None:
    """Between two, a receiver does other things."""
    clocked = Clocked()
    for number in range(3):
        clocked.add(number + 1, "look", of=str(number))
    clocked.now = 20.0
    assert 10.0 == clocked.engine.next_due()
    steps = 1
    while not clocked.engine.work(until=0.0):
        steps += 1

    assert 3 == len(clocked.emitted.conversations())
    assert steps > 3
    assert clocked.engine.next_due() is None


@pytest.mark.parametrize("turns", [1, 11])
def test_a_conversation_is_scored_in_steps(turns: int) -> None:
    """Between two of its turns, a receiver does other things."""
    clocked = Clocked()
    for number in range(turns):
        clocked.add(number + 1, "look")
    clocked.now = 2_000.0
    steps = 1
    while not clocked.engine.work(until=0.0):
        steps += 1

    assert steps > turns + 3


def test_closing_finishes_all() -> None:
    """Also the conversations of traces that were still to be scored."""
    clocked = Clocked()
    clocked.engine.take(trace(1, "look", "refund"), [1] * 3)
    clocked.engine.close_due()
    clocked.engine.cut_short()
    assert clocked.engine.close(1.0)
    (told,) = clocked.emitted.conversations()

    assert told.conversation is not None
    assert FinishReason.SHUTDOWN is told.conversation.finished


def test_answers_from_elsewhere() -> None:
    """The news of a revision is told when it is answered, compared with the revision before."""
    config = loads(CONFIG, "c.yaml", Path())
    entry = next(each for each in wiring.pipeline(config).over_conversations if each.name == "once")
    answers: list[Future[Outcome]] = []

    def ask(*_: object) -> Future[Outcome]:
        answers.append(Future())
        return answers[-1]

    pipeline = Pipeline([replace(entry, elsewhere=ask)], wiring.pipeline(config).reader)
    clocked = Clocked(pipeline=pipeline)
    clocked.add(1, "look")
    clocked.add(2, "look")
    failed = Score(0.0, passed=False, explanation="no")
    final = replace(failed, mended_by=type(failed.mended_by)(0))
    assert [] == clocked.emitted.conversations()
    for answer in answers:
        answer.set_result(final)
    clocked.engine.queue.settle()

    assert [[("once", "fail")]] == names(clocked.emitted.conversations())


def test_a_turn_that_cannot_be_kept(caplog: pytest.LogCaptureFixture) -> None:
    """The run is scored all the same, and the fault is logged."""
    clocked = Clocked()

    class Broken(Pipeline):
        def turn(self, *_: object) -> None:
            message = "broken"
            raise KeyError(message)

    clocked.engine.queue.pipeline = Broken([], clocked.engine.queue.pipeline.reader)
    clocked.add(1, "look")

    assert 1 == len(clocked.emitted.reports)
    assert "a trace could not be taken as a turn of its conversation: KeyError" in caplog.text


def test_a_constant_key_is_logged_once_a_service(caplog: pytest.LogCaptureFixture) -> None:
    """It is probably none that tells users apart."""
    clocked = Clocked(max_turns=3)
    for number in range(10):
        clocked.add(number + 1, "look")

    assert 1 == caplog.text.count("conversations.key")
    assert "a conversation of the service shop is finished at the limit of turns: 3 turns" in caplog.text


def test_a_reload_goes_on_with_the_new_evaluators() -> None:
    """For conversations that are open, too."""
    clocked = Clocked()
    clocked.add(1, "look")
    new = wiring.pipeline(
        loads(
            "conversations: {}\nevaluators: {no: {type: tool_policy, over: conversation, forbidden: [look]}}",
            "c",
            Path(),
        )
    )
    clocked.engine.reload(new, lambda each: not each.parent_span_id)

    assert [[("no", "fail")]] == names(clocked.add(2, "refund"))
