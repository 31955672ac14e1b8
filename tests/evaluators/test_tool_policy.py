from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluators.runs import CUT_OFF, NO_ARGUMENTS, around_its_value, called, details_of, made, value_of
from spanscore.compare.rules.call_rules import CallPattern, Then, When
from spanscore.compare.rules.tool_rules import Rules
from spanscore.evaluators.tool_policy import ToolPolicy
from spanscore.model import Completeness, Score, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy
from spanscore.testing import check_evaluator

EARLIER = MendedBy.EARLIER | MendedBy.BETWEEN
GATE = Rules(forbidden=("a",))
RULES: dict[str, Any] = {
    "required": ("lookup_*",),
    "allowed": ("lookup_*", "issue_refund"),
    "forbidden": ("delete_*",),
    "must_precede": (("lookup_*", "issue_refund"),),
    "max_calls": 2,
    "max_calls_per_tool": {"issue_refund": 1},
}


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
                        "reason": "delete_order breaks allowed: lookup_*, issue_refund",
                        "expected": "allowed: lookup_*, issue_refund",
                    },
                    {
                        "kind": "rule",
                        "tool": "delete_order",
                        "call": 2,
                        "span_id": "0202020202020202",
                        "reason": "delete_order breaks forbidden: delete_*",
                        "expected": "forbidden: delete_*",
                    },
                    {
                        "kind": "rule",
                        "tool": "issue_refund",
                        "call": 0,
                        "span_id": "0000000000000000",
                        "reason": "issue_refund breaks must_precede: lookup_*, issue_refund",
                        "expected": "must_precede: lookup_*, issue_refund",
                    },
                    {
                        "kind": "rule",
                        "tool": "delete_order",
                        "call": 2,
                        "span_id": "0202020202020202",
                        "reason": "delete_order breaks max_calls: 2",
                        "expected": "max_calls: 2",
                    },
                ],
            },
        )

        assert expected == ToolPolicy(**RULES).evaluate(Trajectory(calls=spans))

    def test_failed_calls_may_be_left_out(self) -> None:
        """What stands before and behind them is then one right after the other."""
        calls = (ToolCall(name="a"), ToolCall(name="b", error="timeout"), ToolCall(name="c"))
        rules: dict[str, Any] = {"required": ("b",), "forbidden_sequences": (("a", "c"),), "max_calls": 2}

        def broken_of(**more: Any) -> list[tuple[str, list[int]]]:
            rows = details_of(ToolPolicy(**rules, **more).evaluate(Trajectory(calls=calls)))["broken"]
            return [(each["rule"], each["calls"]) for each in rows]

        assert [("max_calls: 2", [2])] == broken_of()
        assert [("required: b", []), ("forbidden_sequences: a, c", [2])] == broken_of(ignore_failed=True)

    def test_only_what_the_trace_declares(self) -> None:
        """A trace that declares nothing says nothing of what may be called."""
        policy = ToolPolicy(declared_tools_only=True, tool_names="canonical", max_calls=3)
        declared = {"search": {}, "IssueRefund": None}

        assert Skipped("the trace does not declare its tools") == policy.evaluate(called("search"))
        assert 1.0 == value_of(policy.evaluate(called("search", "issue_refund", tool_definitions=declared)))
        outcome = policy.evaluate(called("search", "pay", tool_definitions=declared))
        assert isinstance(outcome, Score)
        assert "1 of 2 rules were kept; broken: 'declared_tools_only' by pay (call 2)." == outcome.explanation

    def test_calls_that_must_not_be_made(self) -> None:
        """Arguments are compared key by key, with others beside them; a call without a rule for its arguments too."""
        large = {"call": "issue_*", "args": {"amount": {"$range": [100, None]}}}
        policy = ToolPolicy(forbidden_calls=(CallPattern(**large), CallPattern(call="wipe")))
        run = made(("issue_refund", {"amount": 99}), ("issue_refund", {"amount": 100, "order": 1}), ("wipe", {}))

        rows = details_of(policy.evaluate(run))["broken"]
        assert [("forbidden_calls[0]: issue_*", [1]), ("forbidden_calls[1]: wipe", [2])] == [
            (each["rule"], each["calls"]) for each in rows
        ]
        assert ["issue_*", "wipe"] == list(policy.named_tools())
        unknown = called("issue_refund", completeness=NO_ARGUMENTS)
        assert Skipped("arguments of 1 call of 'issue_refund' were not recorded") == policy.evaluate(unknown)
        assert 1.0 == value_of(policy.evaluate(called("other", completeness=NO_ARGUMENTS)))

    @pytest.mark.parametrize("order", [{"$from": "lookup"}, {"$not": {"$from": "lookup"}}])
    def test_earlier_results_that_were_not_recorded(self, order: dict[str, Any]) -> None:
        """Whether a call comes from one is not known, and so not whether a rule for such calls is kept."""
        then = Then(forbidden="wipe")
        run = Trajectory(
            calls=(ToolCall(name="lookup", arguments={}), ToolCall(name="issue", arguments={"order": "A-1"})),
            completeness=Completeness(results_recorded=False),
        )
        for policy in (
            ToolPolicy(forbidden_calls=(CallPattern(call="issue", args={"order": order}),)),
            ToolPolicy(when=(When(call="issue", args={"order": order}, then=then),)),
        ):
            assert Skipped("results of 1 call of 'lookup' were not recorded") == policy.evaluate(run)
            assert 1.0 == value_of(policy.evaluate(replace(run, calls=run.calls[:1])))

    def test_a_condition_on_arguments(self) -> None:
        """Only the call with such arguments has to be approved, by a value that an earlier result has."""
        large = {"amount": {"$range": [100, None]}, "order": {"$from": "lookup", "path": "/id"}}
        policy = ToolPolicy(when=(When(call="pay", args=large, then=Then(must_precede="approve")),))
        found = ToolCall(name="lookup", arguments={}, result={"id": 7})

        def value_for(**arguments: Any) -> float:
            calls = (found, ToolCall(name="pay", arguments=arguments))
            return value_of(policy.evaluate(Trajectory(calls=calls)))

        assert (0.0, 1.0, 1.0) == (
            value_for(amount=100, order=7),
            value_for(amount=99, order=7),
            value_for(amount=100, order=8),
        )
        assert ["pay", "approve", "lookup"] == list(policy.named_tools())

    @pytest.mark.parametrize(
        ("args", "then", "told", "hidden"),
        [
            (
                {"amount": {"$not": {"$from": "look", "path": "/amount"}}},
                Then(must_precede="approve"),
                'pay.amount is "all" (condition: not a value of an earlier result of look at /amount (59.9)).',
                "by pay (call 2), as pay.amount fulfils the condition.",
            ),
            (
                {"amount": "all", "note": {"$absent": True}},
                Then(forbidden="look"),
                'pay.amount (call 2) is "all" and pay.note (call 2) is missing (condition: no such key).',
                "by look (call 1), as pay.amount and pay.note (call 2) fulfil the condition.",
            ),
            (
                {"$length": 1},
                Then(must_follow="mail"),
                'by pay (call 2), as pay is {"amount": "all"} (condition: length 1).',
                "by pay (call 2), as pay fulfils the condition.",
            ),
        ],
    )
    def test_a_condition_is_told_with_what_fulfils_it(self, args: Any, then: Then, told: str, hidden: str) -> None:
        """Each argument with its value and the condition; without content, only the argument."""
        policy = ToolPolicy(when=(When(call="pay", args=args, then=then),))
        found = ToolCall(name="look", arguments={}, result={"amount": 59.9})
        outcome = policy.evaluate(Trajectory(calls=(found, ToolCall(name="pay", arguments={"amount": "all"}))))

        assert isinstance(outcome, Score)
        assert outcome.explanation.endswith(told)
        assert outcome.without_content is not None
        assert outcome.without_content.endswith(hidden)

    def test_gates(self) -> None:
        """A broken gate cannot be made up for; one that is kept is a rule like the others."""
        policy = ToolPolicy(required=("a", "b", "c"), gates=Rules(forbidden=("delete_*",)))

        assert 0.75 == value_of(policy.evaluate(called("a", "b")))
        outcome = policy.evaluate(called("a", "b", "c", "delete_order"))
        assert isinstance(outcome, Score)
        assert (0.0, False) == (outcome.value, outcome.passed)
        assert (
            "3 of 4 rules were kept, but a broken gate makes the score 0; "
            "broken: 'gates.forbidden: delete_*' by delete_order (call 4)."
        ) == outcome.explanation
        assert ["a", "b", "c", "delete_*"] == list(policy.named_tools())
        assert 0.0 == value_of(policy.evaluate(called("a", "delete_order")))

    def test_a_broken_gate_fails_whatever_the_threshold(self) -> None:
        """It cannot be made up for, and not be configured away either."""
        outcome = ToolPolicy(gates=Rules(forbidden=("a",)), threshold=0).evaluate(called("a"))

        assert isinstance(outcome, Score)
        assert (0, False) == (outcome.value, outcome.passed)

    @pytest.mark.parametrize(
        ("names", "value"), [("abxb", 0.75), ("xx", 0.0), ("aab", 1.0), ("bbb", 1.0), ("bbbbbb", 5 / 6)]
    )
    def test_share_of_calls(self, names: str, value: float) -> None:
        """Each call counts once, however many rules it breaks; a tool that is missing breaks none."""
        rules: dict[str, Any] = {"required": ("a",), "forbidden": ("x", "?x", "x"), "max_calls_per_tool": {"b": 5}}

        assert value == value_of(ToolPolicy(**rules, score_by="calls").evaluate(called(*names)))

    def test_share_of_no_calls(self) -> None:
        """All or nothing."""
        policy = ToolPolicy(required=("a",), score_by="calls")

        assert 0.0 == value_of(policy.evaluate(called()))
        assert 1.0 == value_of(ToolPolicy(forbidden=("a",), score_by="calls").evaluate(called()))

    def test_many_that_are_broken(self) -> None:
        """A sentence names the first rules, the call that broke each first, and how many more there are."""
        names = ("a", "a", "a", *"bcdefghij")
        outcome = ToolPolicy(forbidden=tuple("abcdefghij")).evaluate(called(*names))

        assert isinstance(outcome, Score)
        assert outcome.explanation.startswith(
            "0 of 10 rules were kept; broken: 'forbidden: a' by a (call 1) and 2 more calls, "
            "'forbidden: b' by b (call 4), "
        )
        assert outcome.explanation.endswith(" more rules.")
        named = outcome.explanation.count("'forbidden: ")
        assert f" and {10 - named} more rules." in outcome.explanation

    def test_what_was_not_called_deviates(self) -> None:
        """A required tool is named by the rule; there is no call to show."""
        outcome = ToolPolicy(required=("pay",)).evaluate(called("a"))

        assert [
            {
                "kind": "rule",
                "tool": "pay",
                "call": None,
                "span_id": None,
                "reason": "breaks required: pay",
                "expected": "required: pay",
            }
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

    @pytest.mark.parametrize(
        ("parameters", "names", "sides"),
        [
            ({"must_precede": (("c", "a"),), "must_follow": (("a", "c"),)}, "a", MendedBy.BETWEEN),
            ({"must_precede": (("b", "a"),), "required": ("c",)}, "a", EARLIER),
            ({"must_precede": (("b", "a"),), "forbidden": ("a",)}, "a", MendedBy.NOTHING),
            ({"forbidden": ("a",), "score_by": "calls"}, "ab", MendedBy.NOTHING),
            ({"forbidden": ("a",), "score_by": "calls", "threshold": 0.9}, "ab", MendedBy.ANY),
            ({"required": ("b",), "gates": GATE, "score_by": "calls", "threshold": 0.5}, "a", MendedBy.NOTHING),
            ({"required": ("b",), "gates": Rules(required=("c",)), "threshold": 0.5}, "a", MendedBy.ANY),
        ],
    )
    def test_where_further_calls_could_mend_it(self, parameters: dict[str, Any], names: str, sides: MendedBy) -> None:
        """On the sides that are enough alone, or else on all that are needed; a gate that is broken for good is not."""
        score = ToolPolicy(**parameters).evaluate(called(*names))

        assert isinstance(score, Score)
        assert (False, sides) == (score.passed, score.mended_by)


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
        more: dict[str, Any] = {"must_follow": (("a", "b"),), "never_after": (("a", "b"),), "ignore_failed": True}
        check_evaluator(ToolPolicy(**more, gates=Rules(**RULES), score_by="calls", max_retries_per_tool={"*": 1}))
        when = When(call="*", args={"$subset": {"city": "$any"}}, then=Then(must_precede="x", must_follow="y"))
        check_evaluator(ToolPolicy(when=(when,), forbidden_calls=(CallPattern(call="b*", args={"$length": 2}),)))
        check_evaluator(ToolPolicy(declared_tools_only=True, forbidden_sequences=(("*", "book"),)))

    def test_truncated(self) -> None:
        """A required tool that is missing from a truncated trace does not count against the agent; a breach does."""
        policy = ToolPolicy(required=("a",), forbidden=("b",))

        reason = "the trace was cut off by a limit; missing calls (1) may be in the part not received"
        breach = policy.evaluate(called("b", completeness=CUT_OFF))
        assert 0.5 == value_of(breach)
        assert "1 of 2 rules were kept; broken: 'forbidden: b' by b (call 1)." == getattr(breach, "explanation", None)
        assert Skipped(reason) == policy.evaluate(called("c", completeness=CUT_OFF))
        assert 0.5 == value_of(policy.evaluate(called("a", "b", completeness=CUT_OFF)))
        shared = replace(policy, score_by="calls", threshold=0.9)
        assert Skipped(reason) == shared.evaluate(called("b", completeness=CUT_OFF))
        followed = ToolPolicy(must_follow=(("open", "close"),))
        assert Skipped(reason) == followed.evaluate(called("open", completeness=CUT_OFF))

    @pytest.mark.parametrize(
        ("rules", "reason"),
        [
            ({}, "at least one rule is needed"),
            ({"gates": Rules()}, "at least one rule is needed"),
            (
                {"forbidden_calls": (CallPattern(call="a", args={"x": {"$nearr": 1}}),)},
                r"^forbidden_calls\[0\]\.args\.x\.\$",
            ),
            ({"when": (When(call="a", then=Then()),)}, r"^when\[0\]\.then: at least one tool is needed"),
        ],
    )
    def test_refuses_what_means_nothing(self, rules: dict[str, Any], reason: str) -> None:
        """A policy has rules, and matchers that there are."""
        with pytest.raises(ValueError, match=reason):
            ToolPolicy(**rules)
