from __future__ import annotations

from spanscore.compare.steps._candidates import DEVIATES, FITS, MAY_FIT, pairs_of
from spanscore.compare.steps.graph import MISSING
from spanscore.compare.steps.parsing import read_pattern
from spanscore.compare.steps.pattern import leaves


def test_costs() -> None:
    """What fits is best, then what may fit; a deviating call is better than none, and each is one deviation."""
    assert FITS < MAY_FIT < DEVIATES < MISSING < DEVIATES + DEVIATES


def test_pairs() -> None:
    """An alignment is read from its end; within a group by call, and then what is missing."""
    a, b, c, d = leaves(read_pattern(["a", {"any_order": ["b", "c"]}, "d"], str).row)
    cell = ((((), a, 0), (((), b, -1), ((), c, 3))), d, 5)

    assert pairs_of(cell) == [(a, 0), (c, 3), (b, None), (d, 5)]
