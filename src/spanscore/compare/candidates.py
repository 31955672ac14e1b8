"""Calls of a run and the steps that they may take: what the search for the least deviations is given, and returns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from spanscore.compare.step_graph import UNIT
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
