"""The groups of learned steps whose calls run in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from spanscore.model import Trajectory
from spanscore.runs.learn.evidence import needed
from spanscore.runs.learn.noted import Noted, plain


def overlapping_groups(steps: Any, runs: Sequence[Trajectory]) -> list[dict[str, Any]]:
    """Return the steps in any order whose calls overlap in all runs that make several of them."""
    return [group for group in _groups(steps) if _overlaps(group, runs)]


def _overlaps(group: Mapping[str, Any], runs: Sequence[Trajectory]) -> bool:
    tools = {name for member in group["any_order"] for name in _tools(plain(member))}
    several = [run for run in runs if sum(name in tools for name in set(run.names)) > 1]
    return len(several) >= needed(len(runs)) and all(_overlap(run, tools) for run in several)


def _groups(value: Any) -> Iterable[dict[str, Any]]:
    """Yield the steps that are groups in any order."""
    if isinstance(value, Noted):
        if isinstance(value.value, dict) and "any_order" in value.value:
            yield value.value
        yield from _groups(value.value)
    elif isinstance(value, (list, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _groups(each)


def _tools(step: Any) -> Iterable[str]:
    if isinstance(step, str):
        yield step
    elif isinstance(step, (list, Mapping)):
        for each in step.values() if isinstance(step, Mapping) else step:
            yield from _tools(each)


def _overlap(run: Trajectory, tools: Iterable[str]) -> bool:
    """Return whether calls of these tools, but not all calls, were asked for in one turn, or ran at one time."""
    wanted = frozenset(tools)
    calls = sorted((call for call in run.calls if call.name in wanted), key=lambda call: call.start_ns)
    turns = {call.turn for call in run.calls}
    if len(turns) > 1 and len({call.turn for call in calls}) == 1 and calls[0].turn is not None:
        return True
    return all(call.was_timed for call in calls) and all(
        later.start_ns < earlier.end_ns for earlier, later in pairwise(calls)
    )
