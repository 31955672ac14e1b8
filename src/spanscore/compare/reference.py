"""The expected calls, prepared so that the calls of a run are recognised among them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple, TypeAlias

import msgspec

from spanscore.compare.matchers.base import EarlierResults, Matcher
from spanscore.compare.matchers.compiler import read
from spanscore.compare.matching import Doubt, Pairs, are_settled, doubts, json_key, positions
from spanscore.compare.names import Normalise, exact
from spanscore.model import NOT_RECORDED, Recorded, ToolCall

UNKNOWN: Final = -1
"""The number of a call that was not expected."""

_WRITER: Final = msgspec.msgpack.Encoder()
_LOOKED_FOR: Final = 8
"""So many calls that are not where expected are looked for one by one; with more of them, keys are faster."""

Key: TypeAlias = Callable[[str, Recorded], Hashable]
"""Returns the key of the arguments of a tool; equal keys fit."""


class ComparableCall(NamedTuple):
    """A call to compare actual ones with."""

    name: str
    arguments: Recorded
    key: Hashable
    doubts: tuple[Doubt, ...] | None
    """The places where Python's `==` with the arguments does not suffice; None if it cannot be used."""
    matcher: Matcher | None = None
    """The matcher of arguments that are not plain; if set, nothing else here may be compared."""

    @classmethod
    def read(
        cls, name: str, expected: Recorded, path: str, normalise: Normalise = exact, *, extra: bool = True
    ) -> ComparableCall:
        """Prepare arguments that may have matchers.

        `extra` says whether unexpected arguments count for the matcher; messages name the path.

        Raises:
            ValueError: a matcher is wrong. The message begins with its path.
        """
        return cls.of(name, *read(expected, path, normalise=normalise, extra=extra))

    @classmethod
    def of(cls, name: str, arguments: Recorded, matcher: Matcher | None = None) -> ComparableCall:
        """Get the arguments ready to be compared."""
        return cls(name, arguments, json_key(arguments), doubts(arguments), matcher)

    def has_arguments(self, arguments: Recorded) -> bool:
        """Return whether these arguments are equal."""
        if self.doubts is None:
            return self.key == json_key(arguments)
        return bool(self.arguments == arguments) and are_settled(self.doubts, arguments)

    def fits(self, arguments: Recorded, seen: EarlierResults) -> bool:
        """Return whether these arguments match, or are equal if the expected ones are plain."""
        if self.matcher is None:
            return self.has_arguments(arguments)
        return self.matcher.matches({} if arguments is NOT_RECORDED else arguments, seen)


class Reference:
    """The expected calls, each identified by a number: the position of the first that is equal."""

    def __init__(self, wanted: Sequence[ComparableCall], key: Key) -> None:
        self._wanted: Final = tuple(wanted)
        self._key: Final = key
        self._names: Final = tuple(call.name for call in wanted)
        self._tools: Final = frozenset(self._names)
        self._arguments: Final = [call.arguments for call in wanted]
        self._doubts: Final = None if any(call.doubts is None for call in wanted) else _all_doubts(wanted)
        is_usual = self._doubts is not None and all(type(arguments) is dict for arguments in self._arguments)
        self._written: Final = _written(self._arguments) if is_usual else None
        self._places: Final[dict[tuple[str, Hashable], int]] = {}
        self.numbers: Final = [
            self._places.setdefault((call.name, key(call.name, call.arguments)), place)
            for place, call in enumerate(wanted)
        ]
        self._places_of: Final = positions(self.numbers)

    def is_run(self, names: Sequence[str], calls: Sequence[ToolCall]) -> bool:
        """Return whether a run consists of exactly these calls. False may also mean that it takes more to find out."""
        if self._doubts is None or self._names != names:
            return False
        arguments = [call.arguments for call in calls]
        if self._written is not None and _written(arguments) == self._written:
            return True
        return self._arguments == arguments and are_settled(self._doubts, arguments)

    def is_surely_not_run(self, names: Sequence[str], calls: Sequence[ToolCall]) -> bool:
        """Return whether a run that `is_run` denies surely has other calls.

        False may also mean that it is unknown; the same is true for the next methods. Only for keys of JSON.
        """
        if self._names != names:
            return True
        return self._doubts is not None and all(call.arguments is not NOT_RECORDED for call in calls)

    def is_surely_not_in_order(self, names: Sequence[str], calls: Sequence[ToolCall]) -> bool:
        """Return whether an expected call is missing after the calls that equal the expected ones before it."""
        if self._doubts is None:
            return False
        left = zip(names, calls, strict=True)  # continues after each found call
        return any(not _is_among(left, wanted) for wanted in self._wanted)

    def is_surely_missed(self, names: Sequence[str], calls: Sequence[ToolCall]) -> bool:
        """Return whether one of the expected calls is not among the calls of a run."""
        if self._doubts is None:
            return False
        looked_for = 0
        for wanted, name, call in zip_longest(self._wanted, names[: len(self._wanted)], calls[: len(self._wanted)]):
            if call is not None and wanted.name == name and wanted.arguments == call.arguments:
                continue
            looked_for += 1
            if looked_for > _LOOKED_FOR:
                return False
            if not _is_among(zip(names, calls, strict=True), wanted):
                return True
        return False

    def recognised(self, names: Sequence[str], calls: Sequence[ToolCall]) -> list[int]:
        """Return the number of each call of a run, UNKNOWN for unexpected calls.

        Most runs are much as expected: a call is first compared with the expected one after the last recognised. A key
        of its arguments is made only if they differ.
        """
        if self.is_run(names, calls):
            return self.numbers
        found = []
        place, end = 0, len(self._wanted)
        for name, call in zip(names, calls, strict=True):
            if place < end:
                wanted = self._wanted[place]
                if wanted.name == name and wanted.doubts is not None and wanted.has_arguments(call.arguments):
                    found.append(self.numbers[place])
                    place += 1
                    continue
            number = self._number(name, call.arguments)
            if number >= place:
                place = number + 1
            found.append(number)
        return found

    def pairs(self, recognised: Iterable[int]) -> Pairs:
        """Pair calls with expected ones of their number, the earliest on both sides, ordered by the calls."""
        untaken = {number: iter(places) for number, places in self._places_of.items()}
        return [
            (index, place)
            for index, number in enumerate(recognised)
            if number != UNKNOWN and (place := next(untaken[number], None)) is not None
        ]

    def _number(self, name: str, arguments: Recorded) -> int:
        if name not in self._tools:
            return UNKNOWN
        return self._places.get((name, self._key(name, arguments)), UNKNOWN)


def _written(arguments: Sequence[Recorded]) -> bytes | None:
    """Return arguments as bytes: equal arguments mostly give equal bytes, different ones never do.

    Writing and comparing them takes half the time of `==`, which does not distinguish booleans from numbers.
    """
    try:
        return _WRITER.encode(arguments)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None


def _is_among(made: Iterable[tuple[str, ToolCall]], wanted: ComparableCall) -> bool:
    """Return False if all calls surely differ; unrecorded arguments may equal no arguments."""
    expected, arguments = wanted.name, wanted.arguments
    for name, call in made:
        if name == expected and (call.arguments == arguments or call.arguments is NOT_RECORDED):
            return True
    return False


def _all_doubts(wanted: Sequence[ComparableCall]) -> list[Doubt]:
    return [
        Doubt((place, *doubt.path), doubt.is_boolean)
        for place, call in enumerate(wanted)
        for doubt in call.doubts or ()
    ]
