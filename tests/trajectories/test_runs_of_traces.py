"""A run besides its calls: names, times and attributes, whether it is read, and how much of its spans came."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import pytest

from dialects.spans import span, span_id, start_ns
from given_readings import Given, given, given_agent, given_call, given_model, given_runs
from spanscore.contracts import CallReading, CallRequest, ModelReading, Reading, SentMessage
from spanscore.model import LOG_RECORD, NO_SPAN, CloseReason, Completeness, Span, Trace, Unit
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import DialectFailedError, lacks_content, trajectories
from traces import lasting

P1: Final = CallRequest(name="pay", call_id="c1")
AGENT: Final = lasting(given_agent(1, "a"), 90)
LOG: Final[dict[str, Any]] = {"kind": LOG_RECORD}
REMOTE_PARENT: Final = 0x300
CONTINUED: Final = (
    SentMessage(is_user_text=True),
    SentMessage(requests=(P1,)),
    SentMessage(answers=(CallReading(call_id="c1", result=1),)),
)


def call(number: int, name: str = "pay", **more: Any) -> Span:
    """Return a call."""
    return given_call(number, name, **{"parent": 1, **more})


def model(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model."""
    return given_model(number, *requests, **{"parent": 1, **more})


def step(number: int, **reading: Any) -> Span:
    """Return another span with a reading."""
    return given(Reading(**reading), number, parent=1)


def outside(spanned: Span) -> Span:
    """Return a log record that was written outside of all spans."""
    return spanned._replace(kind=LOG_RECORD, parent_span_id=NO_SPAN)


@pytest.mark.parametrize(
    ("case", "spans", "more", "known"),
    [
        ("a root", [AGENT], {}, {}),
        ("no root", [call(3)], {}, {"parents_missing": 1, "root_seen": False}),
        ("no root, though it has ended", [call(3)], {"reason": CloseReason.ROOT_ENDED}, {"parents_missing": 1}),
        ("a missing parent beside a root", [AGENT, call(3, parent=9)], {}, {"parents_missing": 1, "spans_missing": 1}),
        (
            "two children of one",
            [AGENT, call(3, parent=9), call(5, "book", parent=9)],
            {},
            {"parents_missing": 2, "spans_missing": 1},
        ),
        (
            "children of two",
            [AGENT, call(3, parent=9), call(5, "book", parent=8)],
            {},
            {"parents_missing": 2, "spans_missing": 2},
        ),
        (
            "children of one, which may be the root",
            [call(3, parent=9), call(5, "book", parent=9)],
            {},
            {"parents_missing": 2, "root_seen": False},
        ),
        ("a parent in another process", [call(3, flags=REMOTE_PARENT)], {}, {"root_seen": False}),
        ("a log record", [outside(call(1))], {}, {"from_logs": True}),
        ("a log record, cut short", [outside(call(1))], {"cut_short": True}, {}),
        ("a log record of a missing span", [call(3, **LOG)], {}, {"from_logs": True}),
        ("a log record beside a root", [AGENT, call(3, parent=9, **LOG)], {}, {}),
        (
            "a log record beside a missing parent",
            [call(3, parent=9), call(5, parent=8, **LOG)],
            {},
            {"parents_missing": 1, "root_seen": False},
        ),
        ("too many spans", [AGENT], {"reason": CloseReason.SPAN_LIMIT}, {"truncated": True}),
        ("too many bytes", [AGENT], {"reason": CloseReason.SIZE_LIMIT}, {"truncated": True}),
        ("evicted", [AGENT], {"reason": CloseReason.EVICTED}, {"truncated": True}),
        ("stopped", [AGENT], {"reason": CloseReason.SHUTDOWN}, {}),
        ("refused spans", [AGENT], {"refused": 3, "dropped": 2}, {"spans_refused": 3, "spans_dropped": 2}),
        ("content elsewhere", [AGENT, step(3, content_elsewhere=True)], {}, {"content_elsewhere": True}),
    ],
)
def test_how_much_of_a_trace_came(case: str, spans: list[Span], more: dict[str, Any], known: dict[str, Any]) -> None:
    """Spans whose parent is missing prove that it existed; log records have no root to wait for."""
    (run,) = given_runs(*spans, **{"reason": CloseReason.TIMED_OUT, **more})
    usual = Completeness(results_recorded=run.completeness.results_recorded, arguments_recorded=not run.calls)
    differing = {
        each.name for each in fields(Completeness) if getattr(usual, each.name) != getattr(run.completeness, each.name)
    }
    assert known == {name: getattr(run.completeness, name) for name in differing}, case


SERVICE: Final = {"service.name": "app", "z": 1}


@pytest.mark.parametrize(
    ("case", "spans", "unit", "expected"),
    [
        (
            "an agent",
            [given_agent(1, "a", conversation_id="x", resource=SERVICE)],
            Unit.TRACE,
            {"agent": "a", "conversation_id": "x", "service": "app", "root_span_id": span_id(1)},
        ),
        (
            "a service that is no text",
            [given_agent(1, "a", resource={"service.name": 1})],
            Unit.TRACE,
            {"service": None},
        ),
        ("a workflow", [given(Reading(is_workflow=True, agent="w"))], Unit.TRACE, {"agent": "w", "invocations": None}),
        (
            "a workflow around an agent",
            [given(Reading(is_workflow=True, agent="w")), given_agent(2, "a", parent=1)],
            Unit.TRACE,
            {"agent": "a", "invocations": (("a", 0),)},
        ),
        (
            "a workflow that is an agent",
            [given(Reading(is_workflow=True, is_agent=True, agent="w")), call(3)],
            Unit.TRACE,
            {"agent": "w", "invocations": (("w", 1),)},
        ),
        (
            "a span without an end",
            [given_agent(1)._replace(end_ns=0)],
            Unit.TRACE,
            {"start_ns": start_ns(1), "end_ns": None},
        ),
        ("a span without times", [given_agent(1)._replace(start_ns=0, end_ns=0)], Unit.TRACE, {"start_ns": None}),
        ("times", [given_agent(1)], Unit.TRACE, {"start_ns": start_ns(1), "end_ns": start_ns(2)}),
        (
            "a log record within a span",
            [call(1, parent=9, **LOG)],
            Unit.TRACE,
            {"root_span_id": span_id(9), "start_ns": None, "end_ns": None},
        ),
        ("a log record outside of spans", [outside(call(1))], Unit.TRACE, {"root_span_id": b"", "agent": None}),
        (
            "an application above the agent",
            [span(1, "GET /"), given_agent(2, "a", parent=1)],
            Unit.TRACE,
            {"agent": "a", "root_span_id": span_id(1)},
        ),
        (
            "the agent's run below an application",
            [span(1, "GET /", resource=SERVICE), given_agent(2, "a", parent=1)],
            Unit.AGENT,
            {"agent": "a", "root_span_id": span_id(2), "service": "app", "unit": Unit.AGENT},
        ),
        (
            "the last response",
            [AGENT, model(2, response_id="r1"), model(4, response_id="r2"), model(6)],
            Unit.TRACE,
            {"response_id": "r2"},
        ),
        (
            "the conversation of another span",
            [AGENT, step(2, conversation_id="y", agent="b")],
            Unit.TRACE,
            {"conversation_id": "y", "several_conversations": False, "agent": "a"},
        ),
    ],
)
def test_names_and_times_of_a_run(case: str, spans: list[Span], unit: Unit, expected: dict[str, Any]) -> None:
    """By its own span, else by the trace."""
    (run,) = given_runs(*spans, unit=unit)
    assert expected == {key: getattr(run, key) for key in expected}, case


def test_attributes_of_a_run() -> None:
    """Attributes of its own span win over those of the root and of its resource; names have the standard keys."""
    root = span(1, "GET /", {"k": "root", "l": "root"}, resource={"k": "resource", "m": "resource"})
    agent = given_agent(2, "a", conversation_id="x", parent=1, attributes={"k": "own"}, resource={"n": "other"})
    (run,) = given_runs(root, agent, unit=Unit.AGENT)
    found = {key: value for key, value in run.attributes.items() if key != "reading"}
    assert {
        "gen_ai.agent.name": "a",
        "gen_ai.conversation.id": "x",
        "k": "own",
        "l": "root",
        "m": "resource",
        "span.name": "span 2",
    } == found
    (run,) = given_runs(root)
    assert {"k": "root", "l": "root", "m": "resource", "span.name": "GET /"} == run.attributes


def test_runs_of_several_agents() -> None:
    """Each has its own calls; the trace as a whole has all of them, and who was invoked."""
    spans = [AGENT, call(3), lasting(given_agent(4, "b", parent=1), 20), call(5, "book", parent=4), call(7, "look")]
    (whole,) = given_runs(*spans)
    runs = given_runs(*spans, unit=Unit.AGENT)
    assert (("a", 2), ("b", 1)) == whole.invocations
    assert [("a", ["pay", "look"], (("a", 2),)), ("b", ["book"], (("b", 1),))] == [
        (run.agent, [each.name for each in run.calls], run.invocations) for run in runs
    ]
    assert 3 == len(whole.calls)


def test_an_agent_beyond_the_limit_of_spans() -> None:
    """Its name is that of the run if no span of the trace names one; it is the root's only."""
    beyond = given_agent(5, "late")
    for spans, agent in (([span(1, "GET /")], "late"), ([AGENT], "a"), ([given_agent(1, None)], "late")):
        assert [agent] == [run.agent for run in given_runs(*spans, beyond=beyond)]
    assert [None] == [run.agent for run in given_runs(span(1, "GET /"), beyond=span(5, "GET /"))]


def test_a_trace_without_spans() -> None:
    """No span, no run."""
    assert () == given_runs()


ASKED: Final = "though its model asked for some"
STEP: Final = "it is one step of a run"
UNLISTED: Final = "its spans do not say for which"
TALK: Final = "log records of what models said"


@pytest.mark.parametrize(
    ("case", "spans", "unread", "recognised"),
    [
        ("a call", [AGENT, call(3)], None, True),
        ("an agent without calls", [AGENT, model(3)], None, True),
        ("a request without an execution", [AGENT, model(2, P1)], None, True),
        ("unknown tools", [AGENT, model(2, asks=True)], ASKED, True),
        ("unknown tools of a step", [model(2, asks=True, parent=0)], STEP, True),
        ("a later step", [model(2, parent=0, history=CONTINUED)], STEP, True),
        ("unknown tools and a hand-over", [AGENT, model(2, asks=True), step(4, not_a_call=True)], None, True),
        ("unknown tools and a wait", [AGENT, model(2, asks=True), step(4, waits=(P1,))], None, True),
        ("unknown tools and a refusal", [AGENT, model(2, asks=True), step(4, refused=(P1,))], None, True),
        ("unknown tools and a refused call", [AGENT, model(2, asks=True), call(4, state="refused")], None, True),
        ("unknown tools beside known ones", [AGENT, model(2, P1), model(6, asks=True)], UNLISTED, True),
        ("unknown tools beside a call", [AGENT, model(2, asks=True), call(4)], None, True),
        (
            "spans that nothing reads",
            [span(1, "a", scope="s1"), span(2, "b", scope="s2")],
            "scopes seen: 's1', 's2'",
            False,
        ),
        ("spans without a scope", [span(1, "a")], "scopes seen: none", False),
        ("messages in log records", [outside(given_model(1)), outside(given_model(2))], TALK, False),
        ("messages in log records of a span", [given_model(1, parent=9, **LOG)], None, True),
        ("messages in log records beside a span", [outside(given_model(1)), span(3, "GET /")], None, True),
        ("messages in log records with a call", [outside(given_model(1)), outside(call(3))], None, True),
        ("other log records", [outside(given_agent(1)), outside(given_model(3))], None, True),
    ],
)
def test_runs_whose_calls_cannot_be_known(
    case: str, spans: list[Span], unread: str | None, *, recognised: bool
) -> None:
    """The reason is in words; nothing is evaluated then."""
    (run,) = given_runs(*spans)
    assert recognised is run.recognised, case
    assert (unread in run.unread) if unread and run.unread else unread is run.unread, case
    assert (unread in {ASKED, UNLISTED}) is lacks_content(run.unread or ""), case


class Failing(Given):
    """A dialect that fails on spans that say so."""

    def read(self, span: Span) -> Reading | None:
        """Fail, or read."""
        if "fails" in span.attributes:
            raise KeyError
        return super().read(span)

    def read_model(self, span: Span) -> ModelReading | None:
        """Fail, or read."""
        if "fails later" in span.attributes:
            raise KeyError
        return super().read_model(span)


def test_a_failure_of_a_dialect_makes_a_run_unread() -> None:
    """Of its own trace only; a run of which nothing else is read is recognised all the same."""
    reader = DialectReader([Failing()])

    def run(*spans: Span) -> tuple[bool, str | None]:
        trace = Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED)
        (found,) = trajectories(trace, reader)
        return found.recognised, found.unread

    bad = given(Reading(agent="x"), 2, parent=1, attributes={"fails": 1})
    failed = "dialect 'Failing' failed (KeyError, 1x): calls may be missing or misread"
    assert (True, None) == run(AGENT, call(3))
    assert (True, failed) == run(AGENT, bad, call(3))
    assert (True, failed) == run(bad)
    assert (True, failed.replace("1x", "2x")) == run(bad, bad._replace(span_id=span_id(7)))
    assert (True, None) == run(AGENT, call(3))


def test_tool_definitions_are_read_when_they_are_looked_at() -> None:
    """Of all models; if one cannot be read, none is given."""
    defined = [model(n, tool_definitions={name: {"n": n}}) for n, name in ((2, "f"), (4, "g"), (6, "f"))]
    (run,) = given_runs(AGENT, *reversed(defined))
    assert {"f": {"anyOf": [{"n": 2}, {"n": 6}]}, "g": {"n": 4}} == dict(run.tool_definitions)
    reader = DialectReader([Failing()])
    bad = given(Reading(agent="x"), 8, parent=1, attributes={"fails later": 1})
    reader.read_model(bad)  # a failure on another trace
    (run,) = trajectories(
        Trace(trace_id=AGENT.trace_id, spans=(AGENT, *defined), close_reason=CloseReason.ROOT_ENDED), reader
    )
    assert {"f", "g"} == run.tool_definitions.keys()
    (run,) = trajectories(
        Trace(trace_id=AGENT.trace_id, spans=(AGENT, *defined, bad), close_reason=CloseReason.ROOT_ENDED), reader
    )
    assert None is run.unread
    with pytest.raises(DialectFailedError, match=r"dialect 'Failing' failed \(KeyError, 1x\)"):
        dict(run.tool_definitions)
