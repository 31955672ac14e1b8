from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.compare.bipartite import maximum_matching

SYMBOLS = st.lists(st.integers(0, 4), max_size=5)
PARTNERS = st.fixed_dictionaries({symbol: st.lists(st.integers(0, 4), max_size=4) for symbol in range(5)})


def largest(left: list[int], right: list[int], partners: dict[int, list[int]]) -> int:
    """Return the size of a largest matching by trying all of them."""
    padded = [*right, *([None] * len(left))]
    return max(
        sum(other in partners[one] for one, other in zip(left, order, strict=False) if other is not None)
        for order in permutations(padded, len(left))
    )


class TestMaximumMatching:
    @at_most(150)
    @given(left=SYMBOLS, right=SYMBOLS.map(lambda symbols: symbols[:4]), partners=PARTNERS)
    def test_is_a_largest_one(self, left: list[int], right: list[int], partners: dict[int, list[int]]) -> None:
        """No other matching has more pairs; all pairs fit, and no position is in two."""
        pairs = maximum_matching(left, right, partners)

        assert largest(left, right, partners) == len(pairs)
        assert all(right[other] in partners[left[one]] for one, other in pairs)
        assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})

    def test_gives_way(self) -> None:
        """A symbol that could go anywhere leaves the only place of another free."""
        assert [(1, 0), (0, 1)] == maximum_matching("ab", "xy", {"a": "xy", "b": "x"})

    def test_detours_that_lead_nowhere(self) -> None:
        """Of two ways to make room the open one is found, and one place made free serves one symbol only."""
        partners = {"h": "x", "k": "yz", "s": "xy", "t": "y"}

        assert 3 == len(maximum_matching("hkst", "xyz", partners))
        assert 4 == len(maximum_matching("hkst", "xxyz", partners))

    def test_long_detours(self) -> None:
        """Each of a thousand symbols has to move by one so that the last finds a place."""
        count = 1_000
        partners = {symbol: [symbol, symbol + 1] for symbol in range(count)} | {count: [0]}

        assert count + 1 == len(maximum_matching(range(count + 1), range(count + 1), partners))

    def test_repeated_calls_cost_nothing(self) -> None:
        """A hundred thousand equal calls are one symbol."""
        assert 100_000 == len(maximum_matching(["a"] * 100_000, ["x"] * 100_000, {"a": "x"}))
