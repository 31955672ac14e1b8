"""Whether exactly the expected tools were used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar

from spanscore.compare.accounts import Account, scored
from spanscore.compare.alignment import LIMIT
from spanscore.compare.deviations import Deviation
from spanscore.compare.expected import need_missing
from spanscore.contracts import ToolNames
from spanscore.evaluators._frame import CallEvaluator
from spanscore.messages.plural import plural
from spanscore.model import Outcome, Skipped, Trajectory


@dataclass(frozen=True, kw_only=True)
class ToolCorrectness(CallEvaluator):
    """Checks that exactly the expected tools were used, in any order and any number of times.

    The value is 1 when the set of tools called is the set of tools expected, else 0. Failed calls count. Names are
    compared in canonical form unless told otherwise. Skipped without expected tools, and where the trace was truncated
    and expected tools are missing; an empty list expects that no tool is called.
    """

    expectation: ClassVar[str | None] = "expected_tools"
    needs_expectation: ClassVar[bool] = True
    needs_results: ClassVar[bool] = False

    tool_names: ToolNames = "canonical"
    """The comparison of tool names; both sides are normalised."""
    expected_tools: tuple[str, ...] | None = None
    """The tools expected: `[search, book]`."""

    @cached_property
    def _compiled(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.expected_tools or ()))

    def _score(self, trajectory: Trajectory) -> Outcome:
        if self.expected_tools is None:
            return Skipped("no expected tools are given")
        called = dict.fromkeys(trajectory.names)
        normalise, names = self._normalise, self._compiled
        canonical = {name: normalise(name) for name in (*names, *called)}
        expected = {canonical[name] for name in names}
        used = {canonical[name] for name in called}
        missing, extra = sorted(expected - used), sorted(used - expected)
        need_missing(trajectory, len(missing))
        value = 0.0 if missing or extra else 1.0

        def account() -> Account:
            explanation = f"{plural(len(expected), 'tool')} expected, {len(used)} called: "
            explanation += f"{len(missing)} missing, {len(extra)} unexpected."
            firsts = {canonical[name]: trajectory.names.index(name) for name in reversed(called)}
            deviations = [
                *(Deviation(kind="missing", tool=name) for name in missing),
                *(Deviation.at("unexpected", firsts[name], trajectory.calls) for name in extra),
            ]
            details = {"missing": missing, "extra": extra, "canonical": dict(islice(canonical.items(), LIMIT))}
            return Account(explanation, details, deviations)

        return scored(value, value >= self.threshold, account)
