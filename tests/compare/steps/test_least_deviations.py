from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compare.steps.all_ways import Made, least, required
from evaluators.runs import value_of
from spanscore.evaluators.expected_trajectory import ExpectedTrajectory
from spanscore.model import Skipped, ToolCall, Trajectory

TOOLS = st.sampled_from("abc")
LEAVES = st.one_of(TOOLS, st.builds(lambda tool, x: {"call": tool, "args": {"x": x}}, TOOLS, st.integers(0, 1)))
ALLOWED = {"allow": set(), "forbid": set("abc"), ("a",): set("bc"), ("!a",): {"a"}}
OTHER_CALLS = st.sampled_from(sorted(ALLOWED, key=str))


def patterns(*groups: str) -> st.SearchStrategy[Any]:
    """Steps of these kinds, with no more than four calls."""

    def group(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        rows = st.lists(below, max_size=2)
        kinds: dict[str, st.SearchStrategy[Any]] = {
            "row": rows,
            "optional": st.builds(lambda row: {"optional": row}, rows),
            "one_of": st.builds(lambda branches: {"one_of": branches}, st.lists(rows, min_size=1, max_size=2)),
            "any_order": st.builds(lambda row: {"any_order": row}, st.lists(below, max_size=3)),
            "parallel": st.builds(lambda row: {"parallel": row}, st.lists(below, max_size=3)),
            "turn": st.builds(lambda row: {"turn": row}, st.lists(below, max_size=3)),
            "repeat": st.builds(
                lambda row, least, most: {"repeat": row, "min": least, "max": most},
                rows,
                st.integers(0, 1),
                st.sampled_from([1, 2, None]),
            ),
        }
        return st.one_of(*(kinds[each] for each in groups))

    return st.recursive(LEAVES, group, max_leaves=4)


@st.composite
def runs(draw: st.DrawFn, most: int) -> list[Made]:
    """Calls in turns that follow each other."""
    turn, found = 0, []
    for _ in range(draw(st.integers(0, most))):
        turn += draw(st.integers(0, 1))
        found.append(Made(draw(TOOLS), draw(st.sampled_from([None, {"x": 0}, {"x": 1}])), turn))
    return found


def value(steps: list[Any], calls: list[Made], other_calls: Any) -> float | str:
    """The value of a run, or why the steps are refused."""
    try:
        evaluator = ExpectedTrajectory(steps=tuple(steps), other_calls=other_calls)
    except ValueError as error:
        return str(error)
    made = [ToolCall(name=call.name, arguments=call.args or {}, turn=call.turn) for call in calls]
    return value_of(evaluator.evaluate(Trajectory(calls=tuple(made))))


def expected_value(steps: list[Any], calls: list[Made], other_calls: Any) -> float:
    """The value by the formula, of what deviates at least."""
    unexpected = ALLOWED[other_calls]
    total = required(steps) + sum(call.name in unexpected for call in calls)
    return max(0.0, 1 - least(steps, calls, unexpected) / total) if total else 1.0


@given(st.lists(patterns("row", "optional", "one_of", "any_order", "repeat"), max_size=2), runs(3), OTHER_CALLS)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_like_all_ways(steps: list[Any], calls: list[Made], other_calls: Any) -> None:
    """The value is that of the best of all alignments with all ways of making the steps."""
    assert value(steps, calls, other_calls) == expected_value(steps, calls, other_calls)


@given(st.lists(patterns("row", "any_order", "parallel", "turn", "one_of"), max_size=2), runs(4), OTHER_CALLS)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_like_all_ways_with_turns(steps: list[Any], calls: list[Made], other_calls: Any) -> None:
    """So it is where calls have to be asked together, unless members that need that compete for calls."""
    found = value(steps, calls, other_calls)

    if isinstance(found, str):
        assert "cannot stand in a member of a group" in found
    else:
        assert found == expected_value(steps, calls, other_calls)


def test_entered_again_while_the_turn_goes_on() -> None:
    """What a turn saved that is not over yet does not show; nothing is forgotten for it."""
    steps = [{"call": "a", "args": {"x": 0}}, {"parallel": [{"turn": ["a", "a"]}]}]
    calls = [Made("a"), Made("a")]

    assert value(steps, calls, ("!a",)) == expected_value(steps, calls, ("!a",))


def test_first_of_equal_calls() -> None:
    """Of calls that fit equally well, the earlier one takes the step; one that fits is preferred to one that may."""
    alignment = ExpectedTrajectory(steps=("a", {"call": "b", "args": {"x": 1}})).evaluate(
        Trajectory(calls=tuple(ToolCall(name=name, arguments={"x": x}) for name, x in (("a", 0), ("b", 2), ("b", 1))))
    )

    assert [each["call"] for each in alignment.details["alignment"] if each["status"] == "ok"] == [0, 2]  # type: ignore[union-attr]


def test_bounded() -> None:
    """What fits in far too many ways ends, with the reason."""
    steps = [{"repeat": [f"!{index}"], "min": 0} for index in range(500)]
    made = ["a"] * 10_000
    outcome = ExpectedTrajectory(steps=tuple(steps), other_calls="forbid").evaluate(
        Trajectory(calls=tuple(ToolCall(name=name) for name in made))
    )

    assert isinstance(outcome, Skipped)
    assert "too many calls fit too many steps" in outcome.reason
