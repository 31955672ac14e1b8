from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, NO_ARGUMENTS, aligned, around_its_value, called, details_of, made, value_of
from spanscore.evaluators.tool_call_accuracy import ExpectedInput, ToolCallAccuracy, Weights
from spanscore.model import NOT_RECORDED, Score, Skipped
from spanscore.testing import check_evaluator

Mode = Literal["exact", "flexible"]

INPUTS = st.sampled_from([NOT_RECORDED, None, 1, True, {"x": 1}, {"x": True}, {}])
CALLS = st.lists(st.tuples(st.sampled_from("ab"), INPUTS), max_size=6)
WEIGHTS = st.builds(Weights, **dict.fromkeys(("exact", "name_only", "extra_penalty", "wrong_penalty"), st.floats(0, 9)))


def expecting(*calls: tuple[str, Any], **parameters: Any) -> ToolCallAccuracy:
    """An evaluator that expects these calls."""
    return ToolCallAccuracy(
        expected=tuple(ExpectedInput(name=name, input=given) for name, given in calls), **parameters
    )


class TestExact:
    def test_positions_are_weighed(self) -> None:
        """Matches add, other tools take away, and a call too many takes away twice."""
        evaluator = expecting(("a", {"x": 1}), ("b", {"x": 2}), ("c", NOT_RECORDED), ("d", {}))
        outcome = evaluator.evaluate(made(("a", {"x": 1.0}), ("b", {"x": 3}), ("z", {}), ("d", {}), ("e", {})))

        expected = Score(
            value=(2 + 0.5) / 4 - 0.25 * 3 / 4,
            passed=False,
            explanation=(
                "4 calls expected: 2 exact matches, 1 by name only, 1 wrong and 1 too many (each counts twice); "
                "score = (2 * 1 + 1 * 0.5 - 3 * 0.25) / 4. b.x: expected 2, got 3 (call 2); expected c, got z "
                "(call 3); e was called, but not expected (call 5)."
            ),
            details={
                "mode": "exact",
                "exact_matches": 2,
                "name_only_matches": 1,
                "wrong_or_missing": 3,
                "totals": {"reference": 4, "output": 5},
                "alignment": [
                    {"expected": "a", "actual": "a", "status": "ok", "call": 0},
                    {"expected": "b", "actual": "b", "status": "arguments", "call": 1},
                    {"expected": "c", "actual": "z", "status": "wrong", "call": 2},
                    {"expected": "d", "actual": "d", "status": "ok", "call": 3},
                    {"expected": None, "actual": "e", "status": "extra", "call": 4},
                ],
                "deviations": [
                    {
                        "kind": "arguments",
                        "tool": "b",
                        "call": 1,
                        "span_id": None,
                        "reason": "b.x: other value",
                        "path": "x",
                        "expected": 2,
                        "actual": 3,
                    },
                    {
                        "kind": "wrong_tool",
                        "tool": "z",
                        "call": 2,
                        "span_id": None,
                        "reason": "z was called in place of c",
                        "expected": "c",
                    },
                    {"kind": "unexpected", "tool": "e", "call": 4, "span_id": None, "reason": "e was not expected"},
                ],
            },
            without_content=(
                "4 calls expected: 2 exact matches, 1 by name only, 1 wrong and 1 too many (each counts twice); "
                "score = (2 * 1 + 1 * 0.5 - 3 * 0.25) / 4. b.x: not the expected value (call 2); expected c, got z "
                "(call 3); e was called, but not expected (call 5)."
            ),
        )

        assert expected == outcome

    def test_an_expected_call_without_input_takes_any(self) -> None:
        """Without `input` only the tool counts; null is an input of its own."""
        assert 1.0 == value_of(expecting(("a", NOT_RECORDED)).evaluate(made(("a", {"x": 1}))))
        assert 0.5 == value_of(expecting(("a", None)).evaluate(made(("a", NOT_RECORDED))))
        assert 1.0 == value_of(expecting(("a", None)).evaluate(made(("a", None))))


class TestFlexible:
    def test_multisets_are_weighed(self) -> None:
        """Exact matches in any order first, then by name, and what is left over is extra or missing."""
        evaluator = expecting(("a", {"x": 1}), ("a", {"x": 2}), ("b", {}), ("c", {}), mode="flexible")
        outcome = evaluator.evaluate(made(("z", {}), ("b", {}), ("a", {"x": 9}), ("a", {"x": 2})))

        expected = Score(
            value=(2 + 0.5) / 4 - 0.25 / 4,
            passed=False,
            explanation=(
                "4 calls expected: 2 exact matches, 1 by name only and 1 extra; "
                "score = (2 * 1 + 1 * 0.5 - 1 * 0.25) / 4. a.x: expected 1, got 9 (call 3); c was not called; "
                "z was called, but not expected (call 1)."
            ),
            details={
                "mode": "flexible",
                "exact_matches": 2,
                "name_only_matches": 1,
                "extras": 1,
                "missing": 1,
                "details": {
                    "matches": ["a", "b"],
                    "name_only_matches": ["a"],
                    "extras": ["z"],
                    "missing_tool_calls": ["c"],
                },
                "totals": {"reference": 4, "output": 4},
                "alignment": [
                    {"expected": "a", "actual": "a", "status": "arguments", "call": 2},
                    {"expected": "a", "actual": "a", "status": "ok", "call": 3},
                    {"expected": "b", "actual": "b", "status": "ok", "call": 1},
                    {"expected": "c", "actual": None, "status": "missing", "call": None},
                    {"expected": None, "actual": "z", "status": "extra", "call": 0},
                ],
                "deviations": [
                    {
                        "kind": "arguments",
                        "tool": "a",
                        "call": 2,
                        "span_id": None,
                        "reason": "a.x: other value",
                        "path": "x",
                        "expected": 1,
                        "actual": 9,
                    },
                    {"kind": "missing", "tool": "c", "call": None, "span_id": None, "reason": "c was not called"},
                    {"kind": "unexpected", "tool": "z", "call": 0, "span_id": None, "reason": "z was not expected"},
                ],
            },
            without_content=(
                "4 calls expected: 2 exact matches, 1 by name only and 1 extra; "
                "score = (2 * 1 + 1 * 0.5 - 1 * 0.25) / 4. a.x: not the expected value (call 3); c was not called; "
                "z was called, but not expected (call 1)."
            ),
        )

        assert expected == outcome

    def test_an_expected_call_without_input_takes_one_without_arguments(self) -> None:
        """Without `input` an exact match is a call without arguments only."""
        evaluator = expecting(("a", NOT_RECORDED), mode="flexible")

        assert 0.5 == value_of(evaluator.evaluate(made(("a", {}))))
        assert 1.0 == value_of(evaluator.evaluate(made(("a", NOT_RECORDED))))

    @settings(deadline=None)
    @given(expected=CALLS, actual=CALLS, weights=WEIGHTS, data=st.data())
    def test_order_does_not_matter(
        self, expected: list[tuple[str, Any]], actual: list[tuple[str, Any]], weights: Weights, data: st.DataObject
    ) -> None:
        """Neither the order of the calls nor of the expected ones changes the value."""
        one = expecting(*expected, mode="flexible", weights=weights).evaluate(made(*actual))
        shuffled = data.draw(st.permutations(expected)), data.draw(st.permutations(actual))
        other = expecting(*shuffled[0], mode="flexible", weights=weights).evaluate(made(*shuffled[1]))

        assert value_of(one) == value_of(other)
        assert details_of(one)["totals"] == details_of(other)["totals"]


class TestValue:
    @pytest.mark.parametrize("mode", ["exact", "flexible"])
    def test_nothing_expected(self, mode: Mode) -> None:
        """Nothing expected and nothing done is right; one without the other is wrong."""
        assert 1.0 == value_of(expecting(mode=mode).evaluate(called()))
        assert 0.0 == value_of(expecting(mode=mode).evaluate(called("a")))
        assert 0.0 == value_of(expecting(("a", NOT_RECORDED), mode=mode).evaluate(called()))

    @pytest.mark.parametrize("mode", ["exact", "flexible"])
    def test_weights(self, mode: Mode) -> None:
        """Every weight is honoured, `exact` too."""
        weights = Weights(exact=0.6, name_only=0.2, extra_penalty=0.1, wrong_penalty=0.1)
        evaluator = expecting(("a", {"x": 1}), ("b", {"x": 1}), mode=mode, weights=weights)

        assert pytest.approx(0.4) == value_of(evaluator.evaluate(made(("a", {"x": 1}), ("b", {}))))
        assert pytest.approx(0.25) == value_of(evaluator.evaluate(made(("a", {"x": 1}), ("z", {}))))

    def test_is_1_at_most(self) -> None:
        """Whatever a match adds."""
        assert 1.0 == value_of(expecting(("a", {}), weights=Weights(exact=2)).evaluate(made(("a", {}))))

    def test_is_explained_without_calls_too_many(self) -> None:
        """The sentence has the numbers that the value is made of."""
        outcome = expecting(("a", NOT_RECORDED), ("b", NOT_RECORDED)).evaluate(called("a", "z"))

        assert isinstance(outcome, Score)
        assert outcome.explanation.startswith(
            "2 calls expected: 1 exact match, 0 by name only and 1 wrong; score = (1 * 1 + 0 * 0.5 - 1 * 0.25) / 2. "
        )

    @pytest.mark.parametrize(
        ("made_calls", "weights", "ending"),
        [
            ("zz", Weights(), "; score = (0 * 1 + 0 * 0.5 - 2 * 0.25) / 2, at least 0. expected a"),
            ("ab", Weights(exact=2), "; score = (2 * 2 + 0 * 0.5 - 0 * 0.25) / 2, at most 1."),
            ("", Weights(), "2 calls expected, 0 made."),
        ],
    )
    def test_the_limits_of_the_value_are_explained(self, made_calls: str, weights: Weights, ending: str) -> None:
        """The sum of the weights may be below 0 or above 1."""
        evaluator = expecting(("a", NOT_RECORDED), ("b", NOT_RECORDED), weights=weights)
        outcome = evaluator.evaluate(called(*made_calls))

        assert isinstance(outcome, Score)
        assert ending in outcome.explanation

    def test_calls_too_many_are_marked_where_they_cost(self) -> None:
        """In mode flexible they do by their own penalty, in mode exact by that for another tool."""
        for mode, free in (("exact", False), ("flexible", True)):
            evaluator = expecting(("a", {}), ("b", {}), mode=mode, weights=Weights(extra_penalty=0))
            costly = expecting(("a", {}), ("b", {}), mode=mode)
            run = made(("a", {}), ("b", {"x": 1}), ("c", {}))

            assert ("ignored" if free else "extra") == aligned(evaluator.evaluate(run))[-1][2]
            assert "extra" == aligned(costly.evaluate(run))[-1][2]

    @given(expected=CALLS, actual=CALLS, mode=st.sampled_from(["exact", "flexible"]), weights=WEIGHTS)
    def test_stays_within_bounds(
        self, expected: list[tuple[str, Any]], actual: list[tuple[str, Any]], mode: Mode, weights: Weights
    ) -> None:
        """No weights take the value out of 0 to 1."""
        assert 0 <= value_of(expecting(*expected, mode=mode, weights=weights).evaluate(made(*actual))) <= 1

    def test_weights_that_overflow(self) -> None:
        """Weights whose sum is infinite still give a value."""
        huge = Weights(exact=1.7e308, name_only=1.7e308, extra_penalty=1.7e308, wrong_penalty=1.7e308)
        evaluator = expecting(("a", 1), ("b", 1), ("c", 1), weights=huge)

        assert 0 <= value_of(evaluator.evaluate(called(*"abcdefgh"))) <= 1


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = expecting(("a", {"x": 1}), ("b", {"x": 2}))
        run = made(("a", {"x": 1}), ("b", {"x": 3}))

        assert (0.75, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    @pytest.mark.parametrize("mode", ["exact", "flexible"])
    def test_is_kept(self, mode: Mode) -> None:
        """It evaluates whatever comes."""
        check_evaluator(expecting(("search", {"city": "Paris", "limit": 10}), ("book", NOT_RECORDED), mode=mode))

    def test_needs_recorded_arguments(self) -> None:
        """Arguments that the spans do not hold make it skip, if they had to be compared."""
        run = called("a", completeness=NO_ARGUMENTS)

        assert Skipped("arguments of 1 call of 'a' were not recorded") == expecting(("a", {})).evaluate(run)
        assert 1.0 == value_of(expecting(("a", NOT_RECORDED)).evaluate(run))
        assert isinstance(expecting(("a", NOT_RECORDED), mode="flexible").evaluate(run), Skipped)
        assert 0.0 == value_of(expecting(("b", {})).evaluate(run))

    @pytest.mark.parametrize("mode", ["exact", "flexible"])
    def test_truncated(self, mode: Mode) -> None:
        """Expected calls that are missing from a truncated trace do not count against the agent."""
        evaluator = expecting(("a", NOT_RECORDED), ("b", NOT_RECORDED), mode=mode)

        reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"
        assert Skipped(reason) == evaluator.evaluate(called("a", completeness=CUT_OFF))
        assert 1.0 == value_of(evaluator.evaluate(made(("a", NOT_RECORDED), ("b", NOT_RECORDED), completeness=CUT_OFF)))
