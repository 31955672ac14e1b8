"""Expectations out of runs that were right, as an ordinary configuration with what each line of it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.contracts import Evaluator
from spanscore.errors import ConfigError
from spanscore.learn.conduct import learned_budget, learned_loops, learned_recovery, learned_rounds
from spanscore.learn.evidence import MANY, least, most, needed
from spanscore.learn.noted import Noted, plain
from spanscore.learn.rules import learned_rules
from spanscore.learn.schemas import Seen, schema_of
from spanscore.learn.structure import learned_steps, rare_tools
from spanscore.model import NOT_RECORDED, Score, ToolCall, Trajectory
from spanscore.wording.plural import plural

Build: TypeAlias = Callable[[str, Mapping[str, Any]], Evaluator]
"""Builds an evaluator of a type with parameters, and raises `ConfigError` where they are wrong."""

_MOST_LEFT_OUT: Final = 60
"""So many runs are left out in turn: more would tell little more, and take long."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What some runs that were right have in common."""

    evaluators: Mapping[str, Mapping[str, Any]]
    """By a name for each: `type` and parameters, with notes."""
    remarks: Sequence[str]
    """What cannot be known from these runs."""


class FalseAlarms(NamedTuple):
    """How many of the runs fail what the others teach."""

    runs: int
    by: Mapping[str, int]
    """Of these, by evaluator; a run that several fail counts at the first."""

    @property
    def alarms(self) -> int:
        """How many runs failed."""
        return sum(self.by.values())


def learned(runs: Sequence[Trajectory], build: Build) -> Learned:
    """Return what runs that were right have in common: all of them pass it.

    Args:
        runs: of one agent, or of one case; at least one.
        build: builds evaluators.
    """
    learner = _Learner(runs, build)
    learner.learn()
    return Learned(learner.evaluators, learner.remarks)


def false_alarms(runs: Sequence[Trajectory], build: Build) -> FalseAlarms:
    """Return how many runs fail what is learned from all others: each is left out in turn, or so many of them.

    Args:
        runs: of one agent, or of one case; at least two.
        build: builds evaluators.
    """
    step = max(1, -(-len(runs) // _MOST_LEFT_OUT))
    left_out = range(0, len(runs), step)
    by: Counter[str] = Counter()
    for index in left_out:
        others = learned([*runs[:index], *runs[index + 1 :]], build)
        by.update(_failing(others.evaluators, runs[index], build)[:1])
    return FalseAlarms(len(left_out), by)


def built(entry: Mapping[str, Any], build: Build) -> Evaluator:
    """Return the evaluator of an entry."""
    params = plain({key: value for key, value in entry.items() if key not in {"type", "ignore_tools"}})
    return build(entry["type"], params)


def _failing(evaluators: Mapping[str, Mapping[str, Any]], run: Trajectory, build: Build) -> list[str]:
    return [name for name, entry in evaluators.items() if _fails(built(entry, build), entry, run)]


def _fails(evaluator: Evaluator, entry: Mapping[str, Any], run: Trajectory) -> bool:
    outcome = evaluator.evaluate(_without(run, entry.get("ignore_tools", ())))
    return isinstance(outcome, Score) and not outcome.passed


def _without(run: Trajectory, tools: Iterable[str]) -> Trajectory:
    left = frozenset(tools)
    return replace(run, calls=tuple(call for call in run.calls if call.name not in left)) if left else run


class _Learner:
    """Learns from runs, part by part."""

    def __init__(self, runs: Sequence[Trajectory], build: Build) -> None:
        self._runs: Final = runs
        self._build: Final = build
        self.evaluators: Final[dict[str, Mapping[str, Any]]] = {}
        self.remarks: Final[list[str]] = []
        self._succeeded = [[call for call in run.calls if call.error is None] for run in runs]

    def learn(self) -> None:
        """Learn all there is."""
        if len(self._runs) < MANY:
            self.remarks.append(
                f"few runs, {len(self._runs)}: enumerations, formats of texts and what never happens are learned from "
                f"{MANY} on"
            )
        self._never_used()
        self._steps_and_rules()
        if rounds := learned_rounds(self._runs):  # a finer view of the steps, where there is one
            self._add("rounds", {"type": "expected_trajectory"} | rounds, is_sought=False)
        self._arguments()
        for name, loops in learned_loops(self._runs).items():
            self._add(name, {"type": "tool_loops"} | loops)
        self._recovery()
        if budget := learned_budget(self._runs):
            self._add("budget", {"type": "run_budget"} | budget)

    def _add(self, name: str, entry: dict[str, Any], *, is_sought: bool = True) -> bool:
        """Take an entry where all runs pass it; whatever they fail is no expectation of theirs, which is remarked."""
        try:
            evaluator = built(entry, self._build)
        except ConfigError as error:
            if is_sought:
                self.remarks.append(f"{name} cannot be told: {str(error).splitlines()[0]}")
            return False
        failing = sum(_fails(evaluator, entry, run) for run in self._runs)
        if failing:
            self.remarks.append(f"{name}: {failing} of {len(self._runs)} runs do not keep what was found, left out")
            return False
        self.evaluators[name] = entry
        return True

    def _never_used(self) -> None:
        declared = {name for run in self._runs for name in run.tool_definitions}
        if unused := sorted(declared - {name for run in self._runs for name in run.names}):
            self.remarks.append(f"tools never used: {', '.join(unused)}")

    def _steps_and_rules(self) -> None:
        names = [[call.name for call in run] for run in self._succeeded]
        rare = rare_tools(names)
        known = [[name for name in run if name not in rare] for run in names]
        kinds: dict[str, Any] = {"type": "expected_trajectory", "steps": learned_steps(known)}
        kinds |= {"other_calls": sorted(rare) if rare else "forbid", "ignore_failed": True}
        if rare:
            self.remarks.append(f"of too few runs to know where they stand: {', '.join(sorted(rare))}")
        if not self._add("steps", kinds) and not self._add("steps", kinds | {"steps": _in_any_order(known)}):
            return
        self._parallel()
        evaluator = built(self.evaluators["steps"], self._build)
        rules = learned_rules(self._succeeded, rare, lambda calls: _lets_through(evaluator, calls))
        if rules:
            self._add("rules", {"type": "tool_policy"} | rules | {"ignore_failed": True})

    def _parallel(self) -> None:
        """Say of calls in any order that they are made at one time, where they are in all runs that make several."""
        entry = self.evaluators["steps"]
        for path, group in list(_groups(entry["steps"], ())):
            tools = {name for member in group.value["any_order"] for name in _tools(plain(member))}
            several = [run for run in self._runs if sum(name in tools for name in set(run.names)) > 1]
            if len(several) < needed(len(self._runs)) or not all(_overlap(run, tools) for run in several):
                continue
            together = Noted({"parallel": group.value["any_order"]}, group.note)
            steps = _replaced(self.evaluators["steps"]["steps"], path, together)
            self._try({**self.evaluators["steps"], "steps": steps})

    def _try(self, entry: Mapping[str, Any]) -> None:
        """Take the steps in place of those there are, where all runs can be compared with them, and pass."""
        try:
            evaluator = built(entry, self._build)
        except ConfigError:
            return
        outcomes = [evaluator.evaluate(run) for run in self._runs]
        if all(isinstance(outcome, Score) and outcome.passed for outcome in outcomes):
            self.evaluators["steps"] = entry

    def _arguments(self) -> None:
        by_tool: dict[str, list[tuple[int, ToolCall]]] = {}
        for number, run in enumerate(self._runs):
            for call in run.calls:
                by_tool.setdefault(call.name, []).append((number, call))
        unrecorded = sorted(
            tool for tool, calls in by_tool.items() if any(call.arguments is NOT_RECORDED for _, call in calls)
        )
        if unrecorded:
            self.remarks.append(f"arguments were not recorded, or not always: {', '.join(unrecorded)}")
        schemas = {}
        for tool, calls in by_tool.items():
            if tool in unrecorded:
                continue
            seen = [Seen(number, call.arguments) for number, call in calls if call.arguments is not NOT_RECORDED]
            runs = len({each.run for each in seen})
            schemas[tool] = Noted(schema_of(seen), f"{plural(len(calls), 'call')} in {runs} of {len(self._runs)} runs")
        if schemas:
            self._add("arguments", {"type": "tool_arguments_schema", "schemas": schemas})

    def _recovery(self) -> None:
        recovery, let_stand = learned_recovery(self._runs)
        if let_stand:
            self.remarks.append(f"failures were let stand: {', '.join(let_stand)}")
            recovery = recovery | {"ignore_tools": let_stand}
        self._add("recovery", {"type": "tool_recovery"} | recovery)


def _lets_through(steps: Evaluator, names: Sequence[str]) -> bool:
    outcome = steps.evaluate(Trajectory(calls=tuple(ToolCall(name=name) for name in names)))
    return not isinstance(outcome, Score) or outcome.passed


def _in_any_order(runs: Sequence[Sequence[str]]) -> list[Any]:
    """Return each tool as often as it is called, in any order: where nothing more can be told."""
    steps = []
    for name in sorted({name for run in runs for name in run}):
        counts = [count for run in runs if (count := run.count(name))]
        step = {"repeat": [name], "min": least(counts) if len(counts) == len(runs) else 0, "max": most(counts)}
        steps.append(Noted(step, f"{len(counts)} of {len(runs)} runs"))
    return [{"any_order": steps}] if steps else []


def _groups(value: Any, path: tuple[Any, ...]) -> Iterable[tuple[tuple[Any, ...], Noted]]:
    """Yield the groups in any order, each with the way to it."""
    if isinstance(value, Noted):
        if isinstance(value.value, dict) and "any_order" in value.value:
            yield path, value
        yield from _groups(value.value, (*path, None))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _groups(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _groups(each, (*path, index))


def _replaced(value: Any, path: Sequence[Any], new: Any) -> Any:
    """Return a value with another one where the way leads; None in it goes into a note."""
    if not path:
        return new
    if path[0] is None:
        return Noted(_replaced(value.value, path[1:], new), value.note)
    if isinstance(value, Mapping):
        return {key: _replaced(each, path[1:], new) if key == path[0] else each for key, each in value.items()}
    return [_replaced(each, path[1:], new) if index == path[0] else each for index, each in enumerate(value)]


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
