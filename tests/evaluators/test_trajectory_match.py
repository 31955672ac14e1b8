from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.runs import CUT_OFF, NO_ARGUMENTS, aligned, around_its_value, called, details_of, made, value_of
from examples import at_most
from spanscore.compare.expected import ReferenceCall
from spanscore.evaluators.trajectory_match import TrajectoryMatch
from spanscore.model import NOT_RECORDED, Score, Skipped, ToolCall, Trajectory
from spanscore.testing import check_evaluator

MODES = ("exact", "in_order", "any_order", "subset", "superset", "unordered")
ARGUMENT_MODES = ("exact", "ignore", "subset", "superset")

ARGUMENTS = st.dictionaries(st.sampled_from("xy"), st.sampled_from([0, 1, True]), max_size=2)
PARAMETERS = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["any_order", "subset", "superset", "unordered"]),
        "arguments": st.sampled_from(ARGUMENT_MODES),
        "scoring": st.sampled_from(["binary", "f1", "precision", "recall"]),
    }
)
CALLS = st.lists(st.tuples(st.sampled_from("ab"), ARGUMENTS), max_size=5)


def expecting(*calls: tuple[str, Any], **parameters: Any) -> TrajectoryMatch:
    """An evaluator with this reference."""
    reference = tuple(ReferenceCall(name=name, arguments=arguments) for name, arguments in calls)
    return TrajectoryMatch(reference=reference, **parameters)


def in_mode(mode: str, reference: str, actual: str, **parameters: Any) -> float:
    """The value for tools of one letter each, without arguments."""
    evaluator = expecting(*[(name, {}) for name in reference], mode=mode, **parameters)
    return value_of(evaluator.evaluate(called(*actual)))


class TestModes:
    @pytest.mark.parametrize(
        ("mode", "matching", "failing"),
        [
            ("exact", ["abb"], ["", "ab", "bab", "abbb"]),
            ("in_order", ["abb", "xaxbxbx"], ["", "ab", "bab"]),
            ("any_order", ["abb", "bba", "xbxabx"], ["", "ab", "aab"]),
            ("superset", ["abb", "bba", "xbxabx"], ["", "ab", "aab"]),
            ("subset", ["abb", "bba", "", "bb"], ["aa", "bbb", "abx"]),
            ("unordered", ["abb", "bba"], ["", "ab", "abbx"]),
        ],
    )
    def test_what_each_mode_needs(self, mode: str, matching: list[str], failing: list[str]) -> None:
        """Binary scoring is 1 when the mode has what it needs, and else 0."""
        assert [1.0] * len(matching) == [in_mode(mode, "abb", actual) for actual in matching]
        assert [0.0] * len(failing) == [in_mode(mode, "abb", actual) for actual in failing]

    @pytest.mark.parametrize("mode", MODES)
    def test_nothing_on_either_side(self, mode: str) -> None:
        """Two empty sides match in every way."""
        assert [1.0] * 4 == [in_mode(mode, "", "", scoring=each) for each in ("binary", "f1", "precision", "recall")]

    @pytest.mark.parametrize(
        ("mode", "precision", "recall", "f1"),
        [
            ("exact", 1 / 4, 1 / 3, 2 / 7),
            ("in_order", 2 / 4, 2 / 3, 4 / 7),
            ("any_order", 3 / 4, 3 / 3, 6 / 7),
            ("unordered", 3 / 4, 3 / 3, 6 / 7),
        ],
    )
    def test_scoring(self, mode: str, precision: float, recall: float, f1: float) -> None:
        """Hits are divided by the calls made, by the reference, or by both."""
        found = [in_mode(mode, "abc", "acxb", scoring=scoring) for scoring in ("precision", "recall", "f1")]

        assert [precision, recall, f1] == pytest.approx(found)

    def test_one_side_empty(self) -> None:
        """Nothing divided by nothing is no match when the other side has calls."""
        assert [0.0] * 6 == [
            in_mode("any_order", reference, actual, scoring=scoring)
            for reference, actual in (("a", ""), ("", "a"))
            for scoring in ("precision", "recall", "f1")
        ]

    @pytest.mark.parametrize(
        ("scoring", "reference", "actual", "words"),
        [
            ("f1", "abc", "ab", "2 calls match (2 made, 3 expected): F1 = 2 * 2 / (2 + 3)."),
            ("precision", "abc", "ab", "2 calls match (2 made, 3 expected): precision = 2 / 2."),
            ("recall", "abc", "ab", "2 calls match (2 made, 3 expected): recall = 2 / 3."),
            ("f1", "", "", "0 calls match (0 made, 0 expected): F1 = 1."),
            ("precision", "a", "", "0 calls match (0 made, 1 expected): precision = 0."),
            ("recall", "", "", "0 calls match (0 made, 0 expected): recall = 1."),
        ],
    )
    def test_the_value_is_explained(self, scoring: str, reference: str, actual: str, words: str) -> None:
        """The sentence has the numbers that the value is made of; nothing is divided by 0."""
        evaluator = expecting(*((name, {}) for name in reference), mode="any_order", scoring=scoring)
        outcome = evaluator.evaluate(called(*actual))

        assert isinstance(outcome, Score)
        assert outcome.explanation.startswith(words)

    def test_details(self) -> None:
        """The numbers behind the value, and what stands beside what."""
        evaluator = expecting(("a", {"x": 1}), ("b", {}), ("c", {}), mode="in_order")
        outcome = evaluator.evaluate(made(("a", {"x": 2}), ("b", {}), ("d", {})))

        expected = Score(
            value=0.0,
            passed=False,
            explanation=(
                "1 call matches (3 made, 3 expected); mode in_order requires all expected calls, in order. "
                "a.x: expected 1, got 2 (call 1); c was not called."
            ),
            details={
                "mode": "in_order",
                "scoring": "binary",
                "hits": 1,
                "totals": {"reference": 3, "actual": 3},
                "alignment": [
                    {"expected": "a", "actual": "a", "status": "arguments", "call": 0},
                    {"expected": "b", "actual": "b", "status": "ok", "call": 1},
                    {"expected": "c", "actual": None, "status": "missing", "call": None},
                    {"expected": None, "actual": "d", "status": "ignored", "call": 2},
                ],
                "deviations": [
                    {
                        "kind": "arguments",
                        "tool": "a",
                        "call": 0,
                        "span_id": None,
                        "reason": "a.x: other value",
                        "path": "x",
                        "expected": 1,
                        "actual": 2,
                    },
                    {"kind": "missing", "tool": "c", "call": None, "span_id": None, "reason": "c was not called"},
                ],
            },
            without_content=(
                "1 call matches (3 made, 3 expected); mode in_order requires all expected calls, in order. "
                "a.x: not the expected value (call 1); c was not called."
            ),
        )

        assert expected == outcome

    @pytest.mark.parametrize(
        ("mode", "entries"),
        [
            ("exact", [("a", "b", "wrong"), ("b", "a", "wrong"), ("b", "b", "arguments")]),
            ("unordered", [("a", "a", "ok"), ("b", "b", "ok"), ("b", "b", "arguments")]),
        ],
    )
    def test_alignment(self, mode: str, entries: list[Any]) -> None:
        """A failed match shows where the run left the reference, in the mode's own way."""
        evaluator = expecting(("a", {}), ("b", {}), ("b", {"x": 1}), mode=mode)

        assert entries == aligned(evaluator.evaluate(called("b", "a", "b")))


class TestArguments:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        ("arguments", "reference", "actual", "value"),
        [
            ("exact", {"x": 1}, {"x": 1.0}, 1.0),
            ("exact", {"x": 1}, {"x": True}, 0.0),
            ("exact", {}, NOT_RECORDED, 1.0),
            ("exact", {}, None, 0.0),
            ("ignore", {"x": 1}, {"y": 2}, 1.0),
            ("subset", {"x": 1, "y": 2}, {"x": 1}, 1.0),
            ("subset", {"x": 1}, {"x": 1, "y": 2}, 0.0),
            ("superset", {"x": 1}, {"x": 1, "y": 2}, 1.0),
            ("superset", {"x": 1, "y": 2}, {"x": 1}, 0.0),
            ("superset", {"x": True}, {"x": 1, "y": 2}, 0.0),
        ],
    )
    def test_comparisons(self, mode: str, arguments: str, reference: Any, actual: Any, value: float) -> None:
        """Arguments are compared as JSON: as a whole, not at all, or by containment, the same in every mode."""
        evaluator = expecting(("a", reference), mode=mode, arguments=arguments)

        assert value == value_of(evaluator.evaluate(made(("a", actual))))

    @pytest.mark.parametrize("mode", MODES)
    def test_overrides(self, mode: str) -> None:
        """Single tools are compared in a mode of their own, or by some paths only."""
        overrides = {"note": "ignore", "book": ["hotel.id", "days"]}
        evaluator = expecting(
            ("note", {"text": "x"}),
            ("book", {"hotel": {"id": 7, "name": "Ritz"}, "days": 2}),
            ("pay", {"sum": 1}),
            mode=mode,
            argument_overrides=overrides,
        )
        same = made(("note", {}), ("book", {"hotel": {"id": 7.0}, "days": 2, "by": "me"}), ("pay", {"sum": 1}))
        other = made(("note", {}), ("book", {"hotel": {"id": 8}, "days": 2}), ("pay", {"sum": 1}))

        assert (1.0, 0.0) == (value_of(evaluator.evaluate(same)), value_of(evaluator.evaluate(other)))

    @pytest.mark.parametrize("arguments", ["exact", "subset", "superset"])
    def test_ignored_paths(self, arguments: str) -> None:
        """What is ignored may differ, be missing or be there, on either side."""
        evaluator = expecting(
            ("a", {"x": 1, "meta": {"id": 1, "v": 2}}), arguments=arguments, ignore_arguments=("meta.id", "time")
        )

        assert 1.0 == value_of(evaluator.evaluate(made(("a", {"x": 1, "time": 5, "meta": {"v": 2}}))))
        assert 0.0 == value_of(evaluator.evaluate(made(("a", {"x": 1, "meta": {"id": 1, "v": 3}}))))

    def test_matching_is_maximal(self) -> None:
        """A call that fits two calls of the reference leaves the one that another needs."""
        evaluator = expecting(("a", {"x": 1}), ("a", {"x": 1, "y": 2}), mode="unordered", arguments="subset")

        assert 1.0 == value_of(evaluator.evaluate(made(("a", {"x": 1}), ("a", {"y": 2}))))
        assert 1.0 == value_of(evaluator.evaluate(made(("a", {"y": 2}), ("a", {"x": 1}))))

    @at_most(300)
    @given(reference=CALLS, actual=CALLS, mode=st.sampled_from(MODES))
    def test_all_or_nothing_is_what_the_hits_say(
        self, reference: list[tuple[str, Any]], actual: list[tuple[str, Any]], mode: str
    ) -> None:
        """What fails at a glance fails by the number of hits, too, which is found when somebody looks."""
        outcome = expecting(*reference, mode=mode).evaluate(made(*actual))
        hits, wanted, came = details_of(outcome)["hits"], len(reference), len(actual)
        enough = {"subset": hits == came, "exact": hits == came == wanted, "unordered": hits == came == wanted}

        assert float(enough.get(mode, hits == wanted)) == value_of(outcome)

    @at_most(200)
    @given(reference=CALLS, actual=CALLS, parameters=PARAMETERS, data=st.data())
    def test_order_does_not_matter(
        self,
        reference: list[tuple[str, Any]],
        actual: list[tuple[str, Any]],
        parameters: dict[str, str],
        data: st.DataObject,
    ) -> None:
        """Outside the modes exact and in_order, no order of calls changes the value."""
        one = expecting(*reference, **parameters).evaluate(made(*actual))
        shuffled = data.draw(st.permutations(reference)), data.draw(st.permutations(actual))
        other = expecting(*shuffled[0], **parameters).evaluate(made(*shuffled[1]))

        assert value_of(one) == value_of(other)

    @at_most(200)
    @given(reference=CALLS, actual=CALLS, arguments=st.sampled_from(ARGUMENT_MODES))
    def test_looser_modes_hit_no_less(
        self, reference: list[tuple[str, Any]], actual: list[tuple[str, Any]], arguments: str
    ) -> None:
        """What is in the same place is in order, and what is in order is there at all."""
        run = made(*actual)
        exact, in_order, any_order = (
            details_of(expecting(*reference, mode=mode, arguments=arguments).evaluate(run))["hits"]
            for mode in ("exact", "in_order", "any_order")
        )

        assert exact <= in_order <= any_order <= min(len(reference), len(actual))


class TestFailedCalls:
    def test_count_unless_left_out(self) -> None:
        """A failed attempt is a call like any other, unless failed calls are not included."""
        run = Trajectory(calls=(ToolCall(name="a", error="timeout"), ToolCall(name="a")))

        assert 0.0 == value_of(expecting(("a", {})).evaluate(run))
        assert 1.0 == value_of(expecting(("a", {}), include_failed=False).evaluate(run))


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "reason"),
        [
            ({"argument_overrides": {"a": ["x..y"]}}, r"argument_overrides\.a: 'x\.\.y' must be keys joined by dots"),
            ({"ignore_arguments": ["."]}, r"ignore_arguments: '\.' must be"),
        ],
    )
    def test_refuses_what_means_nothing(self, parameters: dict[str, Any], reason: str) -> None:
        """A path that is none is an error that says what is allowed."""
        with pytest.raises(ValueError, match=reason):
            expecting(("a", {}), **parameters)


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = expecting(("a", {}), ("b", {}), scoring="recall", mode="in_order")
        run = called("a")

        assert (0.5, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("arguments", ARGUMENT_MODES)
    def test_is_kept(self, mode: str, arguments: str) -> None:
        """It evaluates whatever comes."""
        reference = ("search", {"city": "Paris", "limit": 10}), ("book", {}), ("t3", {"i": 3})
        check_evaluator(expecting(*reference, mode=mode, arguments=arguments, tool_names="canonical", scoring="f1"))

    def test_needs_recorded_arguments(self) -> None:
        """Arguments that the spans do not hold make it skip, if they had to be compared."""
        run = called("a", completeness=NO_ARGUMENTS)
        reason = "arguments of 1 call of 'a' were not recorded"

        assert Skipped(reason) == expecting(("a", {})).evaluate(run)
        assert 1.0 == value_of(expecting(("a", {"x": 1}), arguments="ignore").evaluate(run))
        assert 1.0 == value_of(expecting(("a", {"x": 1}), argument_overrides={"a": []}).evaluate(run))
        assert 0.0 == value_of(expecting(("b", {})).evaluate(run))

    def test_truncated(self) -> None:
        """Calls of the reference that are missing from a truncated trace do not count against the agent."""
        run = called("a", completeness=CUT_OFF)

        assert isinstance(expecting(("a", {}), ("b", {}), mode="superset").evaluate(run), Skipped)
        assert 1.0 == value_of(expecting(("a", {}), ("b", {}), mode="subset").evaluate(run))
        assert isinstance(expecting(("a", {}), ("b", {}), mode="subset", scoring="f1").evaluate(run), Skipped)


@pytest.mark.parametrize("mode", ["any_order", "unordered"])
def test_as_many_as_possible_are_paired(mode: str) -> None:
    """Whatever the order: the call that fits both is left to the one that nothing else fits."""
    evaluator = expecting(("a", {"x": {"$any": True}}), ("a", {"x": {"$range": [1, 1]}}), mode=mode)
    for order in permutations([1, 2]):
        assert 1 == value_of(evaluator.evaluate(made(*(("a", {"x": each}) for each in order))))


def test_only_some_paths_are_compared() -> None:
    """Matchers stand at paths, too, and differences are told with the whole path."""
    near = {"$near": 40, "within": 0.01}
    evaluator = expecting(("a", {"x": {"y": near, "z": 1}}), argument_overrides={"a": ["x.y"]})

    assert 1 == value_of(evaluator.evaluate(made(("a", {"x": {"y": 40, "z": 2}}))))
    found = evaluator.evaluate(made(("a", {"x": {"y": 41}})))
    assert isinstance(found, Score)
    assert "a.x.y: expected 40 ± 0.01, got 41" in found.explanation
    with pytest.raises(ValueError, match="cannot be compared at some paths only"):
        expecting(("a", {"$any": True}), argument_overrides={"a": ["x.y"]})


@pytest.mark.parametrize("mode", MODES)
def test_plain_calls_beside_matchers(mode: str) -> None:
    """Each is compared in its way, and a call with another name fits neither."""
    evaluator = expecting(("a", {"x": 1}), ("b", {"x": {"$range": [0, 9]}}), mode=mode, scoring="f1")

    for first, second, value in (
        (("a", {"x": 1}), ("b", {"x": 5}), 1.0),
        (("a", {"x": 2}), ("b", {"x": 5}), 0.5),
        (("a", {"x": 1}), ("b", {"x": 10}), 0.5),
        (("b", {"x": -1}), ("b", {"x": 5}), 0.5),
        (("a", {"x": 1}), ("a", {"x": 5}), 0.5),
    ):
        assert value == value_of(evaluator.evaluate(made(first, second))), (first, second)


@pytest.mark.parametrize("scoring", ["binary", "f1", "precision", "recall"])
def test_nothing_deviates_where_the_value_is_1(scoring: str) -> None:
    """Then there is no alignment either, in whatever order the calls were made."""
    run = made(("b", {}), ("a", {}))

    details = details_of(expecting(("a", {}), ("b", {}), mode="unordered", scoring=scoring).evaluate(run))
    assert ({"reference": 2, "actual": 2}, 2) == (details["totals"], details["hits"])
    assert set() == {"alignment", "deviations"} & details.keys()
