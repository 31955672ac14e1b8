from __future__ import annotations

from spanscore.compare import alignment


class TestByPosition:
    def test_every_status(self) -> None:
        """A position is ok, has other arguments, another tool, or a call on one side only."""
        entries = alignment.by_position(["a", "b", "c", "d"], ["a", "b", "x"], lambda index: index == 0)

        assert [["a", "a", "ok"], ["b", "b", "arguments"], ["c", "x", "wrong"], ["d", None, "missing"]] == entries

    def test_calls_too_many(self) -> None:
        """Calls beyond the expected ones are extra."""
        assert [["a", "a", "ok"], [None, "b", "extra"]] == alignment.by_position(["a"], ["a", "b"], lambda _: True)

    def test_is_bounded(self) -> None:
        """Only so many entries are listed, however long the run."""
        assert alignment.LIMIT == len(alignment.by_position(["a"] * 500, ["a"] * 900, lambda _: True))
        assert alignment.LIMIT == len(alignment.by_position(["a"], ["a"] * 900, lambda _: True))


class TestInOrder:
    def test_gaps_between_matches(self) -> None:
        """What lies between matches is missing or extra, or the same tool with other arguments."""
        entries = alignment.in_order(["a", "b", "c", "d"], ["x", "a", "b", "y", "d"], [(1, 0), (4, 3)])

        assert [
            [None, "x", "extra"],
            ["a", "a", "ok"],
            ["b", "b", "arguments"],
            ["c", None, "missing"],
            [None, "y", "extra"],
            ["d", "d", "ok"],
        ] == entries

    def test_is_bounded(self) -> None:
        """Only so many entries are listed, however long the run."""
        assert alignment.LIMIT == len(alignment.in_order(["a"] * 500, ["b"] * 900, []))


class TestInAnyOrder:
    def test_in_the_order_expected(self) -> None:
        """The expected calls come first, each with its counterpart, then the calls that are left over."""
        entries = alignment.in_any_order(["a", "b", "b", "c"], ["b", "x", "a", "b"], [(2, 0), (0, 1)])

        assert [
            ["a", "a", "ok"],
            ["b", "b", "ok"],
            ["b", "b", "arguments"],
            ["c", None, "missing"],
            [None, "x", "extra"],
        ] == entries

    def test_is_bounded(self) -> None:
        """Only so many entries are listed, however long the run."""
        assert alignment.LIMIT == len(alignment.in_any_order(["a"] * 500, ["b"] * 900, []))
