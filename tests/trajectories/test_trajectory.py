"""Spans to trajectories: in which order, for which unit, and how much of the run they show."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

from dialects.spans import TRACE_ID, built_in_reader, call, calls, read, span, span_id, start_ns
from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.model import CloseReason, Completeness, Span, SpanEvent, Trace, Unit
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories
from traces import PARIS, agent, asked, having, lasting, model, tool


class Failing:
    """A dialect that fails on some spans."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({"key"}))
    reads: frozenset[str] = frozenset()

    def read(self, span: Span) -> Reading | None:
        """Fail on a bad span."""
        if span.name == "bad":
            raise KeyError
        return Reading(agent="planner")

    def read_model(self, span: Span) -> ModelReading | None:
        """Say nothing."""
        return None


class TestOrder:
    def test_by_start_whatever_the_arrival(self) -> None:
        """Children arrive before their parents."""
        spans = [tool(3, "c"), tool(1, "a"), tool(2, "b")]

        assert [made.name for made in calls(*spans)] == ["a", "b", "c"]

    def test_a_parent_comes_before_the_child_that_starts_with_it(self) -> None:
        """Whole milliseconds tie."""
        spans = [tool(3, "inner", parent=1, at_ms=5), tool(2, "next", at_ms=5), tool(1, "outer", at_ms=5)]

        assert [made.name for made in calls(*spans)] == ["next", "outer", "inner"]

    def test_a_nested_call_comes_when_it_starts(self) -> None:
        """One that runs beside its parent's end comes after what started before it."""
        spans = [tool(1, "outer"), tool(2, "next"), tool(3, "inner", parent=1)]

        assert [made.name for made in calls(*spans)] == ["outer", "next", "inner"]

    def test_a_call_that_names_itself_as_its_parent(self) -> None:
        """It stands below itself, and yet comes at its start."""
        spans = [tool(1, "a", parent=1), tool(2, "b"), tool(3, "c", at_ms=2)]

        assert [made.name for made in calls(*spans[:2])] == ["a", "b"]
        assert [made.name for made in calls(*spans)] == ["a", "b", "c"]

    def test_parents_that_form_a_cycle_at_one_time(self) -> None:
        """They come as they arrived."""
        spans = [tool(number, name, parent=above, at_ms=5) for number, name, above in ((1, "a", 2), (2, "b", 1))]

        assert [made.name for made in calls(*spans)] == ["a", "b"]

    def test_siblings_that_tie_come_as_the_model_asked(self) -> None:
        """Whatever the arrival."""
        asking = model(1, asked("b", {}, "c1"), asked("a", {}, "c2"))
        spans = [asking, tool(2, "a", {}, "c2", at_ms=5), tool(3, "b", {}, "c1", at_ms=5)]

        assert [made.name for made in calls(*spans)] == ["b", "a"]

    def test_siblings_that_no_model_asked_for_come_as_they_arrived(self) -> None:
        """There is nothing better to go by."""
        assert [made.name for made in calls(tool(2, "b", at_ms=5), tool(1, "a", at_ms=5))] == ["b", "a"]


class TestCompleteness:
    def read(self, *spans: Span, reason: CloseReason = CloseReason.ROOT_ENDED) -> Completeness:
        """Return what is said of the trajectory."""
        trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=reason)
        (trajectory,) = trajectories(trace, built_in_reader())
        return trajectory.completeness

    def test_a_whole_trace(self) -> None:
        """Nothing is missing."""
        recorded = tool(2, "book", PARIS, parent=1)
        recorded = recorded._replace(attributes={**recorded.attributes, "gen_ai.tool.call.result": "ok"})

        assert self.read(agent(1), recorded) == Completeness()

    def test_without_root_and_parents(self) -> None:
        """The root never came, nor a parent in between; content was off."""
        spans = [tool(3, "book", parent=9), tool(4, "book", parent=1)]

        assert self.read(*spans, reason=CloseReason.TIMED_OUT) == Completeness(
            root_seen=False, parents_missing=2, arguments_recorded=False, results_recorded=False
        )

    def test_a_root_among_others(self) -> None:
        """One span without a parent is a root that was seen, however the trace was closed."""
        recorded = self.read(agent(1), agent(2, parent=1), reason=CloseReason.TIMED_OUT)

        assert (True, 0) == (recorded.root_seen, recorded.parents_missing)

    def test_a_parent_in_another_process_is_not_missing(self) -> None:
        """The sender says that it is remote."""
        local_root = agent(1, parent=9, flags=0x301)

        assert self.read(local_root, reason=CloseReason.ROOT_ENDED) == Completeness()

    def test_a_trace_cut_by_a_limit(self) -> None:
        """It may have gone on."""
        assert self.read(agent(1), reason=CloseReason.SPAN_LIMIT) == Completeness(truncated=True)

    def test_an_agent_that_only_the_span_beyond_the_limit_names(self) -> None:
        """Often that is the root, which ends last and holds all messages; a name that the trace has comes first."""
        full = Trace(
            trace_id=TRACE_ID,
            spans=(tool(3, "book", parent=1),),
            close_reason=CloseReason.SIZE_LIMIT,
            beyond=agent(1, "planner"),
        )
        (cut,) = trajectories(full, built_in_reader())
        (named,) = trajectories(replace(full, spans=(*full.spans, agent(2, "other", parent=1))), built_in_reader())

        assert ("planner", "planner", "other") == (cut.agent, cut.attributes["gen_ai.agent.name"], named.agent)
        assert (["book"], True) == ([made.name for made in cut.calls], cut.completeness.truncated)

    def test_the_top_of_a_rootless_trace_stands_for_it(self) -> None:
        """The earliest span whose parent is missing."""
        trace = [tool(3, "book", parent=2), agent(2, "planner", parent=1), agent(4, "other", parent=9)]

        (trajectory,) = read(*trace)

        assert (span_id(2), "planner") == (trajectory.root_span_id, trajectory.agent)


class TestOddTrees:
    def test_parents_that_form_a_cycle(self) -> None:
        """Every call is found once; nothing hangs."""
        spans = [tool(1, "a", PARIS, parent=3), tool(2, "b", PARIS, parent=1), tool(3, "c", PARIS, parent=2)]

        assert [made.name for made in calls(*spans)] == ["a", "b", "c"]

    def test_a_span_that_is_its_own_parent(self) -> None:
        """As above."""
        assert [made.name for made in calls(tool(1, "a", parent=1))] == ["a"]

    def test_a_deep_chain(self) -> None:
        """A hundred thousand spans below one another, a call at the bottom."""
        deep = 100_000
        chain = [span(number, "step", parent=number - 1) for number in range(2, deep)]

        assert calls(agent(1), *chain, tool(deep, "book", PARIS, parent=deep - 1)) == [
            call(deep, "book", PARIS, agent="planner")
        ]

    def test_ten_thousand_nested_calls_at_one_time(self) -> None:
        """The order is that of the nesting."""
        many = 10_000
        spans = [tool(number, f"t{number}", parent=number - 1, at_ms=1) for number in range(many, 0, -1)]

        assert [made.span_id for made in calls(*spans)] == [span_id(number) for number in range(1, many + 1)]

    def test_ten_thousand_calls_side_by_side(self) -> None:
        """All at once, seen by two instrumentations, joined with what a model asked for."""
        many = 10_000
        requests = [asked("book", {"n": number}, f"c{number}") for number in range(many)]
        spans = [lasting(model(1, *requests), 1)]
        for number in range(many):
            spans.append(lasting(tool(2 + 2 * number, "book", {"n": number}, scope="one"), 3))
            spans.append(lasting(tool(3 + 2 * number, "book", scope="other", call_id=f"c{number}"), 1))

        made = calls(*spans)

        assert [f"c{number}" for number in range(many)] == [each.call_id for each in made]
        assert [{"n": number} for number in range(many)] == [each.arguments for each in made]


class TestUnits:
    def test_each_run_of_an_agent_has_its_calls(self) -> None:
        """Those of nested agents are theirs alone; what runs outside of any agent is the root's."""
        spans = [
            span(1, "POST /chat"),
            agent(2, "planner", parent=1),
            tool(3, "ask", parent=2),
            agent(4, "helper", parent=3),
            tool(5, "search", parent=4),
            tool(6, "log", parent=1),
        ]

        units = read(*spans, unit=Unit.AGENT)

        assert [("planner", ["ask"]), ("helper", ["search"]), ("planner", ["log"])] == [
            (unit.agent, [made.name for made in unit.calls]) for unit in units
        ]
        assert [span_id(2), span_id(4), span_id(1)] == [unit.root_span_id for unit in units]

    def test_two_spans_of_one_run_are_one_unit(self) -> None:
        """Some instrumentations nest two of the same name."""
        spans = [agent(1, "planner"), agent(2, "planner", parent=1), tool(3, "search", parent=2)]

        (unit,) = read(*spans, unit=Unit.AGENT)

        assert (span_id(1), ("search",)) == (unit.root_span_id, tuple(made.name for made in unit.calls))

    def test_an_agent_that_calls_itself_is_two_units(self) -> None:
        """A tool call is between."""
        spans = [agent(1, "planner"), tool(2, "ask", parent=1), agent(3, "planner", parent=2)]

        assert [span_id(1), span_id(3)] == [unit.root_span_id for unit in read(*spans, unit=Unit.AGENT)]

    def test_without_any_agent_the_trace_is_the_unit(self) -> None:
        """Nothing is lost."""
        (unit,) = read(span(1, "POST /chat"), tool(2, "search", parent=1), unit=Unit.AGENT)

        assert (span_id(1), 1, Unit.AGENT) == (unit.root_span_id, len(unit.calls), unit.unit)


def test_names_that_dialects_find_can_be_matched_by_their_standard_names() -> None:
    """Resource, root span and what instrumentations spell in their own ways."""
    root = span(
        1, "travel", {"langfuse.observation.type": "agent", "session.id": "s-1"}, resource={"service.name": "app"}
    )

    (trajectory,) = read(root)

    assert dict(trajectory.attributes) == {
        "gen_ai.agent.name": "travel",
        "gen_ai.conversation.id": "s-1",
        "service.name": "app",
        "langfuse.observation.type": "agent",
        "session.id": "s-1",
        "span.name": "travel",
    }


def test_each_run_has_the_conversation_that_it_tells() -> None:
    """A run that tells none has that of the trace."""
    told = agent(3, "other", parent=1)
    spans = [
        agent(1)._replace(attributes={**agent(1).attributes, "gen_ai.conversation.id": "first"}),
        told._replace(attributes={**told.attributes, "gen_ai.conversation.id": "second"}),
        agent(4, "silent", parent=1),
    ]

    assert ["first", "second", "first"] == [unit.conversation_id for unit in read(*spans, unit=Unit.AGENT)]


def test_what_is_recognised() -> None:
    """One span of an agent is enough; the id of a session alone, which web servers write as well, is not."""
    session = {"session.id": "s-1"}
    work, visit = span(1, "work"), span(2, "GET /", session)
    visiting = agent(3)._replace(attributes={**agent(3).attributes, **session})

    assert [False, False, True, True] == [
        read(*spans)[0].recognised for spans in ([work], [work, visit], [work, agent(3)], [work, visiting])
    ]


class TestInvocations:
    def test_each_invocation_without_its_sub_agents(self) -> None:
        """A call belongs to the agent that made it; one that made none counts, too."""
        spans = [
            agent(1, "outer"),
            tool(2, "search", parent=1),
            tool(3, "ask", parent=1),
            agent(4, "inner", parent=3),
            tool(5, "look up", parent=4),
            tool(6, "look up", parent=4),
            agent(7, "idle", parent=1),
            tool(8, "search", parent=1),
        ]
        expected = [("outer", 3), ("inner", 2), ("idle", 0)]
        (whole,) = read(*spans)

        assert expected == list(whole.invocations or ())
        assert [(each,) for each in expected] == [unit.invocations for unit in read(*spans, unit=Unit.AGENT)]

    def test_calls_outside_of_any_agent(self) -> None:
        """They are nobody's: steps of a workflow."""
        spans = [span(1, "POST /chat"), tool(2, "route", parent=1), agent(3, parent=1), tool(4, "search", parent=3)]
        (whole,) = read(*spans)

        assert (("planner", 1),) == whole.invocations
        assert {(("planner", 1),), ()} == {unit.invocations for unit in read(*spans, unit=Unit.AGENT)}

    def test_where_none_can_be_told_apart(self) -> None:
        """Then the run counts as one."""
        (whole,) = read(span(1, "POST /chat"), tool(2, "search", parent=1))

        assert whole.invocations is None


class TestUnread:
    def test_no_known_instrumentation(self) -> None:
        """The scopes that were seen are named, each once; spans of some programs have none."""
        work = [span(1, "work", scope="lib"), span(2, "work", scope="lib"), span(3, "work", scope="")]

        (unknown,) = read(*work)
        assert "no span of a known instrumentation; scopes seen: 'lib'" == unknown.unread
        (bare,) = read(span(1, "work", scope=""))
        assert "no span of a known instrumentation; scopes seen: none" == bare.unread
        (known,) = read(agent(1))
        assert known.unread is None

    def test_a_dialect_that_failed(self) -> None:
        """It is named with the error and how often; the next trace, where nothing fails, is read."""
        reader = DialectReader([Failing()])
        failed, good = (
            trajectories(Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED), reader)[0]
            for spans in ((span(1, "bad", {"key": 1}), span(2, "bad", {"key": 1})), (span(1, "good", {"key": 1}),))
        )

        assert "dialect 'Failing' failed (KeyError, 2x): calls may be missing or misread" == failed.unread
        assert good.unread is None


def test_the_last_response_of_the_run_is_known() -> None:
    """Backends join an evaluation with it."""
    spans = [agent(1), *(model(number, parent=1) for number in (2, 3))]
    spans = [
        spans[0],
        *(each._replace(attributes={**each.attributes, "gen_ai.response.id": each.name}) for each in spans[1:]),
    ]

    (trajectory,) = read(*spans)

    assert trajectory.response_id == "chat"


def test_an_event_of_a_span_is_no_span() -> None:
    """An exception on the root is the run's failure, not a call's."""
    failed = agent(1, events=(SpanEvent("exception", start_ns(1), {"exception.type": "ValueError"}),))

    assert calls(failed, tool(2, "book", PARIS, parent=1)) == [call(2, "book", PARIS, agent="planner")]


def named_model(number: int, name: str, parent: int) -> Span:
    """A model's span that names the agent that asks."""
    asks = {"gen_ai.operation.name": "chat", "gen_ai.agent.name": name}
    return span(number, "chat", asks, parent=parent)


class TestAgentsWithoutASpan:
    def test_the_model_that_asked_beside_a_call_names_its_agent(self) -> None:
        """An agent that runs within a span of the application's may have none of its own."""
        spans = [
            span(1, "POST /chat"),
            named_model(2, "planner", 1),
            tool(3, "search", parent=1),
            tool(4, "log", parent=3),
            named_model(5, "booker", 1),
            tool(6, "book", parent=1),
        ]

        assert [("search", "planner"), ("log", None), ("book", "booker")] == [
            (made.name, made.agent) for made in calls(*spans)
        ]

    def test_an_agent_that_is_a_tool(self) -> None:
        """Its calls stand below that of the tool, which is the other agent's."""
        spans = [
            agent(1, "planner"),
            named_model(2, "planner", 1),
            tool(3, "helper", parent=1),
            named_model(4, "helper", 3),
            tool(5, "search", parent=3),
        ]

        assert [("helper", "planner"), ("search", "helper")] == [(made.name, made.agent) for made in calls(*spans)]

    def test_the_span_of_an_agent_says_it_better(self) -> None:
        """Some instrumentations give every model's span one name; nor does a model tell of what ran before it."""
        turn = span(2, "turn", parent=1)

        assert ["planner"] == [
            made.agent for made in calls(agent(1), turn, named_model(3, "Agent", 2), tool(4, "search", parent=2))
        ]
        assert [None] == [made.agent for made in calls(tool(2, "search", parent=1), named_model(3, "Agent", 1))]

    def test_a_start_may_be_cut_to_the_millisecond(self) -> None:
        """The model's end is not: it may seem to answer after the call has begun, but not by more."""
        asking = named_model(2, "planner", 1)

        for late_ms, expected in ((1, "planner"), (2, None)):
            ended = lasting(asking, 1 + late_ms)
            assert [expected] == [made.agent for made in calls(ended, tool(3, "search", parent=1))]


class TestTheAgentOfARun:
    def test_an_agent_below_a_call_does_not_name_it(self) -> None:
        """It is a sub-agent, also where the agent that called it has no name; it names its own calls."""
        (found,) = read(
            span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}),
            tool(2, "task", PARIS, "c1", parent=1),
            span(3, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "sub"}, parent=2),
            tool(4, "book", PARIS, "c2", parent=3),
        )

        assert found.agent is None
        assert [("task", None), ("book", "sub")] == [(made.name, made.agent) for made in found.calls]

    def test_a_workflow_names_it_then(self) -> None:
        """As that of a deep agent."""
        workflow = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "deep"}
        (found,) = read(
            span(1, "invoke_workflow", workflow),
            tool(2, "task", PARIS, "c1", parent=1),
            span(3, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "sub"}, parent=2),
        )

        assert found.agent == "deep"

    def test_above_a_call_that_is_the_root_nobody_is_known(self) -> None:
        """An agent that is served as a tool names the run."""
        (found,) = read(
            tool(1, "ask", PARIS, "c1"),
            span(2, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "served"}, parent=1),
        )

        assert found.agent == "served"


def test_the_messages_of_models_take_no_memory_after_they_are_read() -> None:
    """Decoded, they take many times the bytes of their text: a trace keeps no more than those of one model.

    All are read for a call without a result.
    """
    texts = [{"role": "user", "parts": [[] for _ in range(4_000)]} for _ in range(2)]
    sent = json.dumps([*texts, {"role": "tool", "parts": []}], separators=(",", ":"))
    models = [having(model(number), {"gen_ai.input.messages": sent}) for number in range(3, 13)]
    spans = (agent(1), tool(2, "search", {}, "c1", parent=1), *models)
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    reader = built_in_reader()
    trajectories(trace, reader)  # imports, and caches
    tracemalloc.start()
    try:
        found = trajectories(trace, reader)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 1 == len(found[0].calls)
    assert kept < len(sent) * len(models)
    assert most < 5 * len(sent) * len(models)
