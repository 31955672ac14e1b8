"""Expectations from correct runs, as an ordinary configuration with the evidence of each line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.compare.globs import is_glob
from spanscore.contracts import Evaluator
from spanscore.errors import ConfigError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import NOT_RECORDED, Score, Skipped, ToolCall, Trajectory
from spanscore.runs.learn.conduct import learned_budget, learned_loops, learned_recovery, learned_rounds
from spanscore.runs.learn.evidence import MANY, Noted, least, most, plain
from spanscore.runs.learn.learned_rules import learned_rules
from spanscore.runs.learn.schemas import SeenValue, schema_of
from spanscore.runs.learn.structure import MOST_WORK, counts_by_name, learned_steps, overlapping_groups, rare_tools

Build: TypeAlias = Callable[[str, Mapping[str, Any]], Evaluator]
"""Builds an evaluator of a type with parameters, and raises `ConfigError` where they are wrong."""

Progress: TypeAlias = Callable[[int, int], None]
"""Takes how much is done, and how much there is to do."""

_MOST_CALLS: Final = 150_000
"""No more calls are learned from; a long run counts more, as its calls are compared with one another."""
_MOST_TOOLS: Final = 500
"""The most tools with a schema, and the most that are listed as allowed anywhere."""
_NAMED: Final = 3
"""Of the tools that are left out, the remark names so many."""
_PER_CALL: Final = 40
"""The work of one evaluator for one call."""
LEARNED_CALL: Final = 7 * _PER_CALL
"""The work of learning from one call, with all that evaluators do about it."""
_ALIGNED: Final = 2
"""The work of aligning a call with steps, for each call of the run; at most that of `least_deviations`."""
_MOST_ALIGNED: Final = 1_000_000
_PER_SCHEMA: Final = 10_000
"""The work of learning the schema of a tool, however few calls it has."""
_BY_STEPS: Final = ("steps", "rounds")
"""The evaluators that align calls with steps."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The common behaviour of good runs, as evaluators."""

    evaluators: Mapping[str, Mapping[str, Any]]
    """By a name for each: `type` and parameters, with notes."""
    remarks: Sequence[str]
    """Remarks: facts that these runs cannot show, and parts that were left out."""
    work: int
    """The work that was done, in units of about a microsecond."""


def learned(runs: Sequence[Trajectory], build: Build, progress: Progress | None = None) -> Learned:
    """Return the common properties of correct runs: all runs that were learned from pass it.

    `runs` has at least one run. If there are very many, a part of them is used.
    """
    looked_at = not_too_many(runs)
    learner = _Learner(looked_at, build)
    if len(looked_at) < len(runs):
        learner.remarks.append(
            f"learned from {len(looked_at)} of {len(runs)} runs: at most {_MOST_CALLS:,} calls are compared, and a "
            "call of a long run counts several times"
        )
    learner.learn(progress)
    return Learned(learner.evaluators, learner.remarks, learner.work)


def not_too_many(runs: Sequence[Trajectory]) -> Sequence[Trajectory]:
    """Return as many runs as can be looked at, evenly spread."""
    while len(runs) > 1 and sum(1 + _weight(run) for run in runs) > _MOST_CALLS:
        runs = runs[::2]
    return runs


def _weight(run: Trajectory) -> int:
    return len(run.calls) + _alignment(len(run.calls)) // LEARNED_CALL


def _alignment(calls: int) -> int:
    return min(_ALIGNED * calls**2, _MOST_ALIGNED)


def built(entry: Mapping[str, Any], build: Build) -> Evaluator:
    """Return the evaluator of an entry."""
    params = plain({key: value for key, value in entry.items() if key not in {"type", "ignore_tools"}})
    return build(entry["type"], params)


def fails(evaluator: Evaluator, entry: Mapping[str, Any], run: Trajectory) -> bool:
    """Return whether a run fails the evaluator of an entry."""
    outcome = evaluator.evaluate(_without(run, entry.get("ignore_tools", ())))
    return isinstance(outcome, Score) and not outcome.passed


def _why_skipped(evaluator: Evaluator, runs: Sequence[Trajectory]) -> str | None:
    """Return why no run can be compared with steps: the shortest cannot."""
    outcome = evaluator.evaluate(min(runs, key=lambda run: len(run.calls)))
    return outcome.reason if isinstance(outcome, Skipped) else None


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
        self._effort: Final = Effort(MOST_WORK)
        self._evaluated = (LEARNED_CALL - 5 * _PER_CALL) * sum(len(run.calls) for run in runs)
        self._succeeded = [[call for call in run.calls if call.error is None] for run in runs]

    @property
    def work(self) -> int:
        """The work that was done so far."""
        return self._effort.spent + self._evaluated

    def learn(self, progress: Progress | None) -> None:
        """Learn all there is."""
        if len(self._runs) < MANY:
            self.remarks.append(
                f"few runs, {len(self._runs)}: enumerations, formats of texts and limits on what never happened need "
                f"{MANY} runs"
            )
        parts = (
            self._names_of_tools,
            self._steps_and_rules,
            self._rounds,
            self._arguments,
            self._loops,
            self._recovery,
            self._budget,
        )
        for done, part in enumerate(parts, 1):
            part()
            if progress is not None:
                progress(done, len(parts))

    def _add(self, name: str, entry: dict[str, Any], *, is_sought: bool = True) -> bool:
        """Take an entry where all runs pass it; whatever they fail is no expectation of theirs, which is remarked."""
        try:
            evaluator = built(entry, self._build)
        except ConfigError as error:
            reason = str(error).splitlines()[0].partition(": ")[2]  # in front of it is its place in the parameters
            if is_sought and (remark := f"{name} cannot be learned: {reason}") not in self.remarks:
                self.remarks.append(remark)
            return False
        if name in _BY_STEPS:
            self._evaluated += _MOST_ALIGNED
            if skipped := _why_skipped(evaluator, self._runs):
                if (remark := f"{name}: {skipped}") not in self.remarks:
                    self.remarks.append(remark)
                return False
            self._evaluated += sum(_alignment(len(run.calls)) for run in self._runs) - _MOST_ALIGNED
        self._evaluated += _PER_CALL * sum(len(run.calls) for run in self._runs)
        failing = sum(fails(evaluator, entry, run) for run in self._runs)
        if failing:
            self.remarks.append(f"{name}: {failing} of {len(self._runs)} runs do not keep what was found, left out")
            return False
        self.evaluators[name] = entry
        return True

    def _names_of_tools(self) -> None:
        declared = {name for run in self._runs for name in run.tool_definitions}
        called = {name for run in self._runs for name in run.names}
        if unused := sorted(declared - called):
            self.remarks.append(f"tools never used: {', '.join(unused)}")
        if patterns := sorted(name for name in called if is_glob(name) or name.startswith("!")):
            named = ", ".join(map(printable, patterns[:_NAMED])) + (", …" if len(patterns) > _NAMED else "")
            self.remarks.append(f"tools whose names are read as globs, so that other tools match, too: {named}")

    def _steps_and_rules(self) -> None:
        names = [[call.name for call in run] for run in self._succeeded]
        rare = rare_tools(names)
        few = frozenset(rare)
        known = [[name for name in run if name not in few] for run in names]
        try:
            steps = learned_steps(known, effort=self._effort)
        except TooMuchWorkError:
            self.remarks.append("the order of the calls is too much work to find: steps are in any order")
            steps = _in_any_order(known)
        kinds: dict[str, Any] = {"type": "expected_trajectory", "steps": steps}
        kinds |= {"other_calls": sorted(rare) if rare else "forbid", "ignore_failed": True}
        if len(rare) > _MOST_TOOLS:
            self.remarks.append(f"{len(rare)} tools of too few runs to know where they stand: others may be called")
            rare, kinds = [], kinds | {"other_calls": "allow"}
        elif rare:
            self.remarks.append(f"of too few runs to know where they stand: {', '.join(sorted(rare))}")
        if not self._add("steps", kinds) and not self._add("steps", kinds | {"steps": _in_any_order(known)}):
            self.remarks.append("steps and rules are left out")
            return
        self._parallel()
        evaluator = built(self.evaluators["steps"], self._build)

        def fits(calls: Sequence[str]) -> bool:
            self._effort.spend(100 + _PER_CALL * len(calls) + _alignment(len(calls)))
            return _lets_through(evaluator, calls)

        rules = learned_rules(self._succeeded, rare, fits, self._effort)
        if self._effort.spent > MOST_WORK:
            self.remarks.append("rules: not all were looked for, as that takes too much work")
        if rules:
            self._add("rules", {"type": "tool_policy"} | rules | {"ignore_failed": True})

    def _parallel(self) -> None:
        """Mark calls in any order as parallel if they overlap in all runs that make several of them."""
        for group in overlapping_groups(self.evaluators["steps"]["steps"], self._runs):
            group["parallel"] = group.pop("any_order")
            if not self._pass_steps():
                group["any_order"] = group.pop("parallel")

    def _pass_steps(self) -> bool:
        """Return whether all runs can be compared with the steps, and pass."""
        with suppress(ConfigError):
            evaluator = built(self.evaluators["steps"], self._build)
            outcomes = [evaluator.evaluate(run) for run in self._runs]
            return all(isinstance(outcome, Score) and outcome.passed for outcome in outcomes)
        return False

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
        by_calls = sorted(by_tool, key=lambda tool: -len(by_tool[tool]))
        common, others = set(by_calls[:_MOST_TOOLS]), by_calls[_MOST_TOOLS:]
        if others:
            named = ", ".join(map(printable, others[:_NAMED])) + (", …" if len(others) > _NAMED else "")
            left_out = f"{plural(len(others), 'tool')} left out, as {_MOST_TOOLS} are called as often or more"
            self.remarks.append(f"arguments: {left_out}: {named}")
        for tool, calls in by_tool.items():
            if tool in unrecorded or tool not in common:
                continue
            seen = [SeenValue(number, call.arguments) for number, call in calls if call.arguments is not NOT_RECORDED]
            runs = len({each.run for each in seen})
            schemas[tool] = Noted(schema_of(seen), f"{plural(len(calls), 'call')} in {runs} of {len(self._runs)} runs")
        if schemas:
            self._evaluated += _PER_SCHEMA * len(schemas)
            self._add("arguments", {"type": "tool_arguments_schema", "schemas": schemas})

    def _rounds(self) -> None:
        with suppress(TooMuchWorkError):
            if rounds := learned_rounds(self._runs, self._effort):  # a finer view of the steps, where there is one
                self._add("rounds", {"type": "expected_trajectory"} | rounds, is_sought=False)

    def _loops(self) -> None:
        for name, loops in learned_loops(self._runs).items():
            self._add(name, {"type": "tool_loops"} | loops)

    def _budget(self) -> None:
        if budget := learned_budget(self._runs):
            self._add("budget", {"type": "run_budget"} | budget)

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
    """Return each tool with its number of calls, in any order: the fallback without a known order."""
    steps = []
    for name, counts in sorted(counts_by_name(runs).items()):
        step = {"repeat": [name], "min": least(counts) if len(counts) == len(runs) else 0, "max": most(counts)}
        steps.append(Noted(step, f"{len(counts)} of {len(runs)} runs"))
    return [{"any_order": steps}] if steps else []
