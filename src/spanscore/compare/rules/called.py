"""The calls of a run, prepared for rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, TypeAlias

from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.matchers.base import Results
from spanscore.compare.matching import positions
from spanscore.compare.names import Normalise, called_names
from spanscore.model import Trajectory

Matches: TypeAlias = Callable[[str], bool]
"""Returns whether a normalised name matches."""


def named(normalise: Normalise, tool: str) -> Matches:
    """Return a function that matches the name of a tool, or of all tools that a glob matches."""
    return glob_matcher(tool) if is_glob(tool) else normalise(tool).__eq__


class CalledTools:
    """The calls, by their indexes in the trajectory. Each rule looks at few sides of them: found when first asked for.

    With `ignore_failed`, calls that failed do not count.
    """

    def __init__(self, trajectory: Trajectory, normalise: Normalise, *, ignore_failed: bool = False) -> None:
        self._trajectory: Final = trajectory
        self._normalise: Final = normalise
        self._ignores: Final = ignore_failed
        self.calls: Final = trajectory.calls
        self.names: Final = called_names(trajectory, normalise)
        """The normalised name of every call, also of calls that do not count."""
        self.made: Final[dict[Hashable, list[int]]] = {}
        """The calls that match each pattern that was looked for."""

    @cached_property
    def failed(self) -> Collection[int]:
        """The calls that failed."""
        return frozenset([index for index, call in enumerate(self.calls) if call.error is not None])

    @cached_property
    def order(self) -> Sequence[int]:
        """The calls that count, in order."""
        every = range(len(self.names))
        return [index for index in every if index not in self.failed] if self._ignores and self.failed else every

    @cached_property
    def called(self) -> Mapping[str, Sequence[int]]:
        """The indexes of the calls of each tool, by normalised name; only calls that count."""
        called = positions(self.names)
        if not (self._ignores and self.failed):
            return called
        kept = {name: [index for index in places if index not in self.failed] for name, places in called.items()}
        return {name: places for name, places in kept.items() if places}

    @cached_property
    def declared(self) -> Collection[str]:
        """The normalised names of the tools that the trace declares."""
        return frozenset(map(self._normalise, self._trajectory.tool_definitions))

    @cached_property
    def matching(self) -> Results:
        """The shared state of matchers of arguments."""
        return Results.of(self.names, self.calls)

    def where(self, matches: Matches) -> list[int]:
        """Return the calls that count of all tools that match, in order."""
        found = [places for name, places in self.called.items() if matches(name)]
        return sorted(chain.from_iterable(found)) if found else []
