from __future__ import annotations

from typing import Any

import pytest

from evaluators.runs import CUT_OFF, around_its_value, called, details_of, value_of
from spanscore.evaluators.tool_policy import ToolPolicy
from spanscore.model import Score, Skipped, ToolCall, Trajectory
from spanscore.testing import check_evaluator

RULES: dict[str, Any] = {
    "required": ("lookup_*",),
    "allowed": ("lookup_*", "issue_refund"),
    "forbidden": ("delete_*",),
    "must_precede": (("lookup_*", "issue_refund"),),
    "max_calls": 2,
    "max_calls_per_tool": {"issue_refund": 1},
}


def broken(rules: dict[str, Any], *names: str) -> list[tuple[str, list[int]]]:
    """The rules that a run breaks, with the positions of the calls that break them."""
    details = details_of(ToolPolicy(**rules).evaluate(called(*names)))
    return [(each["rule"], each["calls"]) for each in details["broken"]]


class TestRules:
    def test_share_of_rules(self) -> None:
        """The value is the share of rules kept; each broken rule is named with the spans that break it."""
        names = ("issue_refund", "lookup_order", "delete_order")
        spans = tuple(ToolCall(name=name, span_id=bytes([number] * 8)) for number, name in enumerate(names))

        expected = Score(
            value=2 / 6,
            passed=False,
            explanation=(
                "2 of 6 rules were kept; broken: 'allowed: lookup_*, issue_refund' by delete_order (call 3), "
                "'forbidden: delete_*' by delete_order (call 3), 'must_precede: lookup_*, issue_refund' by "
                "issue_refund (call 1), 'max_calls: 2' by delete_order (call 3)."
            ),
            details={
                "rules": {"kept": 2, "total": 6},
                "broken": [
                    {"rule": "allowed: lookup_*, issue_refund", "calls": [2], "span_ids": ["0202020202020202"]},
                    {"rule": "forbidden: delete_*", "calls": [2], "span_ids": ["0202020202020202"]},
                    {"rule": "must_precede: lookup_*, issue_refund", "calls": [0], "span_ids": ["0000000000000000"]},
                    {"rule": "max_calls: 2", "calls": [2], "span_ids": ["0202020202020202"]},
                ],
                "deviations": [
                    {
                        "kind": "rule",
                        "tool": "delete_order",
                        "call": 2,
                        "span_id": "0202020202020202",
                        "expected": "allowed: lookup_*, issue_refund",
                    },
                    {
                        "kind": "rule",
                        "tool": "delete_order",
                        "call": 2,
                        "span_id": "0202020202020202",
                        "expected": "forbidden: delete_*",
                    },
                    {
                        "kind": "rule",
                        "tool": "issue_refund",
                        "call": 0,
                        "span_id": "0000000000000000",
                        "expected": "must_precede: lookup_*, issue_refund",
                    },
                    {
                        "kind": "rule",
                        "tool": "delete_order",
                        "call": 2,
                        "span_id": "0202020202020202",
                        "expected": "max_calls: 2",
                    },
                ],
            },
        )

        assert expected == ToolPolicy(**RULES).evaluate(Trajectory(calls=spans))

    @pytest.mark.parametrize(
        ("rules", "names", "expected"),
        [
            ({"required": ("a", "b")}, "a", [("required: b", [])]),
            ({"allowed": ()}, "a", [("allowed: none", [0])]),
            ({"allowed": ()}, "", []),
            ({"forbidden": ("a", "b")}, "aba", [("forbidden: a", [0, 2]), ("forbidden: b", [1])]),
            ({"must_precede": (("a", "b"),)}, "bab", [("must_precede: a, b", [0])]),
            ({"must_precede": (("a", "b"),)}, "cc", []),
            ({"must_precede": (("a", "a"),)}, "aa", [("must_precede: a, a", [0])]),
            ({"must_precede": (("?", "b"),)}, "bb", [("must_precede: ?, b", [0])]),
            ({"max_calls": 0}, "ab", [("max_calls: 0", [0, 1])]),
            (
                {"max_calls_per_tool": {"a": 1, "?": 3}},
                "abab",
                [("max_calls_per_tool: a: 1", [2]), ("max_calls_per_tool: ?: 3", [3])],
            ),
        ],
    )
    def test_each_rule(self, rules: dict[str, Any], names: str, expected: list[Any]) -> None:
        """Each rule counts the calls that break it."""
        assert expected == broken(rules, *names)

    def test_many_that_are_broken(self) -> None:
        """A sentence names the first rules, the call that broke each first, and how many more there are."""
        names = ("a", "a", "a", *"bcdefghij")
        outcome = ToolPolicy(forbidden=tuple("abcdefghij")).evaluate(called(*names))

        assert isinstance(outcome, Score)
        assert outcome.explanation.startswith(
            "0 of 10 rules were kept; broken: 'forbidden: a' by a (call 1) and 2 more, 'forbidden: b' by b (call 4), "
        )
        assert outcome.explanation.endswith(" more rules.")
        named = outcome.explanation.count("'forbidden: ")
        assert f" and {10 - named} more rules." in outcome.explanation

    def test_what_was_not_called_deviates(self) -> None:
        """A required tool is named by the rule; there is no call to show."""
        outcome = ToolPolicy(required=("pay",)).evaluate(called("a"))

        assert [
            {"kind": "rule", "tool": "pay", "call": None, "span_id": None, "expected": "required: pay"}
        ] == details_of(outcome)["deviations"]
        assert isinstance(outcome, Score)
        assert "0 of 1 rules were kept; broken: 'required: pay'." == outcome.explanation

    def test_names_the_tools_of_its_rules(self) -> None:
        """All but those that are allowed: a mistyped one of these breaks the rule."""
        named = ToolPolicy(**RULES, tool_names="canonical").named_tools()

        assert ["lookup_*", "delete_*", "issue_refund", "lookup_*", "issue_refund"] == list(named)

    def test_names(self) -> None:
        """Names are normalised on both sides; a glob is compared with normalised names as it is."""
        policy = ToolPolicy(forbidden=("DeleteOrder", "drop_*"), tool_names="canonical")

        assert 0.0 == value_of(policy.evaluate(called("mcp__shop__delete_order", "DropTable")))
        assert 1.0 == value_of(ToolPolicy(forbidden=("DeleteOrder",)).evaluate(called("delete_order")))


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = ToolPolicy(required=("a", "b"))
        run = called("a")

        assert (0.5, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        check_evaluator(ToolPolicy(**RULES))
        check_evaluator(ToolPolicy(**RULES, tool_names="canonical"))

    def test_truncated(self) -> None:
        """A required tool that is missing from a truncated trace does not count against the agent; a breach does."""
        policy = ToolPolicy(required=("a",), forbidden=("b",))

        reason = "the trace was cut off by a limit; what is missing (1) may be in the part not received"
        assert Skipped(reason) == policy.evaluate(called("b", completeness=CUT_OFF))
        assert Skipped(reason) == policy.evaluate(called("c", completeness=CUT_OFF))
        assert 0.5 == value_of(policy.evaluate(called("a", "b", completeness=CUT_OFF)))

    @pytest.mark.parametrize(
        ("rules", "reason"),
        [
            ({}, "at least one rule is needed"),
            ({"max_calls": -1}, "max_calls: must be a whole number of at least 0, not -1"),
            ({"max_calls_per_tool": {"a": True}}, r"max_calls_per_tool\.a: must be a whole number"),
        ],
    )
    def test_refuses_what_means_nothing(self, rules: dict[str, Any], reason: str) -> None:
        """A policy has rules, and a limit is a number of calls."""
        with pytest.raises(ValueError, match=reason):
            ToolPolicy(**rules)
