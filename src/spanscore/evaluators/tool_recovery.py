"""Whether an agent recovered from failed tool calls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, ClassVar, Final

from annotated_types import Ge

from spanscore.compare.accounts import Account, scored
from spanscore.compare.deviations import Deviation
from spanscore.compare.expected import need_missing
from spanscore.compare.rules.called import CalledTools, Matches, named
from spanscore.evaluators._frame import CallEvaluator
from spanscore.model import Outcome, Trajectory
from spanscore.model.outcomes import MendedBy

_RECOVERED: Final = "recovered after a failure"
_LOST: Final = "failed, and no later call recovered from it"


@dataclass(frozen=True, kw_only=True)
class ToolRecovery(CallEvaluator):
    """Measures how many of the failed calls were recovered from.

    The value is the share of failed calls after which the same tool succeeded, with the same arguments or others, or
    one of its alternatives did; 1 when no call failed. Skipped where the trace was truncated and a recovery is missing.
    """

    expectation: ClassVar[str | None] = None
    needs_results: ClassVar[bool] = False

    within: Annotated[int, Ge(1)] | None = 3
    """The success is among so many calls after the failed one; with null, among all."""
    max_retries: Annotated[int, Ge(1)] | None = 2
    """The tool succeeds when it is called so many times again at most; with null, any number. Calls of alternatives are
    no retries."""
    alternatives: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tools that do instead of another one: `{search_web: [search_cache]}`; globs on both sides."""

    @cached_property
    def _compiled(self) -> tuple[tuple[Matches, tuple[Matches, ...]], ...]:
        """The alternatives."""
        return tuple(
            (named(self._normalise, tool), tuple(named(self._normalise, other) for other in others))
            for tool, others in self.alternatives.items()
        )

    def _score(self, trajectory: Trajectory) -> Outcome:
        run = CalledTools(trajectory, self._normalise)
        helped = _Helped(run)
        recovered = {index: self._recovery(index, run, helped) for index in sorted(run.failed)}
        lost = [index for index, by in recovered.items() if by is None]
        need_missing(trajectory, len(lost))
        total, kept = len(recovered), len(recovered) - len(lost)
        value = kept / total if total else 1.0

        def account() -> Account:
            explanation = f"{kept} of {total} failed calls were recovered from." if total else "No call failed."
            details = {
                "totals": {"failed": total, "recovered": kept},
                "recovered": [
                    {"call": trajectory.calls[index].in_run(index), "by": trajectory.calls[by].in_run(by)}
                    for index, by in recovered.items()
                    if by is not None
                ],
            }
            deviations = [
                Deviation.at("rule", index, trajectory.calls, expected=_RECOVERED, sentence=_LOST, why=_LOST)
                for index in lost
            ]
            return Account(explanation, details, deviations)

        mended_by = MendedBy.BETWEEN | MendedBy.LATER if self.threshold == 1 else MendedBy.ANY
        return scored(value, value >= self.threshold, account, mended_by=mended_by)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools that have alternatives, and these."""
        for tool, others in self.alternatives.items():
            yield from (tool, *others)

    def _recovery(self, failed: int, run: CalledTools, helped: _Helped) -> int | None:
        """Return the first call that makes up for a failed one."""
        name = run.names[failed]
        end = len(run.names) if self.within is None else min(len(run.names), failed + 1 + self.within)
        others = [other for matches, instead in self._compiled if matches(name) for other in instead]
        instead = helped.first(failed, (tool for tool in helped.tools if any(matches(tool) for matches in others)))
        again = helped.again(failed, name, self.max_retries)
        found = min((index for index in (instead, again) if index is not None), default=end)
        return found if found < end else None


class _Helped:
    """The places of successful calls: each failure finds the next one without going through all calls."""

    def __init__(self, run: CalledTools) -> None:
        self._called = run.called
        self.tools: Final = {
            name: [index for index in places if index not in run.failed] for name, places in run.called.items()
        }
        """Of each tool, in order."""

    def first(self, behind: int, tools: Iterable[str]) -> int | None:
        """Return the first success behind a call of any of these tools."""
        firsts = (self._next(self.tools[tool], behind) for tool in tools)
        return min((index for index in firsts if index is not None), default=None)

    def again(self, behind: int, tool: str, most: int | None) -> int | None:
        """Return the first success of a tool behind a call of it, where it is among so many next calls of it."""
        index = self._next(self.tools[tool], behind)
        if index is None or most is None:
            return index
        called = self._called[tool]
        return index if bisect_right(called, index) - bisect_right(called, behind) <= most else None

    @staticmethod
    def _next(places: Sequence[int], behind: int) -> int | None:
        place = bisect_right(places, behind)
        return places[place] if place < len(places) else None
