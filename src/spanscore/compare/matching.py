"""The comparisons of evaluators: JSON equality, common subsequences and matchings, none quadratic in practice.

JSON equality is defined once, by `json_key`: numbers are equal by value (1 and 1.0), booleans are never equal to
numbers, the order of an object's keys is irrelevant and that of a list is not. A call without recorded arguments is not
JSON; `NOT_RECORDED` equals only itself. NaN and infinity do not exist in JSON either: dialects remove them.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from spanscore.compare._structure_keys import DISTINCT, NUMBERS, number_key, structure_key
from spanscore.compare.effort import Effort
from spanscore.model import NOT_RECORDED, Recorded

Pairs: TypeAlias = "list[tuple[int, int]]"
"""Positions that belong together: on the left, on the right."""

_Symbol = TypeVar("_Symbol", bound=Hashable)

_BLOCK: Final = 128
_DEEP: Final = 32
"""Levels of a value that `==` may compare: more could exhaust the stack."""


class _Token(enum.Enum):
    """Marks for booleans, which Python would confuse with numbers."""

    TRUE = enum.auto()
    FALSE = enum.auto()


_PLAIN: Final = frozenset({str, type(None)})
"""Types whose values are their own keys."""


def json_key(value: Recorded) -> Hashable:
    """Return a hashable that is equal to another value's exactly when the two values are equal as JSON."""
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[return-value]  # one of the plain types, all hashable
    if kind in NUMBERS:
        return number_key(value)  # type: ignore[arg-type]  # a number
    if kind is dict and _are_own_keys(value.values()):  # type: ignore[union-attr]  # a dict
        return frozenset(value.items())  # type: ignore[union-attr]
    if kind is dict:
        return frozenset([(name, _key(item)) for name, item in value.items()])  # type: ignore[union-attr]
    return _key(value)


def json_equal(left: Recorded, right: Recorded) -> bool:
    """Return whether two values are equal as JSON."""
    return json_key(left) == json_key(right)


class Doubt(NamedTuple):
    """A place in a value where Python's `==` does not distinguish a boolean from a number."""

    path: tuple[Any, ...]
    is_boolean: bool


def are_settled(doubts: Iterable[Doubt], value: Any) -> bool:
    """Return whether a value that is equal by `==` is of the same kind at these places."""
    for path, is_boolean in doubts:
        found = value
        for step in path:
            found = found[step]
        if (found is True or found is False) is not is_boolean:
            return False
    return True


def doubts(value: Any) -> tuple[Doubt, ...] | None:
    """Return the places where `==` with this value, far faster than keys, may be true for unequal JSON.

    None if `==` cannot be used at all: it would exhaust the stack, or the value is not JSON.
    """
    try:
        return tuple(_doubts(value, (), _DEEP))
    except ValueError:
        return None


def _doubts(value: Any, path: tuple[Any, ...], levels: int) -> Iterator[Doubt]:
    kind = type(value)
    if kind is dict or kind is list:
        if not levels:
            raise ValueError(path)
        for step, item in value.items() if kind is dict else enumerate(value):
            yield from _doubts(item, (*path, step), levels - 1)
    elif kind is bool or kind is int or kind is float:
        if value in (0, 1):
            yield Doubt(path, kind is bool)
    elif kind is not str and value is not None:
        raise ValueError(path)


def member_keys(value: Recorded) -> frozenset[Hashable]:
    """Return the members that must be contained if arguments are compared key by key.

    An object's top-level members, none for a call without arguments; anything else can only be contained as a whole.
    """
    if value is NOT_RECORDED:
        return frozenset()
    key = json_key(value)
    return key if isinstance(key, frozenset) else frozenset({(NOT_RECORDED, key)})


def common_subsequence(
    left: Sequence[Hashable], right: Sequence[Hashable], partners: Mapping[Hashable, Collection[Hashable]] | None = None
) -> Pairs:
    """Return the positions of a longest common subsequence, in order.

    Bit-parallel over the right side: 10,000 by 10,000 symbols take some ten milliseconds and megabytes. Without
    `partners`, which has the right symbols that fit a left symbol, only equal ones fit.
    """
    fitting = None if partners is None else {symbol: frozenset(others) for symbol, others in partners.items()}
    start, end = 0, 0
    shorter = min(len(left), len(right))
    while start < shorter and _fits(left[start], right[start], fitting):
        start += 1
    while end < shorter - start and _fits(left[-1 - end], right[-1 - end], fitting):
        end += 1
    matches = _matches(left[start : len(left) - end], right[start : len(right) - end], fitting)
    pairs = [(index, index) for index in range(start)]
    pairs += ((start + row, start + column) for row, column in _longest_chain(matches, len(right) - end - start))
    pairs += ((len(left) - index, len(right) - index) for index in range(end, 0, -1))
    return pairs


def positions(symbols: Iterable[_Symbol]) -> dict[_Symbol, list[int]]:
    """Return the positions of each symbol, in order."""
    found: dict[_Symbol, list[int]] = defaultdict(list)
    for index, symbol in enumerate(symbols):
        found[symbol].append(index)
    return dict(found)


def containing(
    needles: Iterable[frozenset[Hashable]], haystack: Iterable[frozenset[Hashable]], effort: Effort
) -> dict[frozenset[Hashable], list[frozenset[Hashable]]]:
    """Return for each needle the distinct sets of the haystack that contain it, the smallest first.

    Searches only the sets with the needle's rarest member: members that distinguish calls are rare.

    Raises:
        TooMuchWorkError: these are too many.
    """
    distinct = sorted(dict.fromkeys(haystack), key=len)
    frequency = Counter(chain.from_iterable(distinct))
    rarest = {needle: min(needle, key=frequency.__getitem__, default=None) for needle in needles}
    looked_up = frozenset(rarest.values())
    holders: dict[Hashable, list[frozenset[Hashable]]] = defaultdict(list)
    for candidate in distinct:
        for member in candidate & looked_up:
            holders[member].append(candidate)
    holders[None] = distinct  # every set contains an empty needle
    effort.spend(sum(len(holders[member]) for member in rarest.values() if member in holders))
    return {
        needle: [candidate for candidate in holders.get(member, ()) if needle <= candidate]
        for needle, member in rarest.items()
    }


def _key(value: Any) -> Hashable:
    if value is True or value is False:
        return _Token.TRUE if value else _Token.FALSE
    kind = type(value)
    if kind in _PLAIN or value is NOT_RECORDED or kind in NUMBERS:
        return number_key(value) if kind in NUMBERS else value  # hashable, as above
    return structure_key(value)


def _are_own_keys(values: Iterable[Any]) -> bool:
    for value in values:
        kind = type(value)
        if kind not in _PLAIN and (kind not in NUMBERS or not -DISTINCT < value < DISTINCT):
            return False
    return True


def _fits(one: Hashable, other: Hashable, fitting: Mapping[Hashable, frozenset[Hashable]] | None) -> bool:
    return one == other if fitting is None else other in fitting.get(one, ())


def _matches(
    left: Sequence[Hashable], right: Sequence[Hashable], fitting: Mapping[Hashable, frozenset[Hashable]] | None
) -> list[int]:
    """Return for each left symbol the right positions that fit it, as the bits of an integer."""
    distinct = set(left)
    fits = dict.fromkeys(distinct, frozenset[Hashable]()) | dict(fitting) if fitting is not None else None
    wanted = distinct if fits is None else frozenset[Hashable]().union(*(fits[symbol] for symbol in distinct))
    where = dict.fromkeys(wanted, 0)
    for start in range(0, len(right), _BLOCK):  # setting bits in a short integer, not in one as long as the whole
        block: dict[Hashable, int] = {}
        for bit, symbol in enumerate(right[start : start + _BLOCK]):
            if symbol in where:
                block[symbol] = block.get(symbol, 0) | 1 << bit
        for symbol, bits in block.items():
            where[symbol] |= bits << start
    if fits is not None:
        where = {symbol: sum(where[other] for other in fits[symbol]) for symbol in distinct}
    return [where[symbol] for symbol in left]


def _longest_chain(rows: Sequence[int], width: int) -> Pairs:
    """Return a longest chain of matches, given for each row its columns as bits.

    In a state a bit is 0 if the length of the longest chain grows with this column. Read backwards: a column that
    grows both before and after a row belongs to an earlier row, one that grows only after it is matched with this row.
    Only the states of one block of rows are kept at a time, and computed again on the way back.
    """
    state = (1 << width) - 1
    before_block = []
    for start in range(0, len(rows), _BLOCK):
        before_block.append(state)
        state = _states(state, rows[start : start + _BLOCK], width)[-1]
    pairs = []
    column = width
    for start in reversed(range(0, len(rows), _BLOCK)):
        left_of_here = before_block.pop() & ((1 << column) - 1)
        states = _states(left_of_here, rows[start : start + _BLOCK], column)
        row = len(states) - 1
        while row and column:
            bit = column - 1
            if states[row] >> bit & 1:
                column -= 1
            elif states[row] is states[row - 1] or not states[row - 1] >> bit & 1:
                row -= 1
            else:
                row, column = row - 1, bit
                pairs.append((start + row, column))
    pairs.reverse()
    return pairs


def _states(state: int, rows: Sequence[int], width: int) -> list[int]:
    """Return the state before the rows and after each of them."""
    states = [state]
    for matches in rows:
        grown = state & matches
        if grown:
            state = (state + grown) | (state ^ grown)
            if state.bit_length() > width + _BLOCK:  # carries leave the width; cut off now and then
                state &= (1 << width) - 1
        states.append(state)
    return states
