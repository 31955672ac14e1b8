"""Globs over names: `*` stands for any run of characters, `?` for one; everything else for itself.

Patterns come from configurations, names from telemetry: a name may be a megabyte long and made to be slow. A match
costs time linear in the name, because each piece between two stars is looked for once, leftmost, and never again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from spanscore.model import AttributeValue

Find: TypeAlias = Callable[[str, int], int]
"""Returns where a piece is found first, from a position on; -1 where it is not."""

_WILD: Final = frozenset("*?")


def is_glob(pattern: str) -> bool:
    """Return whether the pattern is more than a plain name."""
    return not _WILD.isdisjoint(pattern)


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a whole name matches the pattern; case counts."""
    if not is_glob(pattern):
        return pattern.__eq__
    first, *others = pattern.split("*")
    if not others:
        return _whole(pattern)
    *middle, last = others
    starts, ends = _finder(first), _finder(last)
    finders = [(_finder(piece), len(piece)) for piece in middle if piece]

    def matches(name: str) -> bool:
        position, stop = len(first), len(name) - len(last)
        if stop < position or starts(name[:position], 0) != 0 or ends(name[stop:], 0) != 0:
            return False
        for find, length in finders:
            found = find(name, position)
            if found < 0 or found + length > stop:
                return False
            position = found + length
        return True

    return matches


def value_matches(matcher: Callable[[str], bool], value: AttributeValue) -> bool:
    """Return whether an attribute, or an item of it, matches. Booleans and numbers match as JSON writes them."""
    match value:
        case str():
            return matcher(value)
        case bool():
            return matcher(str(value).lower())
        case int() | float():
            return matcher(str(value))
        case list():
            return any(value_matches(matcher, item) for item in value if not isinstance(item, list))
        case _:
            return False


def _whole(pattern: str) -> Callable[[str], bool]:
    find = _finder(pattern)
    return lambda name: len(name) == len(pattern) and find(name, 0) == 0


def _finder(piece: str) -> Find:
    if "?" not in piece:
        return lambda name, start: name.find(piece, start)
    # Characters and dots only: without a quantifier there is nothing that could backtrack.
    expression = re.compile(re.escape(piece).replace(r"\?", "."), re.DOTALL)

    def find(name: str, start: int) -> int:
        found = expression.search(name, start)
        return found.start() if found else -1

    return find
