"""The calls of a run as rules look at them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.matchers import Run as Matching
from spanscore.compare.matching import positions
from spanscore.compare.names import Normalise, called_names
from spanscore.model import ToolCall, Trajectory

Matches: TypeAlias = Callable[[str], bool]
"""Says of a normalised name whether it is meant."""


def named(normalise: Normalise, tool: str) -> Matches:
    """Return what finds the calls of a tool, or of all tools that a glob matches."""
    return glob_matcher(tool) if is_glob(tool) else normalise(tool).__eq__


class Run(NamedTuple):
    """The calls, by their indexes in the trajectory."""

    calls: Sequence[ToolCall]
    names: Sequence[str]
    """The normalised name of every call, also of those that do not count."""
    order: Sequence[int]
    """The calls that count, in order."""
    called: Mapping[str, Sequence[int]]
    """Where each tool was called, by normalised name; only calls that count."""
    failed: Collection[int]
    declared: Callable[[], Collection[str]]
    """Returns the normalised names of the tools that the trace declares, which takes long to find out."""
    matching: Matching
    """What matchers of arguments share."""

    @classmethod
    def of(cls, trajectory: Trajectory, normalise: Normalise, *, ignore_failed: bool = False) -> Run:
        """Return the calls of a trajectory, of which with `ignore_failed` those that failed do not count."""
        calls = trajectory.calls
        names = called_names(trajectory, normalise)
        failed = frozenset(index for index, call in enumerate(calls) if call.error is not None)
        called: Mapping[str, Sequence[int]] = positions(names)
        order: Sequence[int] = range(len(names))
        if ignore_failed and failed:
            order = [index for index in order if index not in failed]
            kept = {name: [index for index in places if index not in failed] for name, places in called.items()}
            called = {name: places for name, places in kept.items() if places}
        return cls(
            calls=calls,
            names=names,
            order=order,
            called=called,
            failed=failed,
            declared=lambda: frozenset(map(normalise, trajectory.tool_definitions)),
            matching=Matching([(name, call.result) for name, call in zip(names, calls, strict=True)]),
        )

    def where(self, matches: Matches) -> list[int]:
        """Return the calls that count of all tools that match, in order."""
        found = [places for name, places in self.called.items() if matches(name)]
        return sorted(chain.from_iterable(found)) if found else []
