from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from compare.all_ways import Made, least, required
from evaluators.runs import value_of
from spanscore.evaluators.expected_trajectory import ExpectedTrajectory
from spanscore.model import ToolCall, Trajectory

TOOLS = st.sampled_from("abc")


def run_of(calls: list[Made]) -> Trajectory:
    """A run of these calls."""
    return Trajectory(
        calls=tuple(ToolCall(name=call.name, arguments={} if call.args is None else call.args) for call in calls)
    )


def expected_value(steps: list[Any], calls: list[Made], unexpected: set[str]) -> float:
    """The value by the formula, of what deviates at least."""
    total = required(steps) + sum(call.name in unexpected for call in calls)
    return max(0.0, 1 - least(steps, calls, unexpected) / total) if total else 1.0


LEAVES = st.one_of(TOOLS, st.builds(lambda tool, x: {"call": tool, "args": {"x": x}}, TOOLS, st.integers(0, 1)))


def patterns(*groups: str) -> st.SearchStrategy[Any]:
    """Steps of no more than some calls."""

    def group(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        rows = st.lists(below, max_size=2)
        kinds: dict[str, st.SearchStrategy[Any]] = {
            "row": rows,
            "optional": st.builds(lambda row: {"optional": row}, rows),
            "one_of": st.builds(lambda rows: {"one_of": rows}, st.lists(rows, min_size=1, max_size=2)),
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


CALLS = st.lists(st.builds(Made, TOOLS, st.sampled_from([None, {"x": 0}, {"x": 1}])), max_size=3)
ALLOWED = {"allow": set(), "forbid": set("abc"), ("a",): set("bc"), ("!a",): {"a"}}


class TestLeastDeviations:
    @given(
        st.lists(patterns("row", "optional", "one_of", "any_order", "repeat"), max_size=2),
        CALLS,
        st.sampled_from(sorted(ALLOWED, key=str)),
    )
    @settings(max_examples=400, deadline=None)
    def test_like_all_ways(self, steps: list[Any], calls: list[Made], other_calls: Any) -> None:
        """The value is that of the best of all alignments with all ways of making the steps."""
        evaluator = ExpectedTrajectory(steps=tuple(steps), other_calls=other_calls)

        assert value_of(evaluator.evaluate(run_of(calls))) == expected_value(steps, calls, ALLOWED[other_calls])
