"""Whether a run went as steps say that it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Final, Literal

from spanscore.compare import alignment
from spanscore.compare.deviations import Account, scored
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.expected import cut_off
from spanscore.compare.names import NameParameters, called_names, short
from spanscore.compare.step_alignment import StepAlignment
from spanscore.compare.step_calls import StepCalls
from spanscore.compare.step_graph import Graph, graph_of
from spanscore.compare.step_reading import read_other_calls, read_pattern
from spanscore.compare.steps import Pattern, leaves, required
from spanscore.model import Outcome, Skipped, Trajectory

MOST_CALLS: Final = 10_000
"""Longer trajectories are not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedTrajectory(NameParameters):
    """Compares the calls with steps: in order, in any order, parallel, optional, repeated, one of several ways.

    A step is the name of a tool, a glob, `!name` for all others, or a mapping: `call` with `args`, `match` (`exact`,
    `subset` or `ignore`), `result` and `error`; `any_order`, `parallel`, `one_of`, `optional`, `repeat` with `min` and
    `max`, `turn`, or `agent` with `steps` and `other_calls`. The calls are aligned with the steps so that as few as
    possible deviate. A deviation is a step without its call, a call that takes a step with other arguments, another
    result or error, and a call that `other_calls` does not allow and that takes no step. The value is 1 -
    deviations / (required + unexpected), where `required` is the least number of calls that the steps take, and
    `unexpected` the number of calls that `other_calls` does not allow, expected or not; it is 1 where both are 0.
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
    _pattern: Pattern = field(init=False, repr=False, compare=False)
    _graph: Graph = field(init=False, repr=False, compare=False)
    _allows: Callable[[str], bool] = field(init=False, repr=False, compare=False)
    _required: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        NameParameters.__post_init__(self)
        pattern = read_pattern(self.steps, self._normalise)
        object.__setattr__(self, "_pattern", pattern)
        object.__setattr__(self, "_graph", graph_of(pattern.row))
        object.__setattr__(self, "_allows", read_other_calls(self.other_calls, "other_calls", self._normalise))
        object.__setattr__(self, "_required", required(pattern.row))

    def __reduce__(self) -> tuple[Callable[[], ExpectedTrajectory], tuple[()]]:
        """Go into another process as parameters: what is made of them is large, and holds functions."""
        parameters = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return partial(ExpectedTrajectory, **parameters), ()

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Align the calls with the steps."""
        names = called_names(trajectory, self._normalise)
        run = StepCalls(self._pattern, self._allows, trajectory, names, ignore_failed=self.ignore_failed)
        if len(run.compared) > MOST_CALLS:
            return Skipped(f"there are {len(run.compared)} calls; at most {MOST_CALLS} are compared with steps")
        if reason := run.unknown():
            return Skipped(reason)
        try:
            found = run.aligned(self._graph)
            lacking = next(found.unrecorded(), None)
            if lacking is not None and not run.aligned(self._graph, by_name=True).count:
                call, what = lacking
                name = short(trajectory.calls[call].name)
                where = "content elsewhere" if trajectory.completeness.content_elsewhere else "not recorded"
                return Skipped(f"{where}: {what} {name!r} (call {call + 1}), which a step compares")
        except TooMuchWorkError as error:
            return Skipped(str(error))
        if skipped := cut_off(trajectory, found.missing):
            return skipped
        return self._scored(found, trajectory)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools that steps name, and those that may be called besides."""
        yield from (leaf.tool.text.removeprefix("!") for leaf in leaves(self._pattern.row))
        if not isinstance(self.other_calls, str):
            yield from (tool.removeprefix("!") for tool in self.other_calls)

    def _scored(self, found: StepAlignment, trajectory: Trajectory) -> Outcome:
        deviating, unexpected = found.count, len(found.unexpected)
        total = self._required + unexpected
        value = max(0.0, 1 - deviating / total) if total else 1.0

        def account() -> Account:
            explanation = f"Deviations: {deviating}, of {self._required} calls required and {unexpected} "
            explanation += "that may be unexpected; the value is 1 - deviations / their sum."
            rows, names = found.rows()
            details: dict[str, Any] = {
                "deviations": [],
                "alignment": alignment.entries(rows, names, trajectory.names),
            }
            return Account(explanation, details, tuple(found.deviations(rows)))

        return scored(value, value >= self.threshold, account, at_once=True)
