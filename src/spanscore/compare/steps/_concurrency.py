"""The calls of a run that were made together: asked for in one model turn, or running at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from spanscore.compare.effort import Effort
from spanscore.compare.steps.pattern import Together
from spanscore.model import ToolCall


def has_times(call: ToolCall) -> bool:
    """Return whether it is known when a call ran."""
    return call.start_ns > 0 and call.end_ns > 0


def ran_together(one: ToolCall, other: ToolCall, together: Together) -> bool:
    """Return whether two calls were asked in one model turn or, where `together` is `parallel`, overlap in time."""
    if one.turn is not None and one.turn == other.turn:
        return True
    if together == "turn" or not (has_times(one) and has_times(other)):
        return False
    first, second = sorted((one, other), key=lambda call: call.start_ns)
    return first.end_ns > second.start_ns or first.start_ns == second.start_ns


def overlapping(calls: Sequence[ToolCall], indexes: Iterable[int]) -> Mapping[int, Sequence[tuple[str, int]]]:
    """Return for each call the largest sets of calls with a moment at which all of them ran, each by a key of its own.

    Raises:
        TooMuchWorkError: there are too many of these sets.
    """
    effort = Effort()
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    running: list[int] = []
    sets = 0
    is_larger = False
    for index in sorted((each for each in indexes if has_times(calls[each])), key=lambda each: calls[each].start_ns):
        effort.spend(len(running) + 1)
        start = calls[index].start_ns
        going_on = [each for each in running if calls[each].end_ns > start or calls[each].start_ns == start]
        if len(going_on) < len(running) and is_larger:
            _note(found, running, sets)
            sets += 1
        running = [*going_on, index]
        is_larger = True
    _note(found, running, sets)
    return found


def _note(found: Mapping[int, list[tuple[str, int]]], running: Sequence[int], number: int) -> None:
    for each in running:
        found[each].append((_AT_ONE_TIME, number))


_AT_ONE_TIME: Final = "at one time"
