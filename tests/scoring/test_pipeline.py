"""The pipeline: which evaluators run on a trajectory, and what their failures do to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialects.spans import built_in_reader, exception
from spanscore.config import loads
from spanscore.config import parts as wiring
from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.metrics.measurements import measurements
from spanscore.model import (
    CloseReason,
    Failed,
    Outcome,
    Score,
    Skipped,
    Span,
    Trace,
    Trajectory,
    Unit,
)
from spanscore.model.outcomes import MendedBy
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.reader import DialectReader
from traces import agent, asked, lasting, model, tool

TRACE_ID = bytes(range(16))
ROOT = Span(TRACE_ID, b"root----", b"", "run", 1, 9, attributes={"team": "support"})
CALLS = tuple(
    Span(TRACE_ID, f"call---{index}".encode(), b"root----", name, 2 + index, 3 + index, attributes={"tool": name})
    for index, name in enumerate(["search", "book"])
)


class EveryToolSpan:
    """Spans with the attribute `tool`."""

    precedence = Precedence.CUSTOM
    markers = Markers(attributes=frozenset({"tool"}))
    reads = frozenset[str]()

    def read(self, span: Span) -> Reading | None:
        """Read the tool's name."""
        return Reading(call=CallReading(name=str(span.attributes["tool"]), arguments={}))

    def read_model(self, span: Span) -> ModelReading | None:
        """Read nothing."""
        return None


class Answers:
    """An evaluator that answers what it was given, or raises it."""

    expectation = None

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Answer."""
        answer = self.answer(trajectory) if callable(self.answer) else self.answer
        if isinstance(answer, BaseException):
            raise answer
        return answer


def entry(answer: Any, name: str = "one", **settings: Any) -> EvaluatorEntry:
    """Return an entry whose evaluator gives an answer."""
    return EvaluatorEntry(name=name, type="test", resolve=lambda _: Answers(answer), **settings)


def outcomes(*entries: EvaluatorEntry, trace_id: bytes = TRACE_ID) -> dict[str, Outcome]:
    """Return what each entry says of a trace with two calls."""
    spans = tuple(span._replace(trace_id=trace_id) for span in (ROOT, *CALLS))
    pipeline = Pipeline(entries, DialectReader([EveryToolSpan()]))
    (report,) = pipeline.run(Trace(trace_id=trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED))
    return {evaluation.name: evaluation.outcome for evaluation in report.evaluations}


PASS = Score(1.0, passed=True)


def test_every_entry_is_evaluated_in_order() -> None:
    """A report holds one evaluation for each entry, in the order of the configuration."""
    assert [("b", PASS), ("a", Skipped("x"))] == list(outcomes(entry(PASS, "b"), entry(Skipped("x"), "a")).items())


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), RecursionError("deep"), MemoryError()])
def test_a_raising_evaluator_fails_alone(error: BaseException) -> None:
    """An evaluator that raises is reported as failed with the error's type; the next is not affected."""
    found = outcomes(entry(error, "bad"), entry(PASS, "good"))

    assert {"bad": Failed(type(error).__name__, str(error)), "good": PASS} == found


def test_a_resolver_that_raises_fails_alone() -> None:
    """An expectation that cannot be resolved is the evaluation's failure, not the trace's."""

    def broken(_: Trajectory) -> Any:
        raise KeyError("row")

    bad = EvaluatorEntry(name="bad", type="test", resolve=broken)

    assert {"bad": Failed("KeyError", "'row'"), "good": PASS} == outcomes(bad, entry(PASS, "good"))


@pytest.mark.parametrize(
    ("refused", "dropped", "reason"),
    [
        (2, 0, "a span of this run was refused"),
        (2, 1, "a span of this run was dropped: the queue of the agent's process was full"),
    ],
)
def test_a_run_that_lacks_a_span_does_not_pass_and_says_why(refused: int, dropped: int, reason: str) -> None:
    """A failure that no further call could mend stays."""
    failed = Score(0.0, passed=False, mended_by=MendedBy.NOTHING)
    pipeline = Pipeline([entry(PASS, "a"), entry(failed, "b")], DialectReader([EveryToolSpan()]))
    (report,) = pipeline.run(
        Trace(
            trace_id=TRACE_ID,
            spans=(ROOT, *CALLS),
            close_reason=CloseReason.ROOT_ENDED,
            refused=refused,
            dropped=dropped,
        )
    )

    assert [Skipped(reason), failed] == [each.outcome for each in report.evaluations]
    assert not report.complete


def lasting_failure(mended_by: MendedBy) -> Score:
    """Return a failure that only calls at some places could mend."""
    return Score(0.0, passed=False, mended_by=mended_by)


def test_what_a_run_that_pauses_may_say() -> None:
    """A failure that no later call could mend; all else is skipped, passes too."""
    final = [lasting_failure(MendedBy.NOTHING), lasting_failure(MendedBy.EARLIER | MendedBy.BETWEEN)]
    answers = [*final, lasting_failure(MendedBy.LATER), PASS]
    pipeline = Pipeline([entry(each, str(number)) for number, each in enumerate(answers)], built_in_reader())
    waits = tool(3, "issue_refund", {}, "c2", parent=1, events=(exception("langgraph.errors.GraphInterrupt", "()"),))
    spans = (lasting(agent(1), 90), model(2, asked("issue_refund", {}, "c2"), parent=1), waits)
    (report,) = pipeline.run(Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED))

    assert [*final, *[Skipped("the run pauses for issue_refund")] * 2] == [each.outcome for each in report.evaluations]
    assert ("fail", False, "pauses for issue_refund") == (report.verdict, report.complete, report.incomplete)


def test_what_a_run_that_continues_may_say() -> None:
    """All but a failure that earlier calls could mend."""
    others = [lasting_failure(MendedBy.LATER), PASS]
    answers = [*others, lasting_failure(MendedBy.EARLIER)]
    pipeline = Pipeline([entry(each, str(number)) for number, each in enumerate(answers)], built_in_reader())
    spans = (lasting(agent(1), 90), tool(2, "issue_refund", {}, "c2", parent=1), model(3, parent=1))
    (report,) = pipeline.run(Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED))

    assert [*others, Skipped("the run continues after a pause, and its earlier calls are in another trace")] == [
        each.outcome for each in report.evaluations
    ]
    assert (False, "continues after a pause") == (report.complete, report.incomplete)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1, 1.1, True, "1", None, 1e308])
def test_what_is_no_score_is_never_exported_as_one(value: Any) -> None:
    """A value that is not a finite number from 0 to 1 makes the evaluation fail."""
    found = outcomes(entry(Score(value, passed=True)))["one"]

    assert isinstance(found, Failed)
    assert "InvalidResult" == found.error_type


def test_an_answer_of_another_type_fails() -> None:
    """An evaluator that answers a bare number is told what it may answer."""
    expected = Failed("InvalidResult", "an evaluator answers Score, Skipped or Failed, not 'float'")

    assert {"one": expected} == outcomes(entry(0.5))


def test_an_entry_that_does_not_match_is_left_out() -> None:
    """`match` looks at the attributes of the root span; what does not match has no evaluation at all."""
    support = entry(PASS, "support", matches=lambda attributes: attributes.get("team") == "support")
    sales = entry(PASS, "sales", matches=lambda attributes: attributes.get("team") == "sales")

    assert {"support": PASS} == outcomes(support, sales)


def test_ignored_tools_are_not_seen() -> None:
    """`ignores` drops calls before the evaluator sees the trajectory."""

    def names(trajectory: Trajectory) -> Outcome:
        return Skipped(", ".join(call.name for call in trajectory.calls))

    assert {"one": Skipped("search")} == outcomes(entry(names, ignores=lambda name: name == "book"))


def test_sampling_is_by_trace_id_and_its_ratio() -> None:
    """A ratio of a quarter takes about a quarter of all traces, and the same ones every time."""
    ids = [
        index.to_bytes(9, "big") + (index * 0x9E3779B97F4A7C15 % 2**56).to_bytes(7, "big") for index in range(1, 2001)
    ]
    quarter = entry(PASS, sample_ratio=0.25)
    sampled = [trace_id for trace_id in ids if quarter.applies_to(Trajectory(calls=(), trace_id=trace_id))]

    assert 450 < len(sampled) < 550
    assert {} == outcomes(entry(PASS, sample_ratio=0.0))
    assert {"one": PASS} == outcomes(entry(PASS, sample_ratio=1.0))


def test_the_report_carries_how_the_trace_closed() -> None:
    """Close reason and revision of the trace stand in every report."""
    trace = Trace(trace_id=TRACE_ID, spans=CALLS, close_reason=CloseReason.TIMED_OUT, revision=2)
    (report,) = Pipeline([], DialectReader([EveryToolSpan()]), Unit.AGENT).run(trace)

    assert (CloseReason.TIMED_OUT, 2, False) == (report.close_reason, report.revision, report.complete)
    assert 2 == len(report.trajectory.calls)


def test_a_trace_on_which_a_dialect_raised_is_not_scored() -> None:
    """What the other dialects read is there, but cannot be relied on: evaluators skip, and say why. It is counted."""

    class Broken(EveryToolSpan):
        def read(self, span: Span) -> Reading | None:
            raise ZeroDivisionError

    reader = DialectReader([Broken(), EveryToolSpan()])
    trace = Trace(trace_id=TRACE_ID, spans=(ROOT, *CALLS), close_reason=CloseReason.ROOT_ENDED)
    (report,) = Pipeline([entry(PASS)], reader).run(trace)

    assert ["search", "book"] == [call.name for call in report.trajectory.calls]
    reason = "dialect 'Broken' failed (ZeroDivisionError, 2x): calls may be missing or misread"
    assert [Skipped(reason)] == [evaluation.outcome for evaluation in report.evaluations]
    assert {("Broken", "ZeroDivisionError"): 2} == dict(reader.failures)

    again = Trace(trace_id=TRACE_ID, spans=(ROOT,), close_reason=CloseReason.ROOT_ENDED)
    assert Skipped("no span of a known instrumentation; scopes seen: none") == (
        Pipeline([entry(PASS)], reader).run(again)[0].evaluations[0].outcome
    )


def test_a_trace_that_no_dialect_knows_is_not_scored() -> None:
    """Two hundred requests to a web server are no agent's runs: nothing is a pass, and the scopes are named."""
    keys = {"http.request.method": "GET", "url.path": "/", "session.id": "s", "user.id": "u", "db.system.name": "redis"}
    server = ROOT._replace(name="GET /", scope="opentelemetry.instrumentation.asgi", attributes=keys)
    query = CALLS[0]._replace(name="GET", scope="opentelemetry.instrumentation.redis", attributes=keys)
    trace = Trace(trace_id=TRACE_ID, spans=(server, query), close_reason=CloseReason.ROOT_ENDED)
    (report,) = Pipeline([entry(PASS)], built_in_reader()).run(trace)

    scopes = "'opentelemetry.instrumentation.asgi', 'opentelemetry.instrumentation.redis'"
    reason = f"no span of a known instrumentation; scopes seen: {scopes}"
    assert (False, "not_evaluated") == (report.trajectory.recognised, report.label)
    assert [Skipped(reason)] == [evaluation.outcome for evaluation in report.evaluations]


def test_metrics_that_are_not_recorded() -> None:
    """What the configuration names is left out of the metrics of a report, and nothing else."""
    trace = Trace(trace_id=TRACE_ID, spans=(ROOT, *CALLS), close_reason=CloseReason.ROOT_ENDED)
    custom = "dialects: {custom: [{name: t, match: {tool: '*'}, tool_name: tool}]}"

    def measured(more: str) -> set[str]:
        (report,) = wiring.pipeline(loads(f"{custom}\n{more}", "c.yaml", Path())).run(trace)
        return {instrument.name for instrument, _, _ in measurements(report)}

    both = ["gen_ai.invoke_agent.tool_calls", "gen_ai.execute_tool.duration"]
    assert set(both) <= measured("")
    for left_out in ([both[0]], [both[1]], both):
        assert set(left_out) == measured("") - measured(f"metrics: {{disabled: {left_out}}}")


def test_reading_a_span_is_a_step() -> None:
    """Other work can be done after each span of a trace and after each evaluation, however long they take."""
    pipeline = Pipeline([entry(PASS, "a"), entry(PASS, "b")], DialectReader([EveryToolSpan()]))
    spans = tuple(CALLS[0]._replace(span_id=number.to_bytes(8, "big")) for number in range(1, 51))
    steps = pipeline.begin(Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED))

    assert len(spans) + 2 == sum(1 for _ in steps)
