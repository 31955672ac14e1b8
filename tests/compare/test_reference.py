from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.compare.matchers.base import EarlierResults
from spanscore.compare.matching import json_equal, member_keys
from spanscore.compare.reference import UNKNOWN, ComparableCall, Reference
from spanscore.model import NOT_RECORDED, Recorded, ToolCall

ARGUMENTS = st.one_of(
    st.just(NOT_RECORDED), st.dictionaries(st.sampled_from("ab"), st.sampled_from([0, 1, 1.0, True, "x"]), max_size=2)
)
CALLS = st.lists(st.tuples(st.sampled_from(["search", "book"]), ARGUMENTS), max_size=8)


def expecting(calls: list[tuple[str, Any]]) -> Reference:
    """Return a reference of these calls, in which no arguments equal an empty object."""
    return Reference(
        [ComparableCall.of(name, arguments) for name, arguments in calls], lambda _, given: member_keys(given)
    )


def run(calls: list[tuple[str, Any]]) -> tuple[tuple[str, ...], list[ToolCall]]:
    """Return the names of calls, and the calls."""
    return tuple(name for name, _ in calls), [ToolCall(name=name, arguments=arguments) for name, arguments in calls]


def are_equal(one: tuple[str, Recorded], other: tuple[str, Recorded]) -> bool:
    """Return whether two calls are equal."""
    left, right = ({} if arguments is NOT_RECORDED else arguments for _, arguments in (one, other))
    return one[0] == other[0] and json_equal(left, right)


def _take(left: list[tuple[str, Any]], wanted: tuple[str, Any]) -> bool:
    """Take a call that is equal to one expected, if there is one."""
    place = next((place for place, call in enumerate(left) if are_equal(wanted, call)), None)
    if place is not None:
        del left[place]
    return place is not None


def test_further_arguments_count_unless_told_otherwise() -> None:
    """For a call with matchers, as for one without."""
    for extra in (True, False):
        wanted = ComparableCall.read("a", {"x": {"$any": True}}, "it", extra=extra)
        assert extra is not wanted.fits({"x": 1, "y": 2}, EarlierResults.nothing())
        assert wanted.fits({"x": 1}, EarlierResults.nothing())
        assert not wanted.fits({"y": 2}, EarlierResults.nothing())


def test_a_boolean_is_no_number() -> None:
    """Though both are equal in Python, a run with one in place of the other is not the expected run."""
    reference = expecting([("book", {"n": 1}), ("book", {"b": True})])
    assert reference.is_run(*run([("book", {"n": 1.0}), ("book", {"b": True})]))
    assert not reference.is_run(*run([("book", {"n": True}), ("book", {"b": True})]))
    assert not reference.is_run(*run([("book", {"n": 1}), ("book", {"b": 1})]))


class TestReference:
    @at_most(300)
    @given(reference=CALLS, calls=CALLS)
    def test_numbers_are_the_first_equal_ones(
        self, reference: list[tuple[str, Any]], calls: list[tuple[str, Any]]
    ) -> None:
        """Each call has the position of the first expected call that is equal, in whatever order they come."""
        expected = [
            next((place for place, wanted in enumerate(reference) if are_equal(wanted, call)), UNKNOWN)
            for call in calls
        ]

        assert expected == expecting(reference).recognised(*run(calls))

    def test_a_run_of_other_arguments_is_surely_another_only_if_all_are_recorded(self) -> None:
        """Arguments that are not recorded may be equal all the same."""
        reference = expecting([("search", {"a": 1}), ("search", {})])

        assert reference.is_surely_not_run(*run([("search", {"a": 2}), ("search", {})]))
        assert not reference.is_surely_not_run(*run([("search", {"a": 2}), ("search", NOT_RECORDED)]))

    @at_most(200)
    @given(reference=CALLS, calls=CALLS)
    def test_is_run(self, reference: list[tuple[str, Any]], calls: list[tuple[str, Any]]) -> None:
        """Only a run of equal calls in the same places is the reference."""
        same = len(reference) == len(calls) and all(map(are_equal, reference, calls))

        assert same or not expecting(reference).is_run(*run(calls))

    @at_most(300)
    @given(reference=CALLS, calls=CALLS)
    def test_what_is_sure(self, reference: list[tuple[str, Any]], calls: list[tuple[str, Any]]) -> None:
        """What is found at a glance is so: other calls, one that is missing in the order expected, or at all."""
        known, (names, made) = expecting(reference), run(calls)
        left, behind = list(calls), iter(calls)
        is_in_order = all(any(are_equal(wanted, call) for call in behind) for wanted in reference)
        is_among = all(_take(left, wanted) for wanted in reference)
        same = len(reference) == len(calls) and all(map(are_equal, reference, calls))

        assert not same or known.is_run(names, made) or not known.is_surely_not_run(names, made)
        assert not is_in_order or not known.is_surely_not_in_order(names, made)
        assert not is_among or not known.is_surely_missed(names, made)

    def test_what_differs_early_is_found_early(self) -> None:
        """Calls with other arguments, in another order, or fewer of them."""
        known = expecting([("a", {"x": 1}), ("b", {"y": 2})])

        for calls in ([("a", {"x": 1})], [("a", {"x": 1}), ("b", {"y": 3})], [("b", {"y": 2}), ("a", {"x": 1})]):
            assert known.is_surely_not_run(*run(calls))
            assert known.is_surely_not_in_order(*run(calls))
            assert known.is_surely_missed(*run(calls)) == (calls[0][0] == "a")

    def test_a_few_calls_that_are_elsewhere_are_looked_for(self) -> None:
        """With more of them it is not known at a glance whether one is missing."""
        for elsewhere, is_missed in ((7, True), (8, False)):
            *others, first, missing = [("a", {"x": number}) for number in range(2, elsewhere + 3)]
            known = expecting([*others, first, missing])
            assert known.is_surely_missed(*run([first, *others, ("a", {"x": 99})])) is is_missed, elsewhere

    def test_a_run_without_doubtful_values_is_known_at_once(self) -> None:
        """Where no boolean can be mistaken for a number, equal runs are found equal."""
        calls = [("search", {"city": "Paris", "limit": 10}), ("book", {})]

        assert expecting(calls).is_run(*run(calls))

    @at_most(200)
    @given(reference=CALLS, calls=CALLS)
    def test_pairs_are_the_intersection(self, reference: list[tuple[str, Any]], calls: list[tuple[str, Any]]) -> None:
        """As many pairs as the multisets of calls share, each position at most once."""
        known = expecting(reference)
        numbers = known.recognised(*run(calls))
        pairs = known.pairs(numbers)

        shared = Counter(number for number in numbers if number != UNKNOWN) & Counter(known.numbers)
        assert shared.total() == len(pairs)
        assert all(are_equal(calls[index], reference[place]) for index, place in pairs)
        assert len(pairs) == len({index for index, _ in pairs}) == len({place for _, place in pairs})

    def test_pairs_are_the_earliest(self) -> None:
        """The first call of a kind belongs to the first expected one."""
        known = expecting([(name, {}) for name in "baa"])

        assert [(0, 1), (1, 0), (2, 2)] == known.pairs(known.recognised(*run([(name, {}) for name in "abac"])))
