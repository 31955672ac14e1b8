from __future__ import annotations

import pytest

from dialects.spans import call, calls, exception, read, span, span_id
from spanscore.model import Span, StatusCode
from traces import BERN, PARIS, agent, lasting, model, tool


def test_two_instrumentations_nest_what_each_knows() -> None:
    """The outer span stands for the call; arguments come from one span, the id and the failure from the other."""
    outer = span(2, "planner.book", {"openinference.span.kind": "TOOL", "tool.name": "book", "input.value": '{"n": 1}'})
    failed = {"status_code": StatusCode.ERROR, "events": (exception("ValueError", "full"),)}
    inner = tool(3, "book", call_id="c1", parent=2, **failed)

    made = calls(outer, inner)

    assert made == [call(2, "book", {"n": 1}, call_id="c1", error="ValueError: full")]
    assert [each.error_type for each in made] == ["ValueError"]


def test_the_type_of_what_was_no_failure() -> None:
    """Where a dialect knows that a call did not fail, whatever its span says, there is no type of an error either."""
    good = {"openinference.span.kind": "TOOL", "ai.operationId": "ai.toolCall", "ai.toolCall.name": "book"}
    false = {"status_code": StatusCode.ERROR, "status_message": "overloaded"}

    (made,) = calls(span(2, "ai.toolCall", {**good, "error.type": "AI_APICallError"}, **false))

    assert (made.error, made.error_type) == (None, None)


def test_a_client_and_a_server_are_two_services_and_one_call() -> None:
    """Only the server knows of the failure; the trace belongs to the service of its root."""
    method = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book"}
    client = span(2, "MCP send tools/call book", method, parent=1, resource={"service.name": "app"})
    error = {"status_code": StatusCode.ERROR, "status_message": "no rooms"}
    server = span(3, "tools/call book", method, parent=2, kind=2, resource={"service.name": "rooms"}, **error)

    (trajectory,) = read(server, client, agent(1, resource={"service.name": "app"}))

    assert trajectory.calls == (call(2, "book", error="no rooms", agent="planner"),)
    assert trajectory.service == "app"


def test_a_chain_of_three_is_one_call() -> None:
    """A framework above a client above a server."""
    spans = [tool(1, "book", PARIS, "c1"), tool(2, "book", parent=1), tool(3, "book", PARIS, parent=2)]

    assert calls(*spans) == [call(1, "book", PARIS, call_id="c1")]


def test_a_tool_that_calls_itself_is_two_calls() -> None:
    """Its arguments differ."""
    spans = [tool(1, "search", PARIS), tool(2, "search", BERN, parent=1)]

    assert calls(*spans) == [call(1, "search", PARIS), call(2, "search", BERN)]


def test_nested_calls_of_other_tools_stay_apart() -> None:
    """An agent used as a tool, and the tool it uses."""
    spans = [tool(1, "ask_agent", {"q": "Paris?"}), tool(2, "search", PARIS, parent=1)]

    assert calls(*spans) == [call(1, "ask_agent", {"q": "Paris?"}), call(2, "search", PARIS)]


@pytest.mark.parametrize("between", [agent(2, "helper", parent=1), model(2, parent=1)])
def test_below_an_agent_or_a_model_the_same_call_is_another_one(between: Span) -> None:
    """A tool that runs an agent which calls the same tool again."""
    made = calls(tool(1, "search", PARIS), between, tool(3, "search", PARIS, parent=2))

    assert [call.span_id for call in made] == [span_id(1), span_id(3)]


def test_overlapping_spans_with_one_call_id_are_one_call() -> None:
    """They need not be nested."""
    spans = [agent(1), lasting(tool(2, "book", PARIS, "c1", parent=1), 5), tool(3, "book", call_id="c1", parent=1)]

    assert [made.span_id for made in calls(*spans)] == [span_id(2)]


@pytest.mark.parametrize(("outer", "made"), [(1, 2), (2, 1)])
def test_a_call_in_two_runs_at_once_is_made_twice(outer: int, made: int) -> None:
    """Two processes were given the same approval. A run within the other one is seen twice."""
    runs = [lasting(agent(2, parent=1), 9), lasting(agent(3, parent=outer), 9)]
    spans = [lasting(agent(1), 20), *runs, lasting(tool(4, "book", PARIS, "c1", parent=2), 5)]

    assert made == len(calls(*spans, tool(5, "book", PARIS, "c1", parent=3)))


def test_a_call_id_that_comes_again_is_another_call() -> None:
    """Some providers count from 0 in every answer; each call is still seen once by each of two instrumentations."""
    first = tool(2, "book", PARIS, "0")
    again = lasting(tool(6, "book", PARIS, "0"), 3)
    twin = tool(7, "book", call_id="0")

    assert [made.span_id for made in calls(first, again, twin)] == [span_id(2), span_id(6)]


def test_calls_that_two_instrumentations_saw_side_by_side_are_one_each() -> None:
    """Two equal calls in parallel, each seen by both."""
    one, other = {"scope": "one"}, {"scope": "other"}
    spans = [
        agent(1),
        lasting(tool(2, "book", PARIS, parent=1, **one), 9),
        lasting(tool(3, "book", PARIS, parent=1, **other), 9),
        lasting(tool(4, "book", PARIS, parent=1, **other), 9),
        lasting(tool(5, "book", PARIS, parent=1, **one), 9),
    ]

    assert [made.span_id for made in calls(*spans)] == [span_id(2), span_id(4)]


def test_equal_calls_in_parallel_are_two() -> None:
    """One instrumentation sees a call once."""
    spans = [lasting(tool(number, "book", PARIS), 9) for number in (1, 2)]

    assert [made.span_id for made in calls(*spans)] == [span_id(1), span_id(2)]


def test_an_inner_step_adds_to_the_call_above_it() -> None:
    """It is no call of its own, even if several spans are between."""
    scope = "com.anthropic.claude_code.tracing"
    outer = span(1, "claude_code.tool", {"span.type": "tool", "tool_name": "Bash"}, scope=scope)
    step = span(2, "step", parent=1, scope=scope)
    told = {"span.type": "tool.execution", "error": "exit 1"}
    inner = span(3, "claude_code.tool.execution", told, parent=2, scope=scope)

    assert calls(outer, step, inner) == [call(1, "Bash", error="exit 1")]


def test_a_span_sent_while_it_ran_counts_when_it_ended() -> None:
    """Its last version is the one."""
    running = tool(1, "book")._replace(end_ns=0)

    assert calls(running, tool(1, "book", PARIS)) == [call(1, "book", PARIS)]


def test_the_outermost_stands_for_the_call_though_it_starts_later() -> None:
    """Clocks of two processes need not agree: it is the one that the others are below."""
    assert calls(tool(2, "book", PARIS, parent=1, at_ms=3), tool(1, "Book", at_ms=5)) == [
        call(1, "Book", PARIS, at_ms=5)
    ]


def test_an_inner_step_alone_is_no_call() -> None:
    """The span of the call has not come."""
    told = {"span.type": "tool.execution", "error": "exit 1"}

    assert calls(span(1, "claude_code.tool.execution", told, scope="com.anthropic.claude_code.tracing")) == []


def test_what_a_nested_call_says_is_not_said_of_the_one_above() -> None:
    """Each has its own id."""
    spans = [tool(1, "ask_agent", {"q": "Paris?"}), tool(2, "search", PARIS, "c1", parent=1)]

    assert [made.call_id for made in calls(*spans)] == [None, "c1"]


def test_three_with_one_call_id_overlap_with_the_first() -> None:
    """They are one call, though the second ends before the third begins."""
    spans = [lasting(tool(1, "book", PARIS, "c1"), 9), tool(2, "book", PARIS, "c1"), tool(7, "book", PARIS, "c1")]

    assert [made.span_id for made in calls(*spans)] == [span_id(1)]


def test_spans_that_touch_overlap() -> None:
    """Times are often cut to the millisecond."""
    first = lasting(tool(1, "book", PARIS, "c1"), 4)

    assert [made.span_id for made in calls(first, tool(5, "book", PARIS, "c1"))] == [span_id(1)]
    assert [made.span_id for made in calls(first, tool(6, "book", PARIS, "c1"))] == [span_id(1), span_id(6)]


def test_one_call_needs_one_id_and_one_tool() -> None:
    """Another tool with the same id, or the same tool with another id, is another call, whatever the nesting."""
    outer = lasting(tool(1, "book", PARIS, "c1"), 9)

    assert [made.name for made in calls(outer, tool(2, "pay", PARIS, "c1", parent=1))] == ["book", "pay"]
    assert [made.call_id for made in calls(outer, tool(2, "book", PARIS, "c2", parent=1))] == ["c1", "c2"]


def test_one_call_under_the_names_that_a_span_of_it_knows() -> None:
    """Of each pair of names one has to fit; without them, only the tool's own."""
    gateway = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "mcp.target": "rooms"}
    known = span(2, "tools/call", gateway, parent=1)

    assert calls(tool(1, "rooms_book", PARIS), known) == [call(1, "rooms_book", PARIS)]
    assert calls(tool(1, "halls_book", PARIS), known) == [call(1, "halls_book", PARIS), call(2, "book")]
