from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, NO_ARGUMENTS, around_its_value, called, details_of, made, value_of
from spanscore.compare.expected import ReferenceCall
from spanscore.evaluators.tool_call_f1 import ToolCallF1
from spanscore.model import NOT_RECORDED, Score, Skipped
from spanscore.testing import check_evaluator

ARGUMENTS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from([0, 1, True, None]), max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from("ab"), ARGUMENTS), max_size=6)


def expecting(*calls: tuple[str, Any], **parameters: Any) -> ToolCallF1:
    """An evaluator with this reference."""
    reference = tuple(ReferenceCall(name=name, arguments=arguments) for name, arguments in calls)
    return ToolCallF1(reference_tool_calls=reference, **parameters)


class TestValue:
    def test_precision_and_recall(self) -> None:
        """The value is F1; precision, recall and every match are in the details."""
        evaluator = expecting(("a", {"x": 1}), ("b", {"x": 1, "y": 2}), ("c", {}), mode="flexible")
        run = made(("z", {}), ("a", {"x": 1.0, "more": True}), ("b", {"x": 1}), ("c", NOT_RECORDED))

        expected = Score(
            value=4 / 7,
            passed=False,
            explanation=(
                "2 calls match (4 made, 3 expected): F1 = 2 * 2 / (4 + 3). b.y: expected 2, got nothing (call 3); "
                "z was called, but not expected (call 1)."
            ),
            details={
                "true_positives": 2,
                "false_positives": 2,
                "false_negatives": 1,
                "precision": 0.5,
                "recall": 0.6666666666666666,
                "matches": [
                    {"actual": 1, "reference": 0, "name": "a", "similarity": 1.0},
                    {"actual": 3, "reference": 2, "name": "c", "similarity": 1.0},
                ],
                "rating": "moderate",
                "alignment": [
                    {"expected": "a", "actual": "a", "status": "ok", "call": 1},
                    {"expected": "b", "actual": "b", "status": "arguments", "call": 2},
                    {"expected": "c", "actual": "c", "status": "ok", "call": 3},
                    {"expected": None, "actual": "z", "status": "extra", "call": 0},
                ],
                "deviations": [
                    {
                        "kind": "arguments",
                        "tool": "b",
                        "call": 2,
                        "span_id": None,
                        "reason": "b.y: missing",
                        "path": "y",
                        "expected": 2,
                    },
                    {"kind": "unexpected", "tool": "z", "call": 0, "span_id": None, "reason": "z was not expected"},
                ],
            },
            without_content=(
                "2 calls match (4 made, 3 expected): F1 = 2 * 2 / (4 + 3). b.y: missing (call 3); "
                "z was called, but not expected (call 1)."
            ),
        )

        assert expected == evaluator.evaluate(run)

    @pytest.mark.parametrize(
        ("reference", "actual", "strict", "flexible"),
        [
            ({"x": 1}, {"x": 1.0}, 1.0, 1.0),
            ({"x": 1}, {"x": True}, 0.0, 0.0),
            ({"x": None}, {"x": None}, 1.0, 1.0),
            ({"x": 1}, {"x": 1, "y": 2}, 0.0, 1.0),
            ({"x": 1, "y": 2}, {"x": 1}, 0.0, 1.0),
            ({"x": 1, "y": 2, "z": 3}, {"x": 1}, 0.0, 0.0),
            ({}, {"x": 1}, 0.0, 1.0),
            ({}, NOT_RECORDED, 1.0, 1.0),
            ({}, None, 0.0, 1.0),
            ([1], [1.0], 1.0, 1.0),
            ([1], [1, 2], 0.0, 0.0),
            ({"x": {"$range": [0, 1]}, "y": 1}, {"x": 1, "y": 1}, 1.0, 1.0),
            ({"x": {"$range": [0, 1]}, "y": 1}, {"x": 1, "y": 2}, 0.0, 1.0),
            ({"x": {"$range": [0, 1]}, "y": 1, "z": 1}, {"x": 1, "y": 2}, 0.0, 0.0),
            ({"$any": True}, {"x": 1}, 1.0, 1.0),
            ({"$any": True}, NOT_RECORDED, 1.0, 1.0),
            ({"$not": {"x": 1}}, {"x": 1}, 0.0, 0.0),
        ],
    )
    def test_similarity(self, reference: Any, actual: Any, strict: float, flexible: float) -> None:
        """Equal, or of the reference's arguments at least half; extra arguments are free."""
        run = made(("a", actual))

        assert strict == value_of(expecting(("a", reference)).evaluate(run))
        assert flexible == value_of(
            expecting(("a", reference), mode="flexible", argument_match_threshold=0.5).evaluate(run)
        )

    def test_most_similar_first(self) -> None:
        """A call takes the reference it is most similar to, and with a threshold of 0 still shares something."""
        evaluator = expecting(("a", {"x": 1, "y": 2}), ("a", {"x": 1}), mode="flexible", argument_match_threshold=0)

        matches = details_of(evaluator.evaluate(made(("a", {"x": 1}), ("a", {"z": 1}), ("a", {"y": 2}))))["matches"]

        assert [(0, 1, 1.0), (2, 0, 0.5)] == [
            (match["actual"], match["reference"], match["similarity"]) for match in matches
        ]

    def test_most_similar_first_with_matchers(self) -> None:
        """As without them; each reference is taken once."""
        some = {"$range": [0, 9]}
        evaluator = expecting(("a", {"x": some, "y": 5}), ("a", {"x": some, "y": 2}), mode="flexible")
        evaluator = replace(evaluator, argument_match_threshold=0.5)
        run = made(("a", {"x": 1, "y": 2}), ("b", {}), ("a", {"x": 1, "y": 7}), ("a", {"x": 1, "y": 7}))

        assert [(0, 1, 1.0), (2, 0, 0.5)] == [
            (match["actual"], match["reference"], match["similarity"])
            for match in details_of(evaluator.evaluate(run))["matches"]
        ]

    @pytest.mark.parametrize(
        ("hits", "rating"), [(10, "excellent"), (9, "excellent"), (8, "good"), (5, "moderate"), (4, "poor")]
    )
    def test_rating(self, hits: int, rating: str) -> None:
        """The value has a word for it."""
        evaluator = expecting(*[("a", {})] * 10)

        assert rating == details_of(evaluator.evaluate(called(*["a"] * hits, *["z"] * (10 - hits))))["rating"]

    def test_nothing_to_compare(self) -> None:
        """Without a reference it skips; without calls the value is 0."""
        assert Skipped("the reference has no tool calls") == expecting().evaluate(called("a"))
        nothing = expecting(("a", {})).evaluate(called())
        assert (0.0, 0.0) == (value_of(nothing), details_of(nothing)["precision"])

    def test_first_of_equals(self) -> None:
        """On purpose: a reference that is all there is as similar as an equal one, and the first of them is taken."""
        reference = ("a", {"x": 1}), ("a", {"x": 1, "y": 2})
        run = made(("a", {"x": 1, "y": 2}), ("a", {"x": 1}))

        assert 1.0 == value_of(expecting(*reference).evaluate(run))
        assert 0.5 == value_of(expecting(*reference, mode="flexible").evaluate(run))

    @settings(deadline=None)
    @given(calls=CALLS.filter(bool), mode=st.sampled_from(["strict", "flexible"]))
    def test_the_reference_itself(self, calls: list[tuple[str, Any]], mode: str) -> None:
        """A run that is its own reference has an F1 of 1."""
        assert 1.0 == value_of(expecting(*calls, mode=mode).evaluate(made(*calls)))


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = expecting(("a", {"x": 1}), ("b", {}))
        run = made(("a", {"x": 1}))

        assert (2 / 3, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    @pytest.mark.parametrize("mode", ["strict", "flexible"])
    def test_is_kept(self, mode: str) -> None:
        """It evaluates whatever comes."""
        check_evaluator(expecting(("search", {"city": "Paris", "limit": 10}), ("book", {}), mode=mode))

    def test_needs_recorded_arguments(self) -> None:
        """Arguments that the spans do not hold make it skip, if the reference has a call of the tool."""
        run = called("a", completeness=NO_ARGUMENTS)

        assert Skipped("arguments of 1 call of 'a' were not recorded") == expecting(("a", {})).evaluate(run)
        assert 0.0 == value_of(expecting(("b", {})).evaluate(run))

    def test_truncated(self) -> None:
        """Calls of the reference that are missing from a truncated trace do not count against the agent."""
        evaluator = expecting(("a", {}), ("b", {}))

        reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"
        assert Skipped(reason) == evaluator.evaluate(called("a", completeness=CUT_OFF))
