"""The requests to models of a trace, the texts they were sent, and the turns of the calls."""

from __future__ import annotations

from typing import Any

from dialects.spans import built_in_dialects, read, span, start_ns
from spanscore.model import ModelCall, Span, Trajectory, Unit
from spanscore.trajectories.wanted import wanted_attributes


def chat(number: int, *, parent: int = 1, asks: tuple[str, ...] = (), **fields: Any) -> Span:
    """A model span of 1 ms that took 10 + number tokens and asks for these call ids."""
    parts = [{"type": "tool_call", "id": call_id, "name": "f", "arguments": {}} for call_id in asks]
    told = {"gen_ai.output.messages": [{"role": "assistant", "parts": parts}]} if asks else {}
    usage = {"gen_ai.usage.input_tokens": 10 + number, "gen_ai.usage.output_tokens": number}
    attributes = {"gen_ai.operation.name": "chat", **usage, **told, **fields.pop("attributes", {})}
    return span(number, "chat m", attributes, parent=parent, **fields)


def tool(number: int, *, parent: int = 1, call_id: str | None = None, **fields: Any) -> Span:
    """A call of `f` of 1 ms."""
    named = {} if call_id is None else {"gen_ai.tool.call.id": call_id}
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f", **named}
    return span(number, "execute_tool f", attributes, parent=parent, **fields)


def agent(number: int = 1, name: str = "main", parent: int = 0) -> Span:
    """A run of an agent."""
    return span(
        number,
        f"invoke_agent {name}",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name},
        parent=parent,
    )


def only(*spans: Span) -> Trajectory:
    """The trajectory of a trace, read for an evaluator that needs model calls."""
    (trajectory,) = read(*spans, model_calls=True)
    return trajectory


def turns(*spans: Span) -> list[int | None]:
    """The turns of the calls of a trace."""
    return [call.turn for call in only(*spans).calls]


def test_a_model_call_holds_what_its_span_tells() -> None:
    """A model call holds what its span tells."""
    cached = {
        "gen_ai.request.model": "m",
        "gen_ai.response.model": "m-2",
        "gen_ai.usage.cache_read.input_tokens": 3,
        "gen_ai.usage.cache_creation.input_tokens": 4,
    }
    assert only(agent(), chat(2, attributes=cached), chat(3)).model_calls == (
        ModelCall(
            model="m-2",
            input_tokens=12,
            output_tokens=2,
            cache_read_tokens=3,
            cache_creation_tokens=4,
            start_ns=start_ns(2),
            end_ns=start_ns(3),
            agent="main",
        ),
        ModelCall(input_tokens=13, output_tokens=3, start_ns=start_ns(3), end_ns=start_ns(4), agent="main"),
    )


def test_without_the_need_nothing_is_read() -> None:
    """Without the need nothing is read."""
    (trajectory,) = read(agent(), chat(2, asks=("a",)), tool(4, call_id="a"))
    assert trajectory.model_calls == ()
    assert [call.turn for call in trajectory.calls] == [None]


def test_a_call_belongs_to_the_request_that_lists_its_id() -> None:
    """A call belongs to the request that lists its id."""
    assert turns(agent(), chat(2, asks=("a", "b")), chat(4, asks=("c",)), *map_ids({5: "a", 6: "c", 7: "b"})) == [
        0,
        1,
        0,
    ]


def map_ids(ids: dict[int, str]) -> list[Span]:
    """Calls with these ids."""
    return [tool(number, call_id=call_id) for number, call_id in ids.items()]


def test_without_ids_a_call_belongs_to_the_last_request_that_ended_before_it() -> None:
    """Without ids a call belongs to the last request that ended before it."""
    assert turns(agent(), chat(2), tool(4), tool(5), chat(7), tool(9)) == [0, 0, 1]


def test_a_call_before_any_request_and_one_during_a_request_have_no_turn() -> None:
    """A call before any request and one during a request have no turn."""
    assert turns(agent(), tool(2), chat(4), chat(6)._replace(end_ns=start_ns(20)), tool(9)) == [None, None]


def test_a_call_that_the_last_request_does_not_list_was_asked_for_by_none() -> None:
    """A call that the last request does not list was asked for by none."""
    assert turns(agent(), chat(2, asks=("a",)), tool(4, call_id="a"), tool(5, call_id="z")) == [0, None]


def test_the_request_of_another_agent_asked_for_nothing() -> None:
    """The request of another agent asked for nothing."""
    spans = (agent(), chat(2), agent(4, "other", parent=1), tool(6, parent=4), chat(7, parent=4), tool(9, parent=4))
    assert turns(*spans) == [None, 1]


def test_a_request_inside_of_a_tool_is_not_of_the_calls_beside_that_tool() -> None:
    """A request inside of a tool is not of the calls beside that tool."""
    assert turns(agent(), chat(2), tool(4)._replace(end_ns=start_ns(9)), chat(5, parent=4), tool(10)) == [0, 0]


def test_with_unit_agent_turns_count_the_requests_of_the_run() -> None:
    """With unit `agent` turns count the requests of the run."""
    spans = (agent(), chat(2), agent(4, "other", parent=1), chat(5, parent=4), tool(7, parent=4), tool(8))
    runs = read(*spans, unit=Unit.AGENT, model_calls=True)
    assert [(run.agent, len(run.model_calls), [call.turn for call in run.calls]) for run in runs] == [
        ("main", 1, [0]),
        ("other", 1, [0]),
    ]


def test_a_wrapped_request_counts_once_and_the_wrapper_fills_its_gaps() -> None:
    """A wrapped request counts once and the wrapper fills its gaps."""
    outer = chat(2, attributes={"gen_ai.request.model": "m"})._replace(end_ns=start_ns(9))
    (call,) = only(agent(), outer, chat(3, parent=2)).model_calls
    assert (call.model, call.input_tokens, call.start_ns) == ("m", 13, start_ns(3))


def test_a_span_around_several_requests_is_their_sum_and_none_itself() -> None:
    """A span around several requests is their sum and none itself."""
    calls = only(agent(), chat(2)._replace(end_ns=start_ns(9)), chat(3, parent=2), chat(5, parent=2)).model_calls
    assert [call.input_tokens for call in calls] == [13, 15]


def test_what_two_instrumentations_see_at_one_time_is_one_request() -> None:
    """What two instrumentations see at one time is one request."""
    around = chat(2, scope="one", attributes={"gen_ai.request.model": "m"})._replace(end_ns=start_ns(9))
    assert [call.input_tokens for call in only(agent(), around, chat(3, scope="two")).model_calls] == [13]
    assert [call.input_tokens for call in only(agent(), around, chat(3, scope="one")).model_calls] == [12, 13]


def test_texts_are_told_once_by_role_and_results_of_tools_are_none() -> None:
    """Texts are told once by role and results of tools are none."""
    said = [
        {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
        {"role": "user", "parts": [{"type": "text", "content": "refund R-1"}, {"type": "blob", "content": "x"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "R-2"}]},
        {"role": "assistant", "content": "R-3"},
    ]
    first = {"gen_ai.input.messages": said, "gen_ai.system_instructions": [{"type": "text", "content": "rules"}]}
    second = {"gen_ai.input.messages": [*said, {"role": "user", "content": "and R-4"}]}
    run = only(agent(), chat(2, attributes=first), chat(4, attributes=second))
    assert run.user_text == ("refund R-1", "and R-4")
    assert run.system_text == ("rules", "be brief")


def test_attributes_of_model_calls_are_kept_only_where_they_are_needed() -> None:
    """Attributes of model calls are kept only where they are needed."""
    key = "gen_ai.system_instructions"
    assert wanted_attributes(built_in_dialects())[key] is None
    assert wanted_attributes(built_in_dialects(), model_calls=True)[key] == key


def test_ten_thousand_spans_of_requests_under_way_at_once_are_read() -> None:
    """Every second of ten thousand nested spans is another instrumentation's, and one request with that around it."""
    spans = [agent(), *(chat(number, scope=str(number % 2)) for number in range(2, 10_002))]
    widened = [each._replace(end_ns=start_ns(30_000 - number)) for number, each in enumerate(spans)]
    assert len(only(*widened).model_calls) == 5_000
