"""The conduct of correct runs: repeated calls, failures and costs, as limits for other runs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from spanscore.compare.effort import Effort
from spanscore.compare.loops import result_key
from spanscore.compare.matching import json_key
from spanscore.messages.plural import plural
from spanscore.model import NOT_RECORDED, ToolCall, Trajectory, tokens_of
from spanscore.runs.learn.evidence import Noted, above, most, needed, rounded_up, times
from spanscore.runs.learn.structure import learned_steps

_HEAD_ROOM: Final = 1.5
"""The least factor of a budget over the needed amount."""
_TIME: Final = 3.0
"""So many times for durations: other machines and busier days are no fault of the agent."""
_OFTEN: Final = 1 / 3
"""A tool that fails in so large a share of the runs fails as a matter of course."""
_MOST_FAILING: Final = 50
"""If more tools than this fail regularly, no limit is learned."""
_FAILED: Final = "\n"
"""Behind the name of a tool whose call failed: no tool is called so."""
_IDENTICAL: Final = 3
"""No lower number of the same calls is learned as the limit of a loop."""
_SHORTEST: Final = 10.0
"""Seconds: a run that takes less is mostly up to the machine, not to models."""
_WITHIN: Final = 3
"""A failure may be made good within so many calls at least: few runs show the slowest."""
_RETRIES: Final = 2
"""So many retries are allowed at least."""


def learned_loops(runs: Sequence[Trajectory]) -> dict[str, dict[str, Any]]:
    """Return the parameters of each `tool_loops`, with notes, by a name for it; none where arguments were not recorded.

    Tools that never make the same call twice may not; others may do so a little more often than they did.
    """
    again = {name for run in runs for name, count in Counter(run.names).items() if count > 1}
    if any(call.arguments is NOT_RECORDED for run in runs for call in run.calls if call.name in again):
        return {}
    identical = [_most_identical(run.calls) for run in runs]
    repeating = {name for each in identical for name, count in each.items() if count > 1}
    # A call that failed is made again as it was, once and once more: the retries are counted elsewhere.
    repeating |= {call.name for run in runs for call in run.calls if call.error is not None}
    alone: dict[str, Any] = {"similar": None, "cycle": None}
    loops: dict[str, dict[str, Any]] = {}
    if {name for run in runs for name in run.names} - repeating:
        twice = Noted(2, f"never in {_of(runs)}")
        loops["repeats"] = {"identical": twice} | alone | ({"ignore_tools": sorted(repeating)} if repeating else {})
    if repeating:
        counts = [max(each.values(), default=1) for each in identical]
        limit = max(_IDENTICAL, most(counts) + 1)
        loops["loops"] = {"identical": Noted(limit, f"{times(counts)} in {_of(runs)}")} | alone
    return loops


def learned_rounds(runs: Sequence[Trajectory], effort: Effort) -> dict[str, Any] | None:
    """Return the parameters of `expected_trajectory` for what is done about calls that fail as a matter of course.

    Tests that fail until the code is right are no accident: what lies between two of them is part of the work. None
    where no tool fails in a third of the runs, or very many do.

    Raises:
        TooMuchWorkError: finding the steps takes more than the effort.
    """
    failing = Counter(name for run in runs for name in {call.name for call in run.calls if call.error is not None})
    often = {name for name, count in failing.items() if count >= max(_OFTEN * len(runs), needed(len(runs)))}
    if not 0 < len(often) <= _MOST_FAILING:
        return None
    between: Counter[str] = Counter()
    for run in runs:
        for name in often:
            places = [place for place, call in enumerate(run.calls) if call.name == name]
            for failed, again in pairwise(places):
                between.update({call.name for call in run.calls[failed + 1 : again]} if run.calls[failed].error else ())
    tools = often | {name for name, count in between.items() if count >= needed(len(runs))}
    if tools == often:
        return None
    marked = [
        [f"{call.name}{_FAILED}" if call.error is not None else call.name for call in run.calls if call.name in tools]
        for run in runs
    ]

    def step(name: str) -> Any:
        tool = name.removesuffix(_FAILED)
        return {"call": tool, "error": name != tool} if tool in often else tool

    others = sorted({name for run in runs for name in run.names} - tools)
    return {"steps": learned_steps(marked, step, effort), "other_calls": "forbid"} | (
        {"ignore_tools": others} if others else {}
    )


def learned_recovery(runs: Sequence[Trajectory]) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters of `tool_recovery`, with notes, and the tools whose failures were not recovered."""
    within, retries, failures = 0, 0, 0
    lost: dict[str, list[tuple[Sequence[ToolCall], int]]] = defaultdict(list)
    for run in runs:
        recovered = _recovered(run.calls)
        for index, call in enumerate(run.calls):
            if call.error is None:
                continue
            failures += 1
            found = recovered.get(index)
            if found is None:
                lost[call.name].append((run.calls, index))
            else:
                within, retries = max(within, found[0]), max(retries, found[1])
    instead = {name: _instead(name, places, runs) for name, places in lost.items()}
    let_stand: set[str] = set()
    while gone := [name for name, others in instead.items() if others <= let_stand]:
        let_stand.update(gone)  # they are not looked at, and so make up for no others
        instead = {name: others for name, others in instead.items() if name not in let_stand}
    note = f"{plural(failures, 'call')} failed" if failures else f"no call failed in {_of(runs)}"
    recovery: dict[str, Any] = {
        "within": Noted(max(_WITHIN, 2 * within), f"{note}{f', made good within {within}' if within else ''}"),
        "max_retries": Noted(max(_RETRIES, retries + 1), f"{plural(retries, 'retry', 'retries')} at most")
        if retries
        else _RETRIES,
    }
    alternatives = {name: sorted(others.difference(let_stand)) for name, others in instead.items()}
    return recovery | ({"alternatives": alternatives} if alternatives else {}), sorted(let_stand)


def learned_budget(runs: Sequence[Trajectory]) -> dict[str, Any]:
    """Return the parameters of `run_budget`, with notes: of what was recorded in every run."""
    durations = [
        (run.end_ns - run.start_ns) / 1e9 for run in runs if run.start_ns is not None and run.end_ns is not None
    ]
    measured: Mapping[str, tuple[Sequence[float | None], float]] = {
        "model_calls": ([len(run.model_calls) for run in runs], _HEAD_ROOM),
        "tool_calls": ([len(run.calls) for run in runs], _HEAD_ROOM),
        "total_tokens": ([tokens_of(run.model_calls) for run in runs], _HEAD_ROOM),
        "duration_s": (durations if len(durations) == len(runs) else [None], _TIME),
    }
    budget = {}
    for name, (numbers, room) in measured.items():
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers) or not any(known):
            continue
        limit = max(room * max(known), above(known))
        is_count = name != "duration_s"
        budget[name] = Noted(
            math.ceil(rounded_up(limit)) if is_count else rounded_up(max(limit, _SHORTEST)),
            f"{_from_to(known, 0 if is_count else 2)} in {_of(runs)}",
        )
    return budget


def _most_identical(calls: Iterable[ToolCall]) -> dict[str, int]:
    """Return how often each tool was called with the same arguments and the same result."""
    seen = Counter((call.name, json_key(call.arguments), result_key(call)) for call in calls)
    worst: dict[str, int] = {}
    for (name, _, _), count in seen.items():
        worst[name] = max(count, worst.get(name, 0))
    return worst


def _recovered(calls: Sequence[ToolCall]) -> dict[int, tuple[int, int]]:
    """Return by failed call behind how many calls, and at which try, its tool succeeded; none where it did not."""
    found: dict[int, tuple[int, int]] = {}
    successes: dict[str, tuple[int, int]] = {}
    for index in range(len(calls) - 1, -1, -1):
        name = calls[index].name
        if calls[index].error is None:
            successes[name] = index, 0
        elif name in successes:
            success, tries = successes[name]
            successes[name] = success, tries + 1
            found[index] = success - index, tries + 1
    return found


def _instead(tool: str, places: Sequence[tuple[Sequence[ToolCall], int]], runs: Sequence[Trajectory]) -> frozenset[str]:
    """Return the tools that succeeded right after each failure that was not made good, and seldom are called else."""
    followed = [
        {call.name for call in calls[index + 1 : index + 2] if call.error is None and call.name != tool}
        for calls, index in places
    ]
    instead = set.intersection(*followed)
    if not instead:
        return frozenset()
    failing = {id(calls) for calls, _ in places}
    else_called = [instead.intersection(run.names) for run in runs if id(run.calls) not in failing]
    return frozenset(other for other in instead if sum(other in names for names in else_called) <= len(else_called) / 2)


def _from_to(numbers: Sequence[float], digits: int) -> str:
    low, high = (f"{each:.{digits}f}" for each in (min(numbers), max(numbers)))
    return low if low == high else f"{low} to {high}"


def _of(runs: Sequence[Trajectory]) -> str:
    return plural(len(runs), "run")
