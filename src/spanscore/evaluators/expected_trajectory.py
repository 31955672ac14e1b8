"""Whether a run follows the expected steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple

from spanscore.compare import alignment
from spanscore.compare.accounts import Account, scored
from spanscore.compare.expected import need_missing
from spanscore.compare.matchers.compiler import source_names
from spanscore.compare.names import called_names, short
from spanscore.compare.steps.calls import StepCalls
from spanscore.compare.steps.graph import Graph, graph_of
from spanscore.compare.steps.parsing import read_other_calls, read_pattern
from spanscore.compare.steps.pattern import Pattern, leaves, required
from spanscore.compare.steps.step_alignment import StepAlignment
from spanscore.evaluators._frame import CallEvaluator
from spanscore.messages.plural import plural
from spanscore.model import Outcome, Skipped, Trajectory

MOST_CALLS: Final = 10_000
"""Longer trajectories are not compared."""


@dataclass(frozen=True, kw_only=True)
class ExpectedTrajectory(CallEvaluator):
    """Compares the calls with steps: in order, in any order, parallel, optional, repeated, one of several ways.

    A step is the name of a tool, a glob, `!name` for all others, or a mapping: `call` with `args`, `match` (`exact`,
    `subset` or `ignore`), `result` and `error`; `any_order`, `parallel`, `one_of`, `optional`, `repeat` with `min` and
    `max`, `turn`, or `agent` with `steps` and `other_calls`. The calls are aligned with the steps so that as few as
    possible deviate. A deviation is a step without its call, a call that takes a step with other arguments, another
    result or error, and a call that `other_calls` does not allow and that takes no step. The value is 1 -
    deviations / (required + unexpected). `required` is the least number of calls that the steps take. `unexpected`
    counts the calls of tools that `other_calls` does not allow, also those that take a step: all calls if it is
    `forbid`, none if it is `allow`. If both are 0, the value is 1.
    Skipped where arguments or results to be compared were not recorded, unless the names alone deviate; where neither
    turn nor times of calls were recorded that were to be parallel; where the trace was truncated and calls are missing;
    where there are more than 10,000 calls, or they fit the steps in too many ways.
    """

    expectation: ClassVar[str | None] = "steps"
    needs_model_calls: ClassVar[bool] = True

    steps: tuple[str | dict[str, Any] | list[Any], ...]
    """The steps: `[lookup_order, {any_order: [check_policy, check_stock]}, {optional: [send_survey]}]`."""
    other_calls: Literal["allow", "forbid"] | tuple[str, ...] = "allow"
    """Calls that no step expects: `allow`, `forbid`, or globs of those allowed, of which `!glob` takes out."""
    ignore_failed: bool = False
    """Failed calls are left out before anything is compared."""

    @cached_property
    def _compiled(self) -> _CompiledSteps:
        pattern = read_pattern(self.steps, self._normalise)
        allows = read_other_calls(self.other_calls, "other_calls", self._normalise)
        return _CompiledSteps(pattern, graph_of(pattern.row), allows, required(pattern.row))

    def _score(self, trajectory: Trajectory) -> Outcome:
        pattern, graph, allows, least = self._compiled
        names = called_names(trajectory, self._normalise)
        run = StepCalls(pattern, allows, trajectory, names, ignore_failed=self.ignore_failed)
        if len(run.compared) > MOST_CALLS:
            return Skipped(f"the run has {len(run.compared)} calls; the limit is {MOST_CALLS}")
        if reason := run.unknown():
            return Skipped(reason)
        found = run.aligned(graph)
        lacking = next(found.unrecorded(), None)
        if lacking is not None and not run.aligned(graph, by_name=True).count:
            call, what = lacking
            made = trajectory.calls[call]
            where = "content elsewhere" if trajectory.completeness.content_elsewhere else "not recorded"
            return Skipped(
                f"{where}: {what} {short(made.name)!r} (call {made.in_run(call) + 1}), which a step compares"
            )
        need_missing(trajectory, found.missing)
        return self._scored(found, least, trajectory)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools that steps and `$from` name, and those that may be called besides."""
        steps = list(leaves(self._compiled.pattern.row))
        yield from (leaf.tool.text.removeprefix("!") for leaf in steps)
        yield from source_names(each for leaf in steps for each in (leaf.arguments, leaf.result) if each is not None)
        if not isinstance(self.other_calls, str):
            yield from (tool.removeprefix("!") for tool in self.other_calls)

    def _scored(self, found: StepAlignment, least: int, trajectory: Trajectory) -> Outcome:
        deviating, unexpected = found.count, len(found.unexpected)
        total = least + unexpected
        value = max(0.0, 1 - deviating / total) if total else 1.0

        def account() -> Account:
            rows, names = found.rows()
            details: dict[str, Any] = {
                "deviations": [],
                "alignment": alignment.entries(rows, names, trajectory.names, trajectory.calls),
            }
            if not deviating:
                return Account("No deviation. Score 1.", details)
            # Rounded, a value below 1 must not read as 1.
            formula = f"Score {min(value, 0.9999):.4g} = 1 - {deviating}/{total}."
            return Account(
                f"{plural(deviating, 'deviation')}:", details, tuple(found.deviations(rows)), formula=formula
            )

        return scored(value, value >= self.threshold, account, at_once=True)


class _CompiledSteps(NamedTuple):
    pattern: Pattern
    graph: Graph
    allows: Callable[[str], bool]
    """Whether a call of a tool that no step expects is allowed."""
    required: int
    """The least number of calls that the steps take."""
