"""Open conversations: their revisions, their ends, and their bounds."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.conversations.turns import (
    add,
    executed,
    holding,
    labels,
    outcome,
    paused,
    pipeline,
    report,
    trace_id,
    turn,
)
from spanscore.model import Failed, FinishReason, Score, Skipped
from spanscore.reports.serialization import report_object
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.known_outcomes import CONTINUED, FURTHER

END: Final = FinishReason.END_OF_INPUT
PASSES: Final = {"once": "pass", "order": "pass", "told": "pass"}


def accounted(held: Conversations) -> bool:
    """Return whether each turn is in one place."""
    counts = held.counts()
    return counts.received == counts.in_finished + counts.in_open + counts.without_key + counts.late


def told(made: Any) -> dict[str, Any]:
    """Return a report as it is written."""
    return report_object(made)


TOOLS = st.lists(st.sampled_from(["look", "refund", "tell"]), max_size=3)


@given(
    st.dictionaries(st.integers(0, 5), st.lists(st.tuples(st.sampled_from("ab"), TOOLS), min_size=1, max_size=3)),
    st.randoms(use_true_random=False),
)
def test_the_last_revision_is_a_function_of_the_set_of_turns(
    traces: dict[int, list[tuple[str, list[str]]]], rnd: random.Random
) -> None:
    """In whichever order turns and their revisions come, however often; a revision may name another one."""
    received = [
        (turn(number, *tools, of=name), revision)
        for number, revisions in traces.items()
        for revision, (name, tools) in enumerate(revisions)
    ]
    mixed = received * 2
    rnd.shuffle(mixed)
    in_order, any_order = holding(), holding()
    for held, each in ((in_order, received), (any_order, mixed)):
        for one, revision in each:
            add(held, one, revision=revision)
            assert accounted(held)
    ends = [{each.conversation.key: told(report(each)) for each in held.finish(END)} for held in (in_order, any_order)]

    assert ends[0] == ends[1]
    assert len(traces) == any_order.counts().received == any_order.counts().in_finished
    assert 0 == any_order.size == in_order.size


def test_a_revision_after_each_turn() -> None:
    """Only a failure that nothing later mends is one; the rest waits for the end."""
    held = holding()
    first = report(*add(held, turn(1, "look", "refund", "tell")))
    second = report(*add(held, turn(2, "refund")))
    (last,) = held.finish(END)

    assert dict.fromkeys(PASSES, "not_evaluated") == labels(first)
    assert {Skipped(FURTHER)} == {each.outcome for each in first.evaluations}
    assert {"once": "fail", "order": "not_evaluated", "told": "not_evaluated"} == labels(second)
    assert {"once": "fail", "order": "pass", "told": "fail"} == labels(report(last))
    assert [False, False, True] == [each.complete for each in (first, second, report(last))]
    assert [1, 2, 2] == [each.revision for each in (first, second, report(last))]


def test_a_good_second_turn_passes() -> None:
    """What the first one looked up counts."""
    held = holding()
    add(held, turn(1, "look"), turn(2, "refund", "tell"))
    assert PASSES == outcome(held.finish(END))


def test_explanations_name_the_turn() -> None:
    """Also where calls are left out before evaluating."""
    text = """
        conversations: {}
        evaluators:
          once: {type: tool_policy, over: conversation, ignore_tools: [look], max_calls_per_tool: {refund: 1}}
    """
    held = holding()
    add(held, turn(1, "look", "refund"), turn(2, "look", "look", "refund"))
    (last,) = held.finish(END)
    (evaluation,) = report(last, pipeline(text)).evaluations

    assert isinstance(evaluation.outcome, Score)
    assert evaluation.outcome.explanation.endswith("(call 5). Call 5 is call 3 of turn 2.")


def test_a_pause_at_the_end() -> None:
    """What a later part could change is skipped, as in a run."""
    held = holding()
    add(held, turn(1, "look", "refund", completeness=paused("tell")))
    (last,) = held.finish(END)

    assert {"once": "not_evaluated", "order": "not_evaluated", "told": "not_evaluated"} == labels(report(last))
    assert {Skipped("the run pauses for tell")} == {each.outcome for each in report(last).evaluations}


def test_a_pause_in_between() -> None:
    """The next turn goes on."""
    held = holding()
    add(held, turn(1, "look", completeness=paused("refund")), turn(2, "refund", "tell"))
    assert PASSES == outcome(held.finish(END))


def test_an_unreadable_turn() -> None:
    """Nothing passes with it, and a double refund stays one."""
    held = holding()
    add(held, turn(1, "refund", "refund"), turn(2, unread="silent"))
    (last,) = held.finish(END)
    made = report(last)

    assert {"once": "fail", "order": "not_evaluated", "told": "not_evaluated"} == labels(made)
    assert Skipped("silent") in [each.outcome for each in made.evaluations]


def test_services_have_conversations_of_their_own() -> None:
    """Two programs may count from 0."""
    held = holding()
    add(held, turn(1, "look", "refund", "tell"), turn(2, "look", "refund", "tell", service="other"))
    assert [PASSES, PASSES] == [labels(report(each)) for each in held.finish(END)]


def test_names_that_run_into_each_other() -> None:
    """Neither a NUL nor a digit joins the service of one with the id of another."""
    held = holding()
    pairs = [("a", "b"), ("ab", ""), ("a\0b", "c"), ("a", "b\0c"), ("1:a", "b"), ("", "1:ab")]
    for number, (service, name) in enumerate(pairs):
        add(held, turn(number, of=name or "x", service=service))
    assert len(pairs) == held.counts().open


@pytest.mark.parametrize(
    ("key", "fields", "is_turn"),
    [
        (("user.id", "gen_ai.conversation.id"), {"of": "c"}, True),
        (("user.id",), {"of": "c"}, False),
        (("user.id",), {"attributes": {"user.id": "u"}}, True),
        (("user.id",), {"attributes": {"user.id": 7}}, True),
        (("user.id",), {"attributes": {"user.id": True}}, False),
        (("user.id",), {"attributes": {"user.id": ""}}, False),
        (("gen_ai.conversation.id",), {"of": None, "attributes": {"gen_ai.conversation.id": "c"}}, True),
        (("gen_ai.conversation.id",), {"of": None}, False),
    ],
)
def test_keys(key: tuple[str, ...], fields: dict[str, Any], *, is_turn: bool) -> None:
    """The first attribute that is there; a trace without one is counted, and no turn."""
    held = holding(key=key)
    add(held, turn(1, "look", **fields))
    counts = held.counts()

    assert (is_turn, not is_turn) == (bool(counts.in_open), bool(counts.without_key))
    assert accounted(held)


def test_the_first_key_goes_before() -> None:
    """The second turn has another one as well."""
    held = holding(key=("user.id", "gen_ai.conversation.id"))
    add(
        held,
        turn(1, of="c"),
        turn(2, of="c", attributes={"user.id": "u"}),
        turn(3, of="d", attributes={"user.id": "u"}),
    )
    assert 2 == held.counts().open


def test_several_conversations_in_a_trace() -> None:
    """It is a turn of one, and counted."""
    held = holding()
    add(held, turn(1, several_conversations=True), turn(2))
    assert (1, 2) == (held.counts().ambiguous, held.counts().in_open)


def test_idle_conversations_are_finished() -> None:
    """So long after the last turn; a repeated one changes nothing."""
    held = holding(idle_s=10.0)
    add(held, turn(1), now=0.0)
    add(held, turn(2, of="d"), now=3.0)
    add(held, turn(3), now=8.0)
    add(held, turn(3), now=9.0)

    assert held.next_due() == 10.0
    assert [] == held.expire(12.9)
    assert [FinishReason.IDLE] == [each.finished for each in held.expire(13.0)]
    assert held.next_due() == 18.0
    assert held.is_due(18.0)
    assert not held.is_due(17.9)
    (last,) = held.expire(18.0)
    assert 2 == len(last.turns)
    assert held.next_due() is None
    assert {FinishReason.IDLE: 2} == held.counts().finished


def test_a_pause_waits_longer() -> None:
    """Unless another turn follows."""
    held = holding(idle_s=10.0, pause_wait_s=100.0)
    add(held, turn(1, completeness=paused("refund")), turn(2, of="d", completeness=paused("refund")), now=0.0)
    add(held, turn(3), now=5.0)

    assert [1] == [len(each.turns) - 1 for each in held.expire(15.0)]
    assert [] == held.expire(99.0)
    assert [FinishReason.IDLE] == [each.finished for each in held.expire(100.0)]


def test_one_at_a_time() -> None:
    """So that a receiver goes on between two."""
    held = holding(idle_s=1.0)
    add(held, *(turn(number, of=str(number)) for number in range(3)))

    assert [1, 1, 1, 0] == [len(held.expire(5.0, most=1)) for _ in range(4)]


def test_old_conversations_are_finished() -> None:
    """Whatever comes."""
    held = holding(idle_s=10.0, max_age_s=25.0)
    for number, now in enumerate((0.0, 9.0, 18.0, 24.0)):
        add(held, turn(number), now=now)
    (last,) = held.expire(25.0)

    assert (FinishReason.AGE_LIMIT, 4) == (last.finished, len(last.turns))


def test_a_finished_one_is_never_opened_again() -> None:
    """A later turn begins a new one, whose beginning is not known."""
    held = holding()
    add(held, turn(1, "look"))
    list(held.finish(END))
    add(held, turn(2, "refund", "tell"), turn(3, "refund"))
    (last,) = held.finish(END)
    made = report(last)

    assert last.conversation.continued
    assert made.conversation is not None
    assert made.conversation.continued
    assert Skipped(CONTINUED) in [each.outcome for each in made.evaluations]
    assert {"once": "fail", "order": "not_evaluated", "told": "fail"} == labels(made)


def test_late_revisions_are_counted() -> None:
    """Of turns in a finished conversation, and their repetitions."""
    held = holding()
    add(held, turn(1, "look"))
    list(held.finish(END))

    assert [] == add(held, turn(1, "look", "refund"), revision=1)
    assert [] == add(held, turn(1, "look"))
    counts = held.counts()
    assert (3, 1, 2, 0) == (counts.received, counts.in_finished, counts.late, counts.open)


def test_a_key_with_very_many_turns() -> None:
    """It is finished again and again, and the honest conversation beside it is whole."""
    held = holding(max_turns=5)
    add(held, turn(0, "look", of="honest"))
    ends = [each for number in range(1, 1_003) for each in add(held, turn(number, of="constant")) if each.finished]
    add(held, turn(2_000, "refund", "tell", of="honest"))

    assert {FinishReason.TURN_LIMIT: 200} == held.counts().finished
    assert {5} == {len(each.turns) for each in ends}
    assert [False] + [True] * 199 == [each.conversation.continued for each in ends]
    assert PASSES == outcome(held.finish(END))
    assert accounted(held)


def test_memory_is_bounded() -> None:
    """The conversation that is idle longest is finished first; one with turns all the time stays whole."""
    held = holding(max_bytes=20_000)
    finished = []
    for number in range(500):
        followed = add(held, turn(number, "look", of=str(number)))
        if number % 50 == 0:
            followed += add(held, turn(1_000 + number, "tell", of="busy"))
        elif number % 5 == 0:
            add(held, turn(1_000 + number // 50 * 50, "tell", of="busy"), revision=number % 50)
        finished += [each for each in followed if each.finished]
        assert held.size <= 20_000

    assert {FinishReason.EVICTED} == {each.finished for each in finished}
    assert {1} == {len(each.turns) for each in finished}
    assert accounted(held)
    assert 510 == held.counts().received
    assert 10 in [len(each.turns) for each in held.finish(END)]


def test_a_turn_that_has_no_room_alone() -> None:
    """It is evaluated all the same."""
    held = holding(max_bytes=10_000)
    large = turn(1, replace(executed(1, 0, "refund"), arguments={"text": "x" * 20_000}), executed(1, 1, "refund"))
    (only,) = add(held, large)

    assert (FinishReason.EVICTED, 0, 0) == (only.finished, held.size, held.counts().open)
    assert "fail" == labels(report(only))["once"]


def test_ids_of_any_length() -> None:
    """What is held of an id that the sender makes up is no larger than of another."""
    held = holding(max_bytes=10_000_000)
    add(held, turn(1, of="x" * 100), turn(2, of="\ud800"))
    assert {16} == {len(each.conversation.key) for each in held.finish(END)}


def test_sampling_goes_by_the_conversation() -> None:
    """All turns of it, or none."""
    text = """
        conversations: {}
        evaluators: {half: {type: tool_policy, over: conversation, sample_ratio: 0.5, forbidden: [x]}}
    """
    held = holding()
    for number in range(200):
        add(held, turn(number, of=str(number % 50)))
    evaluated = [bool(report(each, pipeline(text)).evaluations) for each in held.finish(END)]

    assert 10 < sum(evaluated) < 40


def test_evaluators_that_go_wrong() -> None:
    """They fail at the end, and are no news before it."""
    held = holding()
    text = """
        conversations: {}
        evaluators:
          from_row: {type: tool_call_count, over: conversation, expected_from: {attribute: spanscore.expected}}
    """
    (first,) = add(held, turn(1, attributes={"spanscore.expected": "{"}))
    (evaluation,) = report(first, pipeline(text)).evaluations
    assert isinstance(evaluation.outcome, Failed | Skipped)


def test_a_turn_that_cannot_be_written_changes_nothing() -> None:
    """A value that is no JSON can only come from a fault of ours."""
    held = holding()
    with pytest.raises(TypeError):
        add(held, turn(1, replace(executed(1, 0, "look"), arguments={"x": object()})))
    assert (0, 0, 0) == (held.counts().received, held.counts().open, held.size)


def test_trace_ids_are_told_in_order() -> None:
    """Whichever came first."""
    held = holding()
    add(held, turn(2, "b"), turn(1, "a"))
    (last,) = held.finish(END)
    conversation = report(last).conversation

    assert conversation is not None
    assert [(trace_id(1), 1), (trace_id(2), 1)] == [*conversation.turns]
    assert "conversation c, 2 turns" == conversation.named("c")
