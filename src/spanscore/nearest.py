"""The name that was probably meant, for messages about names that do not exist."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_SIMILAR = 0.6
_LONGEST = 100  # difflib's cost is quadratic; no name worth correcting is longer
_NEIGHBOURS: Final = 8


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known name nearest to `word`, or nothing when none is near."""
    near = nearest(word, known, 1, _SIMILAR)
    return f"; did you mean {near[0]!r}?" if near else ""


def nearest(word: str, known: Iterable[str], count: int, similar: float = 0.0) -> list[str]:
    """Return the known names nearest to `word`, the nearest first; those only that are at least so similar, 0 to 1."""
    if len(word) > _LONGEST:
        return []
    folded = {_folded(name): name for name in sorted(known, reverse=True)}
    return [folded[near] for near in get_close_matches(_folded(word), folded, n=count, cutoff=similar)]


class ManyNames:
    """Finds the nearest of very many names, for about the cost of one: live, it may be asked for every trace.

    Only names that stand beside the word in the order of the alphabet are compared with it, read from the front and
    from the back: a mistake leaves one end or the other as it was.
    """

    def __init__(self, names: Iterable[str]) -> None:
        known = [(_folded(name), name) for name in names if len(name) <= _LONGEST]
        self._orders: Final = (sorted(known), sorted((folded[::-1], name) for folded, name in known))

    def nearest(self, word: str) -> str | None:
        """Return the name nearest to a word, or None when none is near."""
        folded = _folded(word)
        found: set[str] = set()
        for order, end in zip(self._orders, (folded, folded[::-1]), strict=True):
            place = bisect_left(order, (end,))
            found.update(name for _, name in order[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS])
        return next(iter(nearest(word, found, 1, _SIMILAR)), None)


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")
