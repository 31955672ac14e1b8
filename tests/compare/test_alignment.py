from __future__ import annotations

from collections.abc import Sequence

import pytest

from spanscore.compare import alignment
from spanscore.compare.alignment import Aligned, Entry
from spanscore.model import ToolCall


def entry(expected: str | None, actual: str | None, status: str, call: int | None = None) -> Entry:
    """Return an entry as JSON."""
    return {"expected": expected, "actual": actual, "status": status, "call": call}


def listed_entries(aligned: Sequence[Aligned], expected: Sequence[str], actual: Sequence[str]) -> list[Entry]:
    """Return the entries of an alignment with calls of which none were left out."""
    return alignment.entries(aligned, expected, actual, [ToolCall(name=name) for name in actual])


def statuses(aligned: Sequence[Aligned]) -> list[tuple[int | None, int | None, str]]:
    """Return pairs as plain tuples."""
    return [tuple(pair) for pair in aligned]


class TestByPosition:
    def test_every_status(self) -> None:
        """A position is ok, has other arguments, another tool, or a call on one side only."""
        aligned = alignment.by_position(["a", "b", "c", "d"], ["a", "b", "x"], lambda index: index == 0)

        assert [(0, 0, "ok"), (1, 1, "arguments"), (2, 2, "wrong"), (3, None, "missing")] == statuses(aligned)

    def test_calls_too_many(self) -> None:
        """Calls beyond the expected ones are extra."""
        assert [(0, 0, "ok"), (None, 1, "extra")] == statuses(alignment.by_position(["a"], ["a", "b"], lambda _: True))


class TestInOrder:
    def test_gaps_between_matches(self) -> None:
        """What lies between matches is missing or extra, or the same tool with other arguments."""
        aligned = alignment.in_order(["a", "b", "c", "d"], ["x", "a", "b", "y", "d"], [(1, 0), (4, 3)])

        assert [
            (None, 0, "extra"),
            (0, 1, "ok"),
            (1, 2, "arguments"),
            (2, None, "missing"),
            (None, 3, "extra"),
            (3, 4, "ok"),
        ] == statuses(aligned)

    def test_a_changed_call_after_a_missing_one(self) -> None:
        """Each is one deviation: the changed call is paired with its own, not with the place of the missing one."""
        aligned = alignment.in_order(["a", "b", "c"], ["b", "c"], [(1, 2)])

        assert [(0, None, "missing"), (1, 0, "arguments"), (2, 1, "ok")] == statuses(aligned)

    def test_a_changed_call_after_an_extra_one(self) -> None:
        """Behind a match, too, each call is there once."""
        aligned = alignment.in_order(["a", "b", "c"], ["a", "x", "b", "y", "c"], [(0, 0), (4, 2)])

        assert [
            (0, 0, "ok"),
            (None, 1, "extra"),
            (1, 2, "arguments"),
            (None, 3, "extra"),
            (2, 4, "ok"),
        ] == statuses(aligned)

    def test_a_call_that_has_its_place_is_not_at_another(self) -> None:
        """What is missing beside it was not made."""
        aligned = alignment.in_order(["a", "a"], ["a", "x"], [(0, 0)])

        assert [(0, 0, "ok"), (1, None, "missing"), (None, 1, "extra")] == statuses(aligned)

    def test_a_call_at_another_place(self) -> None:
        """A call that was made, but not in order, is marked once, where it was expected."""
        aligned = alignment.in_order(["a", "b"], ["b", "a"], [(0, 1)])

        assert [(0, 1, "order"), (1, 0, "ok"), (None, 1, "ignored")] == statuses(aligned)


class TestInAnyOrder:
    def test_in_the_order_expected(self) -> None:
        """The expected calls come first, each with its counterpart, then the calls that are left over."""
        aligned = alignment.in_any_order(["a", "b", "b", "c"], ["b", "x", "a", "b"], [(2, 0), (0, 1)])

        assert [
            (0, 2, "ok"),
            (1, 0, "ok"),
            (2, 3, "arguments"),
            (3, None, "missing"),
            (None, 1, "extra"),
        ] == statuses(aligned)

    def test_changed_calls_keep_their_order(self) -> None:
        """Of several changed calls of one tool the first stands beside the first."""
        assert [(0, 0, "arguments"), (1, 1, "arguments")] == statuses(
            alignment.in_any_order(["a", "a"], ["a", "a"], [])
        )


def test_what_nobody_minds_is_not_marked() -> None:
    """Each of missing and extra calls may be of no interest."""
    aligned = [Aligned(0, None, "missing"), Aligned(None, 0, "extra"), Aligned(1, 1, "arguments")]

    assert ["ignored", "extra", "arguments"] == [pair.status for pair in alignment.minding(aligned, missing=False)]
    assert ["missing", "ignored", "arguments"] == [pair.status for pair in alignment.minding(aligned, extra=False)]


def test_what_everybody_minds_stays_as_it_is() -> None:
    """Both are minded where nothing else is said."""
    aligned = [Aligned(0, None, "missing"), Aligned(None, 0, "extra")]

    assert aligned == alignment.minding(aligned)


class TestEntries:
    def test_names_and_indexes(self) -> None:
        """An entry names both sides and the index of the call; a call at another place is not named here."""
        aligned = alignment.in_order(["a", "b"], ["b", "a"], [(0, 1)])

        assert [entry("a", None, "order", 1), entry("b", "b", "ok", 0), entry(None, "a", "ignored", 1)] == (
            listed_entries(aligned, ["a", "b"], ["b", "a"])
        )

    def test_is_folded_where_it_is_long(self) -> None:
        """However far behind the deviation is, it is there, with two calls around it."""
        names = ["a"] * 500
        aligned = alignment.by_position(names, names, lambda index: index != 300)

        listed = listed_entries(aligned, names, names)
        assert [298, 41 + 156] == [each["calls"] for each in listed if each["status"] == "folded"]
        assert [298, 299, 300, 301, 302] == [each["call"] for each in listed if each["status"] != "folded"]

    def test_is_cut_where_all_of_it_deviates(self) -> None:
        """Only so many entries are listed, however long the run, and it says how many are not."""
        names = ["a"] * 500
        listed = listed_entries(alignment.by_position(names, [], lambda _: True), names, [])

        assert (alignment.LIMIT, {"status": "cut", "calls": 301}) == (len(listed), listed[-1])

    @pytest.mark.parametrize("first", range(1, 7))
    def test_what_is_cut_off_counts_the_calls_of_folds(self, first: int) -> None:
        """Wherever the list ends, also at a place where it would have a fold."""
        deviates = [True] * first + ([False] * 8 + [True]) * 50
        names = ["a"] * len(deviates)
        listed = listed_entries(alignment.by_position(names, names, lambda index: not deviates[index]), names, names)

        assert (alignment.LIMIT, "cut") == (len(listed), listed[-1]["status"])
        assert len(names) == sum(each.get("calls", 1) for each in listed)

    def test_is_whole_where_it_just_fits(self) -> None:
        """As many entries as may be listed are neither folded nor cut."""
        names = ["a"] * alignment.LIMIT
        listed = listed_entries(alignment.by_position(names, names, lambda _: True), names, names)
        assert [entry("a", "a", "ok", index) for index in range(alignment.LIMIT)] == listed

        one_more = [*names, "a"]
        listed = listed_entries(alignment.by_position(one_more, one_more, lambda _: True), one_more, one_more)
        assert [{"status": "folded", "calls": alignment.LIMIT + 1}] == listed

    def test_is_not_cut_where_folding_is_enough(self) -> None:
        """What fits after folding is all there, whether it ends with what deviates or with what does not."""
        names = ["a"] * 500
        for first in (0, 303):
            marked = range(first, first + 197)
            listed = listed_entries(
                alignment.by_position(names, names, lambda index, marked=marked: index not in marked), names, names
            )

            assert "cut" not in {each["status"] for each in listed}
            assert 500 == sum(each.get("calls", 1) for each in listed)


class TestFolded:
    def test_two_calls_around_what_deviates(self) -> None:
        """What is as expected, or of no interest, and farther away is a number."""
        listed = [entry("a", "a", "ok", index) for index in range(10)]
        listed[4] = entry("a", None, "missing")
        listed[9] = entry(None, "b", "ignored", 9)

        assert [{"status": "folded", "calls": 2}, *listed[2:7], {"status": "folded", "calls": 3, "ignored": 1}] == (
            alignment.folded(listed)
        )

    def test_a_single_call_is_not_folded(self) -> None:
        """What would stand in its place is no shorter."""
        listed = [entry("a", "a", "ok", 0), *(entry("b", None, "missing") for _ in range(1))]

        assert listed == alignment.folded(listed)
        three = [entry("a", "a", "ok", index) for index in range(3)]
        assert [three[0], *three[1:], entry("b", None, "missing")] == alignment.folded(
            [*three, entry("b", None, "missing")]
        )

    def test_folding_twice_adds_up(self) -> None:
        """What is folded already counts as many calls as it stands for."""
        once = [{"status": "folded", "calls": 40}, entry("a", "a", "ok", 40)]

        assert [{"status": "folded", "calls": 41}] == alignment.folded(once)
