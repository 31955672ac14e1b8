"""Calls of a run and the steps that they may take: the input and output of the search for the least deviations."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from spanscore.compare.steps.graph import UNIT, Cell
from spanscore.compare.steps.pattern import Leaf

FITS: Final = -4
"""The cost of a call that fits: it is better than none, if all else is equal."""
MAY_FIT: Final = -3
DEVIATES: Final = UNIT - 1


class Candidate(NamedTuple):
    """A leaf that a call may take, and at which cost."""

    leaf: Leaf
    cost: int


class Pair(NamedTuple):
    """A leaf and the call that takes it; None if the call is missing."""

    leaf: Leaf
    call: int | None


@dataclass(slots=True, kw_only=True)
class AlignedCall:
    """A call, as the search sees it."""

    index: int
    candidates: Sequence[Candidate]
    saving: int
    """The cost of the call if it takes no step."""
    turn: int | None = None
    cliques: Sequence[Hashable] = ()
    """The ids of the sets of simultaneous calls that it belongs to."""


def pairs_of(end: Cell) -> list[Pair]:
    """Return the pairs of an alignment: within a group in the order of calls, then the missing ones."""
    parts: list[list[Pair]] = []
    while end:
        if len(end) == 3:  # noqa: PLR2004 - as said of cells
            end, leaf, call = end
            parts.append([Pair(leaf, None if call < 0 else call)])
        else:
            end, cells = end
            members = [pair for cell in cells for pair in pairs_of(cell)]
            parts.append(sorted(members, key=lambda pair: math.inf if pair.call is None else pair.call))
    return [pair for part in reversed(parts) for pair in part]
