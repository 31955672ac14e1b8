"""Finds the calls of a run that fit expected ones with matchers: one by one, as these have no keys to look up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Hashable, Sequence
from typing import Any, Final, NamedTuple

from spanscore.compare.deviations import Differ
from spanscore.compare.differences import Difference, differences
from spanscore.compare.effort import Effort
from spanscore.compare.expected import need_results
from spanscore.compare.matchers.base import Matcher, Results
from spanscore.compare.matchers.compiler import sources
from spanscore.compare.matching import json_key, positions
from spanscore.compare.names import Normalise
from spanscore.compare.reference import ComparableCall
from spanscore.model import NOT_RECORDED, Recorded, ToolCall, Trajectory

_UNASKED: Final = Results()
"""The results for comparisons without matchers."""


def look_at_results(matchers: Collection[Matcher]) -> bool:
    """Return whether any of these matchers looks at results of earlier calls."""
    return any(matcher.needs_earlier for matcher in matchers)


def run_of(trajectory: Trajectory, names: Sequence[str], matchers: Collection[Matcher]) -> Results:
    """Return the results of a trajectory that these matchers may read; `names`: the normalised names of its calls."""
    if not matchers:
        return _UNASKED
    if not look_at_results(matchers):
        return Results()
    return Results.of(names, trajectory.calls)


def need_sources(trajectory: Trajectory, normalise: Normalise, matchers: Collection[Matcher]) -> None:
    """Raise UnrecordedError if the spans lack a result in which `$from` looks for a value."""
    if found := sources(matcher for matcher in matchers if matcher.needs_earlier):
        called = set(map(normalise, trajectory.names))
        need_results(trajectory, normalise, {tool for tool in called if any(is_source(tool) for is_source in found)})


def passed(call: ToolCall) -> Any:
    """Return the arguments of a call for matchers: unrecorded arguments are an empty object."""
    return {} if call.arguments is NOT_RECORDED else call.arguments


def differing(
    wanted: Sequence[ComparableCall], calls: Sequence[ToolCall], run: Results, *, extra: bool = True
) -> Differ:
    """Return a function that finds differences of actual and expected calls; `extra`: extra arguments count."""

    def differ(place: int, call: int) -> list[Difference]:
        matcher = wanted[place].matcher
        if matcher is not None:
            return matcher.differences(passed(calls[call]), run.before(call))
        return differences(wanted[place].arguments, calls[call].arguments, extra=extra)

    return differ


class Untaken:
    """The calls of a run that no expected one has taken, where each takes the first of its tool that fits.

    The calls in `taken` are taken otherwise.
    """

    def __init__(self, names: Sequence[str], taken: Container[int] = frozenset()) -> None:
        self._left = positions(names)
        self._taken = taken
        self._effort = Effort()

    def take(self, tool: str, fits: Callable[[int], bool]) -> int | None:
        """Take the first call of a tool that fits, by its index.

        Raises:
            TooMuchWorkError: that takes too many comparisons.
        """
        left = self._left.get(tool, [])
        place = 0
        while place < len(left):
            index = left[place]
            if index in self._taken:
                del left[place]
                continue
            self._effort.spend(1)
            if fits(index):
                del left[place]
                return index
            place += 1
        return None


class Fitting(NamedTuple):
    """Symbols for the calls made and expected, and which fit, for `common_subsequence` and `maximum_matching`."""

    made: list[Hashable]
    wanted: list[Hashable]
    partners: dict[Hashable, list[Hashable]]


def fitting(  # noqa: PLR0913 - two sides, and how they are compared
    names: Sequence[str],
    calls: Sequence[ToolCall],
    wanted: Sequence[ComparableCall],
    *,
    key: Callable[[str, Recorded], Hashable],
    matches: Callable[[ComparableCall, int], bool],
    contained: Callable[[str, Hashable, Hashable], bool] | None = None,
) -> Fitting:
    """Return which actual calls fit which expected calls, of which some have matchers.

    Args:
        names: the names of the actual calls.
        calls: the actual calls.
        wanted: the expected calls.
        key: the key of a tool's plain arguments; equal keys fit.
        matches: whether an actual call, by its index, matches an expected one with a matcher.
        contained: whether two different keys of a tool's plain arguments (actual, expected) fit; None if none do.

    Raises:
        TooMuchWorkError: it takes too many comparisons.
    """
    effort = Effort()
    plain: dict[str, dict[Hashable, None]] = defaultdict(dict)
    places: dict[str, list[int]] = defaultdict(list)
    symbols: list[Hashable] = []
    for place, each in enumerate(wanted):
        if each.matcher is None:
            found = key(each.name, each.arguments)
            plain[each.name][found] = None
            symbols.append((each.name, found))
        else:
            places[each.name].append(place)
            symbols.append(place)
    # Matchers of earlier results distinguish equal calls.
    apart = any(each.matcher is not None and each.matcher.needs_earlier for each in wanted)
    made: list[Hashable] = []
    partners: dict[Hashable, list[Hashable]] = {}
    for index, (name, call) in enumerate(zip(names, calls, strict=True)):
        symbol: Hashable = index if apart else (name, json_key(call.arguments))
        made.append(symbol)
        if symbol in partners:
            continue
        others: list[Hashable] = []
        partners[symbol] = others
        if name in plain:
            mine = key(name, call.arguments)
            if mine in plain[name]:
                others.append((name, mine))
            if contained is not None:
                effort.spend(len(plain[name]))
                others += ((name, other) for other in plain[name] if other != mine and contained(name, mine, other))
        if name in places:
            effort.spend(len(places[name]))
            others += (place for place in places[name] if matches(wanted[place], index))
    return Fitting(made, symbols, partners)
