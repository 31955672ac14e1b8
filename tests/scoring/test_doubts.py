"""Runs of which some earlier calls are in doubt: an outcome counts if those calls make no difference."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from spanscore.model import Outcome, Score, Skipped, ToolCall, Trajectory
from spanscore.scoring.doubts import with_doubts

LOOKUP = ToolCall(name="lookup_order", restored=True)
REFUND = ToolCall(name="issue_refund", restored=True)
SHIP = ToolCall(name="ship")
BEFORE_SHIPPING = "whether lookup_order was made before the pause cannot be told"


def required(*names: str) -> Callable[[Trajectory], Outcome]:
    """Return an evaluation that passes if all these tools were called."""
    return lambda run: Score(1.0, passed=set(names) <= set(run.names))


def forbidden(name: str) -> Callable[[Trajectory], Outcome]:
    """Return an evaluation that passes if this tool was not called."""
    return lambda run: Score(1.0, passed=name not in run.names)


@pytest.mark.parametrize(
    ("uncertain", "refused", "evaluate", "expected"),
    [
        ((), (), required("ship"), True),
        ((LOOKUP,), (), required("ship"), True),
        ((LOOKUP,), (), required("lookup_order"), BEFORE_SHIPPING),
        ((LOOKUP,), (), forbidden("lookup_order"), BEFORE_SHIPPING),
        ((), (REFUND,), required("issue_refund"), "issue_refund was refused"),
        ((), (REFUND,), forbidden("issue_refund"), True),
        ((), (REFUND,), forbidden("ship"), False),
        ((LOOKUP,), (REFUND,), required("issue_refund"), "issue_refund was refused"),
        ((LOOKUP,), (REFUND,), required("lookup_order"), BEFORE_SHIPPING),
        ((LOOKUP,), (), lambda _: Skipped("no expectation"), "no expectation"),
    ],
)
def test_a_difference_is_no_verdict(
    uncertain: tuple[ToolCall, ...],
    refused: tuple[ToolCall, ...],
    evaluate: Callable[[Trajectory], Outcome],
    expected: bool | str,  # noqa: FBT001 - the label, or the reason
) -> None:
    """An uncertain call must not matter; a refused one only where its refusal breaks the rule."""
    outcome = with_doubts(Trajectory(calls=(SHIP,), uncertain=uncertain, refused=refused), evaluate)

    assert expected == (outcome.reason if isinstance(outcome, Skipped) else outcome.passed)  # type: ignore[union-attr]


def first(name: str) -> Callable[[Trajectory], Outcome]:
    """Return an evaluation that passes if this tool was called first."""
    return lambda run: Score(1.0, passed=run.names[0] == name)


@pytest.mark.parametrize(("name", "passes"), [("issue_refund", True), ("ship", False)])
def test_a_call_refused_in_the_trace_of_its_run_is_put_where_it_was_asked_for(name: str, passes: bool) -> None:  # noqa: FBT001
    """Behind the calls that began before it, and before the later ones."""
    refund = ToolCall(name="issue_refund", start_ns=5)
    made = (LOOKUP, ToolCall(name="check", start_ns=4), ToolCall(name="ship", start_ns=6))
    outcome = with_doubts(
        Trajectory(calls=made, refused=(refund,)), lambda run: Score(1.0, passed=run.names[2:3] == (name,))
    )

    assert passes == isinstance(outcome, Skipped)


@pytest.mark.parametrize("name", ["lookup_order", "issue_refund"])
def test_calls_before_a_pause_that_may_have_had_another_order(name: str) -> None:
    """A rule about their order is skipped; others are not."""
    run = Trajectory(calls=(REFUND, LOOKUP, SHIP), reordered=(1, 0))

    assert with_doubts(run, first(name)) == Skipped(
        "the order of lookup_order, issue_refund before the pause cannot be told"
    )
    assert with_doubts(run, required("ship")) == Score(1.0, passed=True)


def test_answers_from_elsewhere_are_waited_for() -> None:
    """Each of them wakes the owner; the outcome is there with the last one."""
    asked: list[tuple[Trajectory, Future[Outcome]]] = []

    def evaluate(run: Trajectory) -> Future[Outcome]:
        asked.append((run, Future()))
        return asked[-1][1]

    answer = with_doubts(Trajectory(calls=(SHIP,), uncertain=(LOOKUP,)), evaluate)
    assert not isinstance(answer, (Score, Skipped))
    woken: list[object] = []
    answer.add_done_callback(woken.append)

    done = []
    for run, future in asked:
        future.set_result(Score(1.0, passed="lookup_order" in run.names))
        done.append(answer.done())

    assert ([False, True], 2) == (done, len(woken))
    assert Skipped(BEFORE_SHIPPING) == answer.result(0)


def times(count: int) -> Callable[[Trajectory], Outcome]:
    """Return an evaluation that passes if the refund was called so often."""
    return lambda run: Score(1.0, passed=run.names.count("issue_refund") == count)


def test_the_last_uncertain_calls_may_have_been_refused() -> None:
    """Neither without them nor with all of them the refund was made once."""
    run = Trajectory(calls=(SHIP,), uncertain=(LOOKUP, REFUND, REFUND))

    outcome = with_doubts(run, times(1))

    assert Skipped("whether lookup_order, issue_refund was made before the pause cannot be told") == outcome


def test_many_uncertain_calls_are_looked_at_together() -> None:
    """A specialist may have been handed thousands."""
    evaluated = []
    run = Trajectory(calls=(SHIP,), uncertain=(LOOKUP,) * 1_000)

    with_doubts(run, lambda each: evaluated.append(len(each.calls)) or Score(1.0, passed=True))

    assert [1, 1_001] == evaluated


def healthy(run: Trajectory) -> Outcome:
    """Return an evaluation that passes if no call failed."""
    return Score(1.0, passed=all(call.error is None for call in run.calls))


DOUBTED = ToolCall(name="issue_refund", may_be_refused=True)
NOT_TOLD = "whether issue_refund was made cannot be told"


@pytest.mark.parametrize(
    ("calls", "evaluate", "expected"),
    [
        ((SHIP, DOUBTED), forbidden("issue_refund"), NOT_TOLD),
        ((SHIP, DOUBTED), forbidden("ship"), False),
        ((SHIP, DOUBTED), required("ship"), True),
        ((DOUBTED, DOUBTED), times(1), NOT_TOLD),
        ((DOUBTED,) * 5, times(1), NOT_TOLD),
        ((DOUBTED,) * 5, times(4), NOT_TOLD),
        ((DOUBTED,) * 5, required("ship"), False),
        ((ToolCall(name="ship", may_have_failed=True),), healthy, "whether ship failed cannot be told"),
        ((ToolCall(name="ship", may_have_failed=True),), required("ship"), True),
    ],
)
def test_a_call_that_content_would_decide_must_not_matter(
    calls: tuple[ToolCall, ...],
    evaluate: Callable[[Trajectory], Outcome],
    expected: bool | str,  # noqa: FBT001 - the label, or the reason
) -> None:
    """Each of several such calls may have been refused by itself."""
    outcome = with_doubts(Trajectory(calls=calls), evaluate)

    assert expected == (outcome.reason if isinstance(outcome, Skipped) else outcome.passed)  # type: ignore[union-attr]
