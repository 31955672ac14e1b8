from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, NO_ARGUMENTS, NO_RESULTS, aligned, around_its_value, called, details_of, value_of
from spanscore.compare.matching import common_subsequence
from spanscore.evaluators.expected_trajectory import ExpectedTrajectory
from spanscore.evaluators.tool_call_order import ToolCallOrder
from spanscore.model import Score, Skipped, ToolCall, Trajectory
from spanscore.testing import check_evaluator

NAMES = st.lists(st.sampled_from("abc"), max_size=6)
REFUND: list[Any] = [
    "lookup_order",
    {"any_order": ["check_policy", "check_stock"]},
    {
        "call": "issue_refund",
        "args": {"order": {"$from": "lookup_order", "path": "/id"}, "amount": {"$near": 40, "within": 0.01}},
    },
    {"optional": ["send_survey"]},
]


def value(steps: Sequence[Any], *names: str, **parameters: Any) -> float:
    """The value of a run that called these tools."""
    return value_of(ExpectedTrajectory(steps=tuple(steps), **parameters).evaluate(called(*names)))


def kinds(outcome: object) -> list[tuple[str, str | None, int | None]]:
    """The deviations: kind, step and call."""
    return [(each["kind"], each["step"], each["call"]) for each in details_of(outcome)["deviations"]]


def evaluated(steps: Sequence[Any], run: Trajectory, **parameters: Any) -> Any:
    """What is said of a run."""
    return ExpectedTrajectory(steps=tuple(steps), **parameters).evaluate(run)


def refund(amount: float, order: str = "4711") -> Trajectory:
    """A run that looks up an order and refunds it."""
    return Trajectory(
        calls=(
            ToolCall(name="lookup_order", arguments={}, result={"id": "4711"}),
            ToolCall(name="check_stock", arguments={}),
            ToolCall(name="check_policy", arguments={}),
            ToolCall(name="issue_refund", arguments={"order": order, "amount": amount}, span_id=bytes(8)),
        )
    )


class TestValue:
    def test_as_expected(self) -> None:
        """A run that does what the steps say has the value 1, within the tolerance of its arguments."""
        outcome = evaluated(REFUND, refund(40.005))

        assert value_of(outcome) == 1.0
        assert details_of(outcome)["deviations"] == []
        assert getattr(outcome, "explanation", "") == "No deviation. Score 1."

    def test_wrong_argument(self) -> None:
        """A call with wrong arguments takes its step, counts as one, and is explained down to the argument."""
        outcome = evaluated(REFUND, refund(400))

        expected = Score(
            value=0.75,
            passed=False,
            explanation=(
                "1 deviation: issue_refund.amount: expected 40 ± 0.01, got 400 (call 4). Score 0.75 = 1 - 1/4."
            ),
            details={
                "deviations": [
                    {
                        "kind": "arguments",
                        "tool": "issue_refund",
                        "step": "steps[2]",
                        "call": 3,
                        "span_id": "00" * 8,
                        "reason": "issue_refund.amount: other value",
                        "path": "amount",
                        "expected": "40 ± 0.01",
                        "actual": 400,
                    }
                ],
                "alignment": [
                    {"expected": "lookup_order", "actual": "lookup_order", "status": "ok", "call": 0},
                    {"expected": "check_stock", "actual": "check_stock", "status": "ok", "call": 1},
                    {"expected": "check_policy", "actual": "check_policy", "status": "ok", "call": 2},
                    {"expected": "issue_refund", "actual": "issue_refund", "status": "arguments", "call": 3},
                ],
            },
            without_content=(
                "1 deviation: issue_refund.amount: not the expected value (call 4). Score 0.75 = 1 - 1/4."
            ),
        )
        assert outcome == expected

    def test_missing_and_unexpected(self) -> None:
        """A step without its call is one deviation, and a call that is not allowed another."""
        outcome = evaluated(["a", "b"], called("a", "x"), other_calls="forbid")

        assert value_of(outcome) == 1 - 2 / (2 + 2)
        assert sorted(kinds(outcome)) == [("missing", "steps[1]", None), ("unexpected", None, 1)]

    def test_other_order(self) -> None:
        """A call at the wrong place is told as that: its step is missing, and where it is allowed nothing else is."""
        outcome = evaluated(["a", "b", "c"], called("b", "c", "a"))

        assert value_of(outcome) == 1 - 1 / 3
        assert kinds(outcome) == [("order", "steps[0]", 2)]
        assert aligned(outcome) == [
            ("a", None, "order"),
            ("b", "b", "ok"),
            ("c", "c", "ok"),
            (None, "a", "ignored"),
        ]

    def test_a_call_at_a_wrong_place_that_is_forbidden(self) -> None:
        """Two deviations are told, and the second one does not read as if the tool were unknown."""
        outcome = evaluated(["a", "b", "c"], called("b", "c", "a"), other_calls="forbid")

        assert outcome.explanation == (
            "2 deviations: a was called out of order (call 3); a was not expected at this place (call 3). "
            "Score 0.6667 = 1 - 2/6."
        )

    def test_first_three_in_words(self) -> None:
        """The explanation tells the first three deviations, and how many more there are."""
        outcome = evaluated(["a", "b", "c", "d", "e"], called())

        words = "5 deviations: a was not called; b was not called; c was not called; 2 more. Score 0 = 1 - 5/5."
        assert words == outcome.explanation

    def test_a_value_below_1_does_not_read_as_1(self) -> None:
        """One deviation in many calls is still one."""
        outcome = evaluated([{"repeat": ["a"]}, "b"], called(*"a" * 9_999), other_calls="forbid")

        assert outcome.explanation == "1 deviation: b was not called. Score 0.9999 = 1 - 1/10001."

    def test_threshold(self) -> None:
        """A run passes with exactly the threshold."""
        assert around_its_value(ExpectedTrajectory(steps=("a", "b", "c")), called("a")) == (
            1 - 2 / 3,
            [True, True, False],
        )

    @pytest.mark.parametrize(
        ("steps", "names", "expected"),
        [
            ([], [], 1.0),
            ([], ["a"], 1.0),
            (["lookup_*"], ["lookup_order"], 1.0),
            (["!a"], ["a"], 0.0),
            (["!a"], ["b"], 1.0),
            ([{"any_order": ["a", "b", "c"]}], ["c", "a", "b"], 1.0),
            ([{"any_order": [["a", "b"], ["c", "d"]]}], ["a", "c", "d", "b"], 1.0),
            ([{"any_order": [["a", "b"], ["c", "d"]]}], ["b", "c", "d", "a"], 0.75),
            ([{"one_of": [["a"], ["b", "c"]]}], ["b", "c"], 1.0),
            ([{"one_of": [["a", "b"]]}], ["b", "a"], 0.5),
            ([{"repeat": ["a"]}], ["a"] * 9, 1.0),
            ([{"repeat": ["a"]}], [], 0.0),
            ([{"repeat": ["a"], "min": 3}], ["a", "a"], 1 - 1 / 3),
            ([{"repeat": ["a"], "min": 0}], [], 1.0),
            ([{"repeat": ["a", "b"]}, "c"], ["a", "b", "a", "b", "c"], 1.0),
            ([{"optional": ["a"]}, "b"], ["b"], 1.0),
        ],
    )
    def test_steps(self, steps: list[Any], names: list[str], expected: float) -> None:
        """What each kind of step allows, other calls being allowed."""
        assert value(steps, *names) == pytest.approx(expected)

    def test_repeat_has_an_end(self) -> None:
        """A call more than `max` is another call: allowed, or one deviation of the calls made and required."""
        steps = [{"repeat": ["a"], "max": 2}]

        assert value(steps, "a", "a", "a") == 1.0
        assert value(steps, "a", "a", "a", other_calls="forbid") == 1 - 1 / (1 + 3)

    def test_other_calls_by_globs(self) -> None:
        """With a list, the calls outside it may be unexpected, expected or not; `!` takes out of it."""
        other_calls = ("get_*", "!get_secret")

        assert value(["a"], "a", "get_time", other_calls=other_calls) == 1.0
        assert value(["a"], "a", "get_secret", other_calls=other_calls) == 1 - 1 / (1 + 2)
        assert value(["a"], "a", "b", other_calls=("!b",)) == 1 - 1 / (1 + 1)

    def test_failed_calls_left_out(self) -> None:
        """With `ignore_failed`, the others are compared, and keep their numbers."""
        run = Trajectory(calls=(ToolCall(name="a", error="boom"), ToolCall(name="b")))

        outcome = evaluated(["b", "a"], run, ignore_failed=True, other_calls="forbid")

        assert value_of(outcome) == 1 - 1 / (2 + 1)
        assert kinds(outcome) == [("missing", "steps[1]", None)]
        assert details_of(outcome)["alignment"][0]["call"] == 1

    def test_errors(self) -> None:
        """A step may want that its call fails, or that it does not."""
        run = Trajectory(calls=(ToolCall(name="a", error="boom"), ToolCall(name="b")))
        outcome = evaluated([{"call": "a", "error": False}, {"call": "b", "error": True}], run)

        assert value_of(outcome) == 0.0
        assert "a failed: boom (call 1); b was expected to fail, but did not (call 2)." in outcome.explanation
        assert "boom" not in outcome.without_content
        assert value_of(evaluated([{"call": "a", "error": True}, {"call": "b", "error": "any"}], run)) == 1.0

    def test_names_are_normalised(self) -> None:
        """Names are compared as the parameters say, those of `other_calls` too."""
        assert value(["search"], "mcp__x__search", tool_names="canonical") == 1.0
        assert value(["find"], "search", tool_names="canonical", aliases={"find": "search"}) == 1.0


class TestTogether:
    def test_turn(self) -> None:
        """Calls of a turn are asked in one, and what follows in a later one."""
        steps = [{"turn": ["a", "b"]}, "c"]

        assert value_of(evaluated(steps, in_turns(("b", 0), ("a", 0), ("c", 1)))) == 1.0
        assert kinds(evaluated(steps, in_turns(("a", 0), ("b", 1), ("c", 2)))) == [("order", "steps[0].turn[1]", 1)]
        assert kinds(evaluated(steps, in_turns(("a", 0), ("b", 0), ("c", 0)))) == [("order", "steps[1]", 2)]

    def test_parallel_in_a_turn(self) -> None:
        """Parallel calls are asked in one turn; what follows may be of the same."""
        steps = [{"parallel": ["a", "b"]}, "c"]

        assert value_of(evaluated(steps, in_turns(("b", 0), ("a", 0), ("c", 0)))) == 1.0
        assert value_of(evaluated(steps, in_turns(("b", 0), ("a", 1), ("c", 1)))) == pytest.approx(2 / 3)

    def test_parallel_in_time(self) -> None:
        """Parallel calls of which no turn is known ran at one time."""
        steps = [{"parallel": ["a", "b", "c"]}]

        assert value_of(evaluated(steps, at(("a", 1, 5), ("b", 2, 6), ("c", 4, 9)))) == 1.0
        assert value_of(evaluated(steps, at(("a", 1, 3), ("b", 2, 6), ("c", 4, 9)))) == pytest.approx(2 / 3)

    def test_not_recorded(self) -> None:
        """Without turn and times nothing is known of what was parallel; a turn is not told by times."""
        assert evaluated([{"parallel": ["a", "b"]}], called("a", "b")) == Skipped(
            "neither model turn nor times were recorded for 'a' (call 1), which may take a 'parallel' step"
        )
        assert isinstance(evaluated([{"turn": ["a"]}], at(("a", 1, 2))), Skipped)
        assert value_of(evaluated([{"turn": ["a"]}, "b"], called("b"))) == 0.5


class TestAgents:
    STEPS = ("a", {"agent": "res*", "steps": ["search", "read"], "other_calls": "forbid"}, "b")

    def test_own_steps(self) -> None:
        """Steps of an agent are taken by its calls only, and other calls stand beside."""
        run = by(("a", "main"), ("search", "main"), ("search", "research"), ("x", "main"), ("read", "research"))

        assert kinds(evaluated(self.STEPS, run)) == [("missing", "steps[2]", None)]

    def test_own_other_calls(self) -> None:
        """What an agent may call besides, its block says."""
        run = by(
            ("a", "main"), ("x", "main"), ("search", "research"), ("x", "research"), ("read", "research"), ("b", "")
        )
        outcome = evaluated(self.STEPS, run)

        assert kinds(outcome) == [("unexpected", None, 3)]
        assert value_of(outcome) == 1 - 1 / (4 + 3)

    def test_inside_another(self) -> None:
        """Steps of an agent inside those of another are taken by the inner one's calls, in their place."""
        inner = {"agent": "reader", "steps": ["read"], "other_calls": "forbid"}
        steps = [{"agent": "research", "steps": ["search", inner, "write"], "other_calls": "forbid"}]
        run = by(("search", "research"), ("read", "reader"), ("write", "research"))

        assert kinds(evaluated(steps, run)) == []
        assert kinds(evaluated(steps, by(("search", "research"), ("read", "research"), ("write", "research")))) == [
            ("missing", "steps[0].steps[1].steps[0]", None),
            ("unexpected", None, 1),
        ]

    def test_not_recorded(self) -> None:
        """Where no call has an agent, nothing is known."""
        assert evaluated(self.STEPS, called("a")) == Skipped(
            "the agents that made the calls were not recorded, and the steps name agents"
        )


class TestSkipped:
    STEPS = ("a", {"call": "b", "args": {"x": 1}}, {"call": "c", "result": 1})

    def test_arguments(self) -> None:
        """Arguments that a step compares and that were not recorded are named, unless the names alone deviate."""
        run = Trajectory(
            calls=(ToolCall(name="a"), ToolCall(name="b"), ToolCall(name="c", result=1)), completeness=NO_ARGUMENTS
        )

        assert evaluated(self.STEPS, run) == Skipped(
            "not recorded: the arguments of 'b' (call 2), which a step compares"
        )
        assert kinds(evaluated(("z", *self.STEPS), run)) == [("missing", "steps[0]", None)]

    def test_results(self) -> None:
        """So are results, and earlier ones that an argument comes from."""
        calls = (ToolCall(name="a", arguments={}), ToolCall(name="b", arguments={"x": 1}), ToolCall(name="c"))
        run = Trajectory(calls=calls, completeness=NO_RESULTS)
        from_a = {"call": "b", "args": {"x": {"$from": "a"}}}

        assert "'c' (call 3)" in evaluated(self.STEPS, run).reason
        assert "'b' (call 2)" in evaluated(["a", from_a], run).reason
        not_from_a = {"call": "b", "args": {"x": {"$not": {"$from": "a"}}}}
        assert "'b' (call 2)" in evaluated(["a", not_from_a], run).reason
        assert value_of(evaluated(["a", "b"], run)) == 1.0

    def test_cut_off(self) -> None:
        """What is missing may be in the part that was not received."""
        assert isinstance(evaluated(["a", "b"], called("a", completeness=CUT_OFF)), Skipped)
        assert value_of(evaluated(["a"], called("a", completeness=CUT_OFF))) == 1.0

    def test_too_many_calls(self) -> None:
        """There is an end to what is compared."""
        assert isinstance(evaluated(["a"], called(*["a"] * 10_001)), Skipped)


class TestProperties:
    @given(NAMES.filter(bool), NAMES)
    def test_names_are_tool_call_order(self, steps: list[str], made: list[str]) -> None:
        """Plain names have the value of `tool_call_order`, where other calls are allowed."""
        order = ToolCallOrder(tool_calls_order=tuple(steps))

        assert value(steps, *made) == pytest.approx(value_of(order.evaluate(called(*made))))

    @given(NAMES, NAMES)
    def test_names_are_the_longest_common_subsequence(self, steps: list[str], made: list[str]) -> None:
        """Where they are forbidden, it is 2 LCS / (n + m)."""
        total = len(steps) + len(made)
        expected = 2 * len(common_subsequence(made, steps)) / total if total else 1.0

        assert value(steps, *made, other_calls="forbid") == pytest.approx(expected)

    @given(NAMES, NAMES)
    def test_any_order_is_a_multiset(self, steps: list[str], made: list[str]) -> None:
        """Names in any order are compared as multisets."""
        shared = (Counter(steps) & Counter(made)).total()
        total = len(steps) + len(made)

        assert value([{"any_order": steps}], *made) == pytest.approx(shared / len(steps) if steps else 1.0)
        assert value([{"any_order": steps}], *made, other_calls="forbid") == pytest.approx(
            2 * shared / total if total else 1.0
        )

    @given(st.sets(st.sampled_from("abcdef"), max_size=4), NAMES)
    def test_permuted(self, members: set[str], around: list[str]) -> None:
        """The order of calls does not matter within a group."""
        steps = [*around, {"any_order": sorted(members)}, *around]

        assert {value(steps, *around, *each, *around) for each in permutations(members)} == {1.0}

    @given(NAMES, NAMES, st.sampled_from(["allow", "forbid", ("a",)]))
    def test_mended(self, names: list[str], made: list[str], other_calls: Any) -> None:
        """The value never falls when a deviation is mended."""
        half = len(names) // 2
        steps = [*names[:half], {"any_order": names[half:]}]
        outcome = evaluated(steps, called(*made), other_calls=other_calls)
        for each in details_of(outcome)["deviations"]:
            if each["kind"] == "unexpected":
                runs = [made[: each["call"]] + made[each["call"] + 1 :]]
            else:
                runs = [[*made[:place], each["tool"], *made[place:]] for place in range(len(made) + 1)]
            mended = max(value(steps, *run, other_calls=other_calls) for run in runs)

            assert mended >= value_of(outcome) - 1e-12


def test_contract() -> None:
    """The evaluator keeps the contract of evaluators."""
    check_evaluator(ExpectedTrajectory(steps=tuple(REFUND)))


def test_in_another_process() -> None:
    """It can be sent to the process of a time limit, and is the same there."""
    evaluator = ExpectedTrajectory(steps=tuple(REFUND), other_calls=("get_*",), threshold=0.5)
    received = pickle.loads(pickle.dumps(evaluator))

    assert received == evaluator
    assert received.evaluate(refund(400)) == evaluator.evaluate(refund(400))


def in_turns(*calls: tuple[str, int]) -> Trajectory:
    """A run of calls, each with the turn in which it was asked."""
    return Trajectory(calls=tuple(ToolCall(name=name, turn=turn) for name, turn in calls))


def at(*calls: tuple[str, int, int]) -> Trajectory:
    """A run of calls, each with its start and end."""
    return Trajectory(calls=tuple(ToolCall(name=name, start_ns=start, end_ns=end) for name, start, end in calls))


def by(*calls: tuple[str, str]) -> Trajectory:
    """A run of calls, each with the agent that made it."""
    return Trajectory(calls=tuple(ToolCall(name=name, agent=agent) for name, agent in calls))
