"""The number of calls of each tool."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, cast

from annotated_types import Ge, MinLen

from spanscore.compare.accounts import Account, scored
from spanscore.compare.deviations import Deviation
from spanscore.compare.expected import need_missing
from spanscore.compare.matching import positions
from spanscore.compare.names import called_names, listed
from spanscore.evaluators._frame import CallEvaluator
from spanscore.messages.plural import plural
from spanscore.model import Outcome, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

Operator: TypeAlias = Literal["=", "==", "!=", ">", "<", ">=", "<="]
Count: TypeAlias = Annotated[int, Ge(0)]
Criterion: TypeAlias = Count | str | tuple[Operator, Count]

_COMPARE: Final[Mapping[Operator, Callable[[int, int], bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
_SHOWN: Final = 3
_WRITTEN: Final = re.compile(r"\s*([^\s\w-]+)\s*(-?[0-9]+)\s*")


@dataclass(frozen=True, kw_only=True)
class ToolCallCount(CallEvaluator):
    """Checks how often each tool was called.

    The value is the share of the tools whose number of calls meets its criterion; with `strict` it is 1 when all do
    and else 0. Failed calls count. A tool that was never called has 0 calls, also when there are no calls at all;
    calls of other tools are ignored. Skipped where a truncated trace shows fewer calls than a criterion needs.
    """

    expectation: ClassVar[str | None] = "tool_calls_count"
    needs_results: ClassVar[bool] = False

    tool_calls_count: Annotated[Mapping[str, Criterion], MinLen(1)]
    """For each tool `[operator, count]`, `"operator count"` or a bare count, which means `=`: `{search: [">=", 1]}`.
    Operators: `= == != > < >= <=`."""
    strict: bool = False
    """All or nothing."""

    @cached_property
    def _compiled(self) -> tuple[_Criterion, ...]:
        return tuple(_criterion(tool, self._normalise(tool), value) for tool, value in self.tool_calls_count.items())

    def _score(self, trajectory: Trajectory) -> Outcome:
        criteria, names = self._compiled, called_names(trajectory, self._normalise)
        counts = Counter(names)
        unmet = [each for each in criteria if not each.is_met(counts[each.name])]
        if trajectory.completeness.truncated:
            need_missing(trajectory, sum(max(0, each.limit - counts[each.name]) for each in unmet))
        matched, total = len(criteria) - len(unmet), len(criteria)
        value = float(not unmet) if self.strict else matched / total

        def account() -> Account:
            explanation = f"{matched} of {total} tools have the expected number of calls"
            if unmet:
                told = [
                    f"{listed([tool])} was called {plural(counts[name], 'time')}, expected {comparison} {limit}"
                    for tool, name, comparison, limit in unmet[:_SHOWN]
                ]
                explanation += f" ({'; '.join(told)}{'; ...' if len(unmet) > _SHOWN else ''})"
            explanation += "; strict requires all." if self.strict else "."
            explained = {each.tool: each.told(counts[each.name]) for each in criteria}
            deviations = _deviations(unmet, names, trajectory.calls) if unmet else ()
            return Account(explanation, {"explained_tool_calls_count": explained}, told=deviations)

        # No further call makes up for those that are too many.
        lasting = sum(each.is_exceeded(counts[each.name]) for each in unmet)
        at_best = float(not lasting) if self.strict else (total - lasting) / total
        mended_by = MendedBy.ANY if at_best >= self.threshold else MendedBy.NOTHING
        return scored(value, value >= self.threshold, account, mended_by=mended_by)

    def named_tools(self) -> Iterable[str]:
        """Return the tools that are counted: a mistyped one has no calls, which may be as few as expected."""
        return self.tool_calls_count


class _Criterion(NamedTuple):
    tool: str
    name: str
    comparison: Operator
    limit: int

    def is_met(self, actual: int) -> bool:
        return _COMPARE[self.comparison](actual, self.limit)

    def is_exceeded(self, actual: int) -> bool:
        """Return whether no larger number meets it either."""
        return self.comparison in {"=", "==", "<", "<="} and actual >= self.limit and not self.is_met(actual)

    def why(self, actual: int) -> str:
        """Return in words how a number that does not meet it is wrong; without numbers, which may be the case's."""
        if self.comparison == "!=" and self.limit:
            return "a number of times that is not allowed"
        is_many = actual > self.limit or self.comparison in {"<", "<="}
        return "too often" if is_many else "too rarely"

    def told(self, actual: int) -> str:
        return f"Actual: {actual}, Expected: {self.limit}, Score: {float(self.is_met(actual))}"


def _deviations(unmet: Sequence[_Criterion], names: Sequence[str], calls: Sequence[ToolCall]) -> list[Deviation]:
    """Return for each criterion that is not met the first call too many, where there are too many."""
    made = positions(names)
    found = []
    for each in unmet:
        places = made.get(each.name, [])
        told: dict[str, Any] = {
            "expected": f"{each.comparison} {each.limit}",
            "why": f"was called {each.why(len(places))}",
        }
        beyond = places[each.limit :]
        found.append(
            Deviation.at("count", beyond[0], calls, **told)
            if beyond
            else Deviation(kind="count", tool=each.tool, **told)
        )
    return found


def _criterion(tool: str, name: str, written: Criterion) -> _Criterion:
    if isinstance(written, int):
        return _Criterion(tool, name, "=", written)
    if not isinstance(written, str):
        return _Criterion(tool, name, *written)
    found = _WRITTEN.fullmatch(written)
    if found is None:
        raise ValueError(f"tool_calls_count.{tool}: {written!r} must be [operator, count], 'operator count' or a count")
    comparison, limit = found[1], int(found[2])
    if comparison not in _COMPARE:
        raise ValueError(f"tool_calls_count.{tool}: unknown operator {comparison!r}; allowed: {' '.join(_COMPARE)}")
    if limit < 0:
        raise ValueError(f"tool_calls_count.{tool}: the count must be a whole number of at least 0, not {limit!r}")
    return _Criterion(tool, name, cast("Operator", comparison), limit)
