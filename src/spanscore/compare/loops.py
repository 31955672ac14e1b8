"""Finds calls that repeat themselves, one by one or in cycles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from spanscore.compare.differences import json_text
from spanscore.compare.effort import Effort
from spanscore.compare.matching import json_key, positions
from spanscore.model import NOT_RECORDED, Recorded, ToolCall

_PIECE: Final = 3
_LONGEST: Final = 2_000
"""Characters. Of longer arguments the beginning is compared."""
_MOST: Final = 10_000
"""Comparisons of arguments of one evaluation."""


class Loop(NamedTuple):
    """Calls that are part of one loop."""

    kind: str
    calls: Sequence[int]
    length: int
    """Of so many calls one round is made."""


def result_key(call: ToolCall) -> Hashable:
    """Return the key of the result of a call; equal results have equal keys.

    The keys of a failed call and of a successful one differ, even if neither result is recorded.
    """
    return (NOT_RECORDED, call.error is None) if call.result is NOT_RECORDED else json_key(call.result)


def repeated(symbols: Sequence[Hashable], least: int, *, adjacent: bool) -> Iterator[Loop]:
    """Yield the calls that are made at least so often, anywhere or one right after the other."""
    runs: Iterable[Sequence[int]] = positions(symbols).values()
    if adjacent:
        runs = ([index for index, _ in run] for _, run in groupby(enumerate(symbols), key=itemgetter(1)))
    yield from (Loop("identical", calls, 1) for calls in runs if len(calls) >= least)


def cycles(symbols: Sequence[Hashable], longest: int, times: int) -> Iterator[Loop]:
    """Yield the rounds of 2 to `longest` calls that are repeated at least `times` times without a gap.

    A round that consists of shorter rounds is yielded as these.
    """
    told: set[int] = set()
    for length in range(2, longest + 1):
        same = [one == other for one, other in zip(symbols, symbols[length:], strict=False)]
        place = 0
        for is_same, run in groupby(same):
            size = len(list(run))
            rounds = (size + length) // length
            calls = range(place, place + rounds * length)
            if is_same and rounds >= times and not told.issuperset(calls) and len({symbols[i] for i in calls}) > 1:
                told.update(calls)
                yield Loop("cycle", list(calls), length)
            place += size


class Alike:
    """Groups arguments that are nearly the same: each with the first before it that it is like.

    Two are alike by the share of pieces of three characters that their JSON texts have in common. That share must be at
    least `least`.
    """

    def __init__(self, least: float) -> None:
        self._least: Final = least
        self._groups: dict[str, list[Counter[str]]] = {}
        self._effort: Final = Effort(_MOST, "looking for similar arguments takes more than {} comparisons")

    def group(self, tool: str, arguments: Recorded) -> int:
        """Return the number of the group of a tool to which arguments belong.

        Raises:
            TooMuchWorkError: it takes too many comparisons.
        """
        pieces = _pieces(str(json_text(arguments))[:_LONGEST])
        groups = self._groups.setdefault(tool, [])
        for number, other in enumerate(groups):
            self._effort.spend()
            if 2 * (pieces & other).total() / (pieces.total() + other.total()) >= self._least:
                return number
        groups.append(pieces)
        return len(groups) - 1


def _pieces(text: str) -> Counter[str]:
    return Counter(text[place : place + _PIECE] for place in range(max(1, len(text) - _PIECE + 1)))
