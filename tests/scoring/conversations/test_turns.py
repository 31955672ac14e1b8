"""Turns as bytes, and turns that are joined."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.conversations.turns import executed, turn
from spanscore.model import (
    NOT_RECORDED,
    CloseReason,
    Completeness,
    ModelCall,
    ToolCall,
    Trajectory,
    TurnOutline,
    Unit,
    WithheldCall,
)
from spanscore.model.values import Later
from spanscore.scoring.conversations.turns import Turn, TurnNeeds, decoded_turn, encoded_turn, joined_turns
from spanscore.trajectories.trajectory import DialectFailedError

NEEDS = TurnNeeds(attributes=["tier"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=6,
)
IDS = st.binary(min_size=8, max_size=8)
CALLS = st.builds(
    ToolCall,
    name=st.text(),
    arguments=JSON | st.just(NOT_RECORDED),
    result=JSON | st.just(NOT_RECORDED),
    error=st.none() | st.text(),
    call_id=st.none() | st.text(),
    span_id=st.none() | IDS,
    start_ns=st.integers(0),
    end_ns=st.integers(0),
    sequence=st.none() | st.integers(),
    turn=st.none() | st.integers(0, 9),
)


@given(
    st.lists(CALLS, max_size=4),
    st.lists(st.builds(ModelCall, model=st.none() | st.text(), input_tokens=st.none() | st.integers()), max_size=2),
    st.builds(Completeness, paused=st.lists(st.text(), max_size=2).map(tuple), begin_unseen=st.booleans()),
    JSON,
)
def test_a_turn_is_the_same_behind_its_bytes(
    calls: list[ToolCall], models: list[ModelCall], seen: Completeness, tier: Any
) -> None:
    """Whatever JSON and text is in it."""
    run = Trajectory(
        calls=tuple(calls),
        trace_id=bytes(16),
        root_span_id=bytes(8),
        service="shop",
        conversation_id="c",
        attributes={"tier": tier},
        model_calls=tuple(models),
        user_text=("a", "\ud800"),
        completeness=seen,
        withheld=(WithheldCall("refund", "waits"),),
        reordered=(1, 0),
        unread="no",
    )
    whole = Turn(run, 7, CloseReason.TIMED_OUT)

    assert whole == decoded_turn(encoded_turn(whole, NEEDS))


def test_only_what_is_needed_is_kept() -> None:
    """Of attributes, results, and definitions of tools."""
    definitions = {"a": {"type": "object"}, "b": {}}
    run = turn(1, "a", attributes={"tier": "gold", "prompt": "secret"}, tool_definitions=definitions)
    kept = decoded_turn(encoded_turn(run, NEEDS)).trajectory
    bare = decoded_turn(encoded_turn(run, replace(NEEDS, results=False))).trajectory

    assert {"tier": "gold"} == kept.attributes
    assert {"a": {"type": "object"}} == kept.tool_definitions
    assert ["ok"] == [call.result for call in kept.calls]
    assert [NOT_RECORDED] == [call.result for call in bare.calls]


def test_other_versions_are_refused() -> None:
    """A later program may write another form."""
    content = json.dumps(json.loads(encoded_turn(turn(1, "a"), NEEDS)) | {"v": 2}).encode()
    with pytest.raises(ValueError, match="version 2, not 1"):
        decoded_turn(content)


def test_definitions_that_cannot_be_read() -> None:
    """A turn whose tools cannot be read is unread."""

    def fail() -> dict[str, Any]:
        message = "dialect failed"
        raise DialectFailedError(message)

    run = turn(1, "a", tool_definitions=Later(fail))
    assert "dialect failed" == decoded_turn(encoded_turn(run, NEEDS)).trajectory.unread


def test_joined_in_order() -> None:
    """Calls, model calls and texts follow each other; the rest is that of the last turn."""
    model = ModelCall(model="m")
    first = turn(1, "a", replace(executed(1, 1, "b"), turn=0), model_calls=(model,), user_text=("hi", "x"), agent="one")
    second = turn(
        2, replace(executed(2, 0, "c"), turn=0), model_calls=(model, model), user_text=("hi", "y"), agent="two"
    )
    joined = joined_turns([second, first])
    run = joined.trajectory

    assert ("a", "b", "c") == run.names
    assert [None, 0, 1] == [call.turn for call in run.calls]
    assert (model,) * 3 == run.model_calls
    assert ("hi", "x", "y") == run.user_text
    assert (Unit.CONVERSATION, "two", second.trajectory.trace_id) == (run.unit, run.agent, run.trace_id)
    assert (TurnOutline(first.trajectory.trace_id, 2), TurnOutline(second.trajectory.trace_id, 1)) == joined.outline


def test_ties_are_in_the_order_of_trace_ids() -> None:
    """Clocks may be coarse."""
    one, other = turn(1, "a")._replace(start_ns=5), turn(2, "b")._replace(start_ns=5)
    assert ("a", "b") == joined_turns([other, one]).trajectory.names


def test_executed_calls_are_never_merged() -> None:
    """Models number the ids of calls anew in each turn."""
    assert ("refund",) * 3 == joined_turns([turn(number, "refund") for number in range(3)]).trajectory.names


def test_restored_calls_that_an_earlier_turn_executed() -> None:
    """They are recognised by the id of the call and its tool, or by the arguments."""
    same = ToolCall(name="look", arguments={}, call_id="0", restored=True)
    by_arguments = ToolCall(name="look", arguments={}, restored=True)
    other = ToolCall(name="look", arguments={"x": 1}, call_id="7", restored=True)
    resumed = turn(2, same, by_arguments, other, "refund")

    assert ("look", "look", "refund") == joined_turns([turn(1, "look"), resumed]).trajectory.names
    assert ("look", "look", "look", "refund") == joined_turns([resumed]).trajectory.names
    # The first part was not received, and the run has paused twice.
    again = turn(3, same, by_arguments, other, ToolCall(name="refund", arguments={}, restored=True), "notify")
    assert ("look", "look", "look", "refund", "notify") == joined_turns([resumed, again]).trajectory.names
    # A call that only a model's span shows, such as one of the provider.
    without_span = turn(1, ToolCall(name="look", arguments={}, call_id="0"))
    assert ("look", "look", "refund") == joined_turns([without_span, resumed]).trajectory.names


def test_uncertain_and_refused_calls() -> None:
    """The turns before show whether an uncertain call was made; a refused one is known of every turn."""
    doubtful = ToolCall(name="send", restored=True)
    refused = ToolCall(name="refund", restored=True)
    seen = Completeness(resumed=True, uncertain=("send",))
    resumed = turn(2, "look", completeness=seen, uncertain=(doubtful,), refused=(refused,))

    first = joined_turns([resumed, turn(3, "look")]).trajectory
    second = joined_turns([turn(1, "send"), resumed]).trajectory

    assert ((doubtful,), seen) == (first.uncertain, first.completeness)
    assert ((), Completeness()) == (second.uncertain, second.completeness)
    assert ((refused,), (refused,)) == (first.refused, second.refused)
    assert resumed.trajectory == decoded_turn(encoded_turn(resumed, TurnNeeds())).trajectory


def test_the_order_of_calls_before_the_first_turn() -> None:
    """Messages do not tell it; the turns before do."""
    refund, look = (ToolCall(name=name, arguments={}, restored=True) for name in ("refund", "look"))
    resumed = turn(2, refund, look, "ship", reordered=(1, 0))

    first = joined_turns([resumed, turn(3, "look")]).trajectory
    second = joined_turns([turn(1, "look", "refund"), resumed]).trajectory

    assert ("look", "refund", "ship", "look") == first.having_waited().names
    assert (("look", "refund", "ship"), ()) == (second.names, second.reordered)


def test_a_turn_that_an_earlier_version_stored() -> None:
    """A turn without the other order of its calls is read."""
    row = json.loads(encoded_turn(turn(1, "a", reordered=(0,)), NEEDS))
    del row["reordered"]
    assert turn(1, "a") == decoded_turn(json.dumps(row).encode())


def test_completeness() -> None:
    """What a turn lacks, the conversation lacks; it begins as the first turn, and pauses as the last."""
    whole = Completeness()
    begins, waits = Completeness(begin_unseen=True), Completeness(paused=("refund",))
    lost = Completeness(spans_missing=2, truncated=True)

    def seen(*each: Completeness, **more: Any) -> Completeness:
        turns = [turn(number, "a", completeness=one) for number, one in enumerate(each)]
        return joined_turns(turns, **more).trajectory.completeness

    assert whole == seen(whole, whole)
    assert begins == seen(begins, whole)
    assert whole == seen(whole, begins)
    assert waits == seen(whole, waits)
    assert whole == seen(waits, whole)
    assert begins == seen(whole, whole, continued=True)
    assert Completeness(spans_missing=4, truncated=True) == seen(lost, whole, lost)


def test_why_it_was_not_seen_whole() -> None:
    """Log records have no root whose end could be waited for."""
    logs = Completeness(from_logs=True)
    whole = turn(1, "a")
    timed_out = turn(2, "a")._replace(close_reason=CloseReason.TIMED_OUT)
    logged = turn(3, "a", completeness=logs)._replace(close_reason=CloseReason.TIMED_OUT)

    assert CloseReason.ROOT_ENDED == joined_turns([whole, logged]).close_reason
    assert CloseReason.TIMED_OUT == joined_turns([timed_out, whole]).close_reason
    assert joined_turns([logged]).trajectory.completeness.from_logs
    assert not joined_turns([whole, logged]).trajectory.completeness.from_logs


def test_a_turn_whose_calls_are_unreliable() -> None:
    """Why is kept apart: a failure that no call could mend stays one."""
    joined = joined_turns([turn(1, "a", unread="silent"), turn(2, "b")])
    assert ("silent", None) == (joined.unread, joined.trajectory.unread)
