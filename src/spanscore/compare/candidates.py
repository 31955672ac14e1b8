"""Calls of a run and the steps that they may take: what the search for the least deviations is given, and returns."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from spanscore.compare.step_graph import UNIT, Cell
from spanscore.compare.steps import Leaf

FITS: Final = -4
"""A call that fits is better than none, where it does not matter otherwise."""
MAY_FIT: Final = -3
DEVIATES: Final = UNIT - 1


class Candidate(NamedTuple):
    """A leaf that a call may take, and at which cost."""

    leaf: Leaf
    cost: int


class Pair(NamedTuple):
    """A leaf and the call that takes it; None where it is missing."""

    leaf: Leaf
    call: int | None


@dataclass(slots=True, kw_only=True)
class AlignedCall:
    """What the search needs to know of a call."""

    index: int
    candidates: Sequence[Candidate]
    saving: int
    """What it costs where it takes no step."""
    turn: int | None = None
    cliques: Sequence[Hashable] = ()
    """What it has in common with others that run at the same time: one for each such set of calls."""


def pairs_of(end: Cell) -> list[Pair]:
    """Return the pairs of an alignment: within a group by call, and then what is missing."""
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
