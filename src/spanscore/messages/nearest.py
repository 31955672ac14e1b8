"""The name that was probably meant, for messages about names that do not exist."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

from spanscore.messages.printable import MAX_LABEL_CHARS, printable

_SIMILAR = 0.6
_REMOTELY: Final = 0.3
_SHOWN: Final = 5
_LONGEST = 100  # difflib's cost is quadratic; no name worth correcting is longer
_NEIGHBOURS: Final = 8
_TRIED: Final = 8
_ALIKE: Final = 0.8
_SHORTEST: Final = 4
"""Letters of a word in which one may be mistyped: of three, another letter makes another word."""
_NOT_WORD: Final = re.compile(r"[\W_]+")
_NUMBER: Final = re.compile(r"\d+")


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known name nearest to `word`, or nothing when none is near."""
    return "".join(f"; did you mean {near!r}?" for near in nearest(word, known))


def nearest(word: str, known: Iterable[str], count: int = 1, similar: float = _SIMILAR) -> list[str]:
    """Return the known names nearest to `word`, the nearest first, with at least a similarity from 0 to 1."""
    if len(word) > _LONGEST:
        return []
    folded = {_folded(name): name for name in sorted(known, reverse=True)}
    return [folded[near] for near in get_close_matches(_folded(word), folded, n=count, cutoff=similar)]


def mistyped(word: str, known: Iterable[str]) -> str | None:
    """Return the known name of which `word` is probably a mistyped form, or None.

    Stricter than `nearest`: `get_user` and `set_user`, `step_1` and `step_2` are different tools. Each word of the name
    has to be like its counterpart; of `word*` only the words before the star are compared.
    """
    is_start = word.endswith("*")
    words = _words(word.removesuffix("*"))
    for name in nearest(word, known, _TRIED, 0.0 if is_start else _SIMILAR):
        others = _words(name)
        if is_start:
            if others == words:
                continue  # it ends where the pattern wants more
            others = others[: len(words)]
        if words and len(words) == len(others) and all(map(_alike, words, others)):
            return name
        if "".join(words) == "".join(others) and not is_start:
            return name
    return None


def existing(wanted: str, known: Collection[str]) -> str:
    """Return the existing values, for a message about one that no run has: the first ones, or those that are near.

    Args:
        wanted: the value that was asked for.
        known: the values of the runs, at least one.
    """
    shown = nearest(wanted, known, _SHOWN) or list(known)[:_SHOWN]
    others = len(known) - len(shown)
    more = f" and {others} more" if others else ""
    near = nearest(wanted, shown, 1, _REMOTELY) if len(shown) > 1 else []
    the_nearest = f"; the nearest is {printable(near[0], MAX_LABEL_CHARS)}" if near else ""
    listed = ", ".join(printable(each, MAX_LABEL_CHARS) for each in sorted(shown))
    return f"runs have {listed}{more}{the_nearest}"


def unmatched(name: str, wanted: str, known: Iterable[str]) -> str | None:
    """Return the message about a filter by a value that no run has; None if some run has it, or if there are no values.

    Args:
        name: the name of the filter.
        wanted: the value that was asked for.
        known: the values of the runs.
    """
    values = dict.fromkeys(known)
    if not values or wanted in values:
        return None
    return f"{name}: {printable(wanted, MAX_LABEL_CHARS)!r} matches no run; {existing(wanted, values)}"


class ManyNames:
    """Finds the nearest of very many names, for about the cost of one: live, it may be asked for every trace.

    Only names that stand beside the word in the order of the alphabet are compared with it, read from the front and
    from the back: a mistake leaves one end or the other as it was.
    """

    def __init__(self, names: Iterable[str]) -> None:
        known = [(_folded(name), name) for name in names if len(name) <= _LONGEST]
        self._orders: Final = (sorted(known), sorted((folded[::-1], name) for folded, name in known))

    def nearest(self, word: str) -> str:
        """Return `; the nearest is 'x'` for the name nearest to a word, or nothing when none is near."""
        folded = _folded(word)
        found: set[str] = set()
        for order, end in zip(self._orders, (folded, folded[::-1]), strict=True):
            place = bisect_left(order, (end,))
            found.update(name for _, name in order[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS])
        return "".join(f"; the nearest is {name!r}" for name in nearest(word, found))


def _words(name: str) -> list[str]:
    return [word for word in _NOT_WORD.split(_folded(name)) if word]


def _alike(one: str, other: str) -> bool:
    """Return whether two words differ by about a letter; a number is another one."""
    if one == other:
        return True
    same_numbers = _NUMBER.findall(one) == _NUMBER.findall(other)
    return same_numbers and (SequenceMatcher(None, one, other).ratio() >= _ALIKE or _is_slip(one, other))


def _is_slip(one: str, other: str) -> bool:
    """Return whether a letter was mistyped, or two were swapped. The first must be right: `get` is not `set`."""
    if len(one) != len(other) or len(one) < _SHORTEST or one[0] != other[0]:
        return False
    places = [index for index, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]
    first, last = places[0], places[-1]
    return first == last or (last - first == 1 and one[first : last + 1] == other[first : last + 1][::-1])


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")
