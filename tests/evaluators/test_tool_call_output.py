from __future__ import annotations

from typing import Any

import pytest

from evaluators.runs import CUT_OFF, NO_RESULTS, around_its_value, details_of, returned, value_of
from spanscore.compare.deviations import DETAILED
from spanscore.evaluators.tool_call_output import ExpectedOutput, ToolCallOutput
from spanscore.model import NOT_RECORDED, Score, Skipped, ToolCall, Trajectory
from spanscore.testing import check_evaluator


def expecting(*outputs: tuple[str, Any], **parameters: Any) -> ToolCallOutput:
    """An evaluator that expects these results."""
    expected = tuple(ExpectedOutput(name=name, output=output) for name, output in outputs)
    return ToolCallOutput(tool_outputs=expected, **parameters)


class TestValue:
    def test_share_of_expected_results(self) -> None:
        """The value is the share of expected results that a call returned; what differs is told."""
        outcome = expecting(("a", "2"), ("a", "1"), ("b", "9")).evaluate(returned(("a", "1"), ("a", "2"), ("b", "8")))

        expected = Score(
            value=2 / 3,
            passed=False,
            explanation='2 of 3 expected results were returned. b result: expected "9", got "8" (call 3).',
            details={
                "explained_tool_outputs": {
                    "a_0": "Actual: call 1, Score: 1.0",
                    "a_1": "Actual: call 0, Score: 1.0",
                    "b_0": "Actual: no matching call, Score: 0.0",
                },
                "deviations": [
                    {
                        "kind": "result",
                        "tool": "b",
                        "call": 2,
                        "span_id": None,
                        "reason": "b result: other value",
                        "path": "",
                        "expected": "9",
                        "actual": "8",
                    }
                ],
            },
            without_content="2 of 3 expected results were returned. b result: not the expected value (call 3).",
        )

        assert expected == outcome

    @pytest.mark.parametrize(
        ("expected", "actual", "value"),
        [
            ("ok", "ok", 1.0),
            ("ok", "ok ", 0.0),
            ("5", 5, 0.0),
            (5, 5.0, 1.0),
            (True, 1, 0.0),
            (None, None, 1.0),
            (None, NOT_RECORDED, 0.0),
            ({"b": 1, "a": [2]}, {"a": [2.0], "b": 1}, 1.0),
            ("ok", {"content": "ok", "type": "text"}, 1.0),
            ("5", {"content": 5}, 0.0),
            ({"content": "ok"}, {"content": "ok"}, 1.0),
            ({"content": "ok"}, {"content": "ok", "type": "text"}, 0.0),
            (["ok"], {"content": ["ok"]}, 0.0),
        ],
    )
    def test_what_is_equal(self, expected: Any, actual: Any, value: float) -> None:
        """Results are compared as JSON; a text also with the content of an object, in both modes."""
        for strict in (False, True):
            assert value == value_of(expecting(("a", expected), strict=strict).evaluate(returned(("a", actual))))

    def test_a_content_serves_once(self) -> None:
        """An object found by its content is not found again as an object, and the other way round."""
        run = returned(("a", {"content": "ok"}))

        assert 0.5 == value_of(expecting(("a", "ok"), ("a", {"content": "ok"})).evaluate(run))
        assert 0.5 == value_of(expecting(("a", {"content": "ok"}), ("a", "ok")).evaluate(run))

    def test_what_deviates(self) -> None:
        """A result that is missing, one of a call that failed, and one beside another call of its tool."""
        failed = ToolCall(name="a", error="declined")
        run = Trajectory(calls=(failed, ToolCall(name="b", result="x"), ToolCall(name="b", result="y")))
        outcome = expecting(("a", "1"), ("b", "y"), ("b", "z"), ("c", "1"), strict=False).evaluate(run)

        assert [
            ("result", "a", 0, ["expected"]),
            ("result", "b", 1, ["actual", "expected"]),
            ("missing", "c", None, []),
        ] == [
            (each["kind"], each["tool"], each["call"], sorted({"expected", "actual"} & each.keys()))
            for each in details_of(outcome)["deviations"]
        ]

    def test_only_the_first_are_told_in_detail(self) -> None:
        """Of the others it is told that they differ."""
        outputs = [("a", str(number)) for number in range(DETAILED + 5)]
        outcome = expecting(*outputs).evaluate(returned(*[("a", "other")] * len(outputs)))

        assert DETAILED == sum("path" in each for each in details_of(outcome)["deviations"])

    def test_strict_says_so(self) -> None:
        """All are needed, in order."""
        outcome = expecting(("a", "1"), strict=True).evaluate(returned(("a", "1")))

        assert isinstance(outcome, Score)
        assert (
            "1 of 1 expected results were returned in the order expected of each tool; strict requires all."
            == outcome.explanation
        )

    def test_strict_goes_by_order(self) -> None:
        """With `strict` each output is compared with the first call of its tool that is not taken."""
        run = returned(("a", "1"), ("b", "x"), ("a", "2"))

        assert 1.0 == value_of(expecting(("a", "1"), ("a", "2"), strict=True).evaluate(run))
        assert 0.0 == value_of(expecting(("a", "2"), ("a", "1"), strict=True).evaluate(run))
        assert 1.0 == value_of(expecting(("a", "2"), ("a", "1")).evaluate(run))
        assert 0.0 == value_of(expecting(("a", "1"), ("c", "1"), strict=True).evaluate(run))


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = expecting(("a", "1"), ("b", "2"))
        run = returned(("a", "1"), ("b", "3"))

        assert (0.5, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        for parameters in ({}, {"strict": True}, {"tool_names": "canonical"}):
            check_evaluator(expecting(("search", "ok"), ("book", {"content": "ok"}), **parameters))

    def test_needs_recorded_results(self) -> None:
        """A result that the spans do not hold makes it skip; a call that failed has none."""
        lost, failed = ToolCall(name="a"), ToolCall(name="a", error="declined")
        evaluator = expecting(("a", "ok"))

        assert Skipped("results of 1 call of 'a' were not recorded") == evaluator.evaluate(
            Trajectory(calls=(lost, failed), completeness=NO_RESULTS)
        )
        assert 0.0 == value_of(evaluator.evaluate(Trajectory(calls=(failed,), completeness=NO_RESULTS)))
        assert 0.0 == value_of(evaluator.evaluate(Trajectory(calls=(ToolCall(name="b"),), completeness=NO_RESULTS)))

    def test_truncated(self) -> None:
        """Expected calls that are missing from a truncated trace do not count against the agent."""
        reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"
        evaluator = expecting(("a", "ok"), ("b", "ok"))
        assert Skipped(reason) == evaluator.evaluate(returned(("a", "ok"), completeness=CUT_OFF))


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("output", "result", "expected"),
    [
        ({"$glob": "* hotels"}, "3 hotels", 1),
        ({"$glob": "* hotels"}, {"content": "3 hotels"}, 1),
        ({"$not": "x"}, {"content": "x"}, 0),
        ({"$not": "x"}, {"content": "y"}, 1),
        ({"$any": True}, None, 1),
        ({"$subset": {"state": "open"}}, {"state": "open", "id": 1}, 1),
        ({"items": {"$length": [1, None]}}, {"items": []}, 0),
    ],
)
def test_matchers_of_results(output: Any, result: Any, expected: float, *, strict: bool) -> None:
    """A matcher may stand for a result; one of texts is compared with the content of a result."""
    assert expected == value_of(expecting(("a", output), strict=strict).evaluate(returned(("a", result))))


def test_results_are_needed() -> None:
    """A receiver keeps them for this evaluator."""
    assert expecting(("a", 1)).needs_results is True


def test_a_failed_call_returned_nothing() -> None:
    """Not even `$any` matches the result of a call that failed without one."""
    for output in ({"$any": True}, {"$not": 1}, {"$subset": {}}):
        run = Trajectory(calls=(ToolCall(name="a", error="timeout"),))
        assert 0 == value_of(expecting(("a", output)).evaluate(run))


@pytest.mark.parametrize(
    ("output", "result", "words"),
    [
        ("1", {"content": "2"}, 'a result: expected "1", got "2" (call 1).'),
        ({"content": "1"}, {"content": "2"}, 'a result.content: expected "1", got "2" (call 1).'),
        ({"$glob": "1*"}, {"content": "2"}, 'a result: expected text like "1*", got "2" (call 1).'),
        ({"n": {"$range": [0, 1]}}, {"n": 2}, "a result.n: expected 0 to 1, got 2 (call 1)."),
    ],
)
def test_how_a_result_differs(output: Any, result: Any, words: str) -> None:
    """Of an object that is compared by its content, the content does."""
    outcome = expecting(("a", output)).evaluate(returned(("a", result)))

    assert isinstance(outcome, Score)
    assert f"0 of 1 expected results were returned. {words}" == outcome.explanation
