"""Whether tools were called in the expected order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from annotated_types import MinLen

from spanscore.compare import alignment
from spanscore.compare.accounts import Account, scored
from spanscore.compare.deviations import of_alignment
from spanscore.compare.expected import need_missing
from spanscore.compare.matching import Pairs, common_subsequence
from spanscore.compare.names import called_names
from spanscore.evaluators._frame import CallEvaluator
from spanscore.model import Outcome, Trajectory


@dataclass(frozen=True, kw_only=True)
class ToolCallOrder(CallEvaluator):
    """Checks that tools were called in the expected order.

    The value is the length of the longest common subsequence of the calls and the expected names, divided by the
    number of expected names: calls in between do not matter. With `strict` it is 1 when the calls are exactly the
    expected names, position by position, and else 0. Failed calls count. Skipped where the trace was truncated and
    expected calls are missing.
    """

    expectation: ClassVar[str | None] = "tool_calls_order"
    needs_results: ClassVar[bool] = False

    tool_calls_order: Annotated[tuple[str, ...], MinLen(1)]
    """The tools in the order expected, one name for each call: `[lookup_order, check_policy, issue_refund]`."""
    strict: bool = False
    """All or nothing, and no other calls."""

    @cached_property
    def _compiled(self) -> tuple[str, ...]:
        return tuple(map(self._normalise, self.tool_calls_order))

    def _score(self, trajectory: Trajectory) -> Outcome:
        expected, actual = self._compiled, called_names(trajectory, self._normalise)
        same = expected == actual
        pairs = None if same else common_subsequence(actual, expected)
        found = len(expected) if pairs is None else len(pairs)
        need_missing(trajectory, len(expected) - found)
        value = float(same) if self.strict else found / len(expected)
        return scored(value, value >= self.threshold, lambda: self._account(trajectory, actual, pairs))

    def _account(self, trajectory: Trajectory, actual: Sequence[str], pairs: Pairs | None) -> Account:
        expected = self._compiled
        matched = list(self.tool_calls_order) if pairs is None else [self.tool_calls_order[place] for _, place in pairs]
        explanation = f"{len(matched)} of {len(expected)} expected calls were made in order, among {len(actual)} calls"
        explanation += "; strict requires exactly these calls." if self.strict else "."
        details: dict[str, Any] = {"lcs": matched, "totals": {"expected": len(expected), "actual": len(actual)}}
        if pairs is None or (len(matched) == len(expected) and not self.strict):
            return Account(explanation, details)
        if self.strict:
            aligned: Sequence[alignment.Aligned] = alignment.by_position(expected, actual, lambda _: True)
        else:
            aligned = alignment.minding(alignment.in_order(expected, actual, pairs), extra=False)
        details["alignment"] = alignment.entries(aligned, expected, actual, trajectory.calls)
        deviations = of_alignment(aligned, expected, trajectory.calls, lambda _place, _call: ())
        return Account(explanation, details, deviations)
