"""Expected and actual calls side by side, for people to read: the detail `alignment` of a failed evaluation.

Each entry is `[expected name or null, actual name or null, status]`. `ok` is a match, `arguments` the right tool with
other arguments, `wrong` another tool, `missing` an expected call without a counterpart, `extra` a call without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from spanscore.compare.matching import Pairs, positions

LIMIT: Final = 200
"""No alignment, nor any other list in an evaluator's details, is longer."""

Entry: TypeAlias = "list[str | None]"


def by_position(expected: Sequence[str], actual: Sequence[str], fits: Callable[[int], bool]) -> list[Entry]:
    """Align the calls position by position.

    Args:
        expected: names.
        actual: names.
        fits: whether the calls at a position match; asked only where their names do.
    """
    shared = min(len(expected), len(actual), LIMIT)
    entries: list[Entry] = []
    for index in range(shared):
        same_tool = expected[index] == actual[index]
        status = "wrong" if not same_tool else "ok" if fits(index) else "arguments"
        entries.append([expected[index], actual[index], status])
    entries += islice(_unmatched(expected[shared:], actual[shared:]), LIMIT - shared)
    return entries


def in_order(expected: Sequence[str], actual: Sequence[str], pairs: Pairs) -> list[Entry]:
    """Align the calls along pairs of positions (actual, expected) that do not cross."""
    return list(islice(_in_order(expected, actual, pairs), LIMIT))


def in_any_order(expected: Sequence[str], actual: Sequence[str], pairs: Pairs) -> list[Entry]:
    """Align the calls along pairs of positions (actual, expected): in the order expected, then what is left over."""
    partner = {right: left for left, right in pairs}
    used = set(partner.values())
    spare = positions(name for index, name in enumerate(actual) if index not in used)
    entries: list[Entry] = []
    for index, name in enumerate(expected):
        if index in partner:
            entries.append([name, actual[partner[index]], "ok"])
        elif spare.get(name):
            spare[name].pop()
            entries.append([name, name, "arguments"])
        else:
            entries.append([name, None, "missing"])
    entries += ([None, str(name), "extra"] for name, left in spare.items() for _ in left)
    return entries[:LIMIT]


def _in_order(expected: Sequence[str], actual: Sequence[str], pairs: Pairs) -> Iterator[Entry]:
    left = right = 0
    for row, column in pairs:
        yield from _gap(expected[right:column], actual[left:row])
        yield [expected[column], actual[row], "ok"]
        left, right = row + 1, column + 1
    yield from _gap(expected[right:], actual[left:])


def _gap(expected: Sequence[str], actual: Sequence[str]) -> Iterator[Entry]:
    """Align what lies between two matches: equal names in the same place have other arguments."""
    shared = 0
    while shared < min(len(expected), len(actual)) and expected[shared] == actual[shared]:
        yield [expected[shared], actual[shared], "arguments"]
        shared += 1
    yield from _unmatched(expected[shared:], actual[shared:])


def _unmatched(expected: Sequence[str], actual: Sequence[str]) -> Iterator[Entry]:
    yield from ([name, None, "missing"] for name in expected)
    yield from ([None, name, "extra"] for name in actual)
