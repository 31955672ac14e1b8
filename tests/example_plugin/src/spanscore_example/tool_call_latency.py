"""How many tool calls kept to a time budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from annotated_types import Gt

from spanscore.contracts import Parameters
from spanscore.model import Outcome, Score, Skipped, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallLatency(Parameters):
    """Checks that tool calls keep to a time budget.

    The value is the share of calls that took no longer than the budget. Skipped when there are no calls.
    """

    expectation: ClassVar[str | None] = "budgets_ms"

    budget_ms: Annotated[float, Gt(0)] = 1000.0
    """How long a call may take."""
    budgets_ms: Mapping[str, Annotated[float, Gt(0)]] = field(default_factory=dict)
    """How long the calls of some tools may take instead: `{search: 5000}`."""

    def __post_init__(self) -> None:
        for tool, budget in self.budgets_ms.items():
            if budget == self.budget_ms:
                message = f"budgets_ms.{tool}: says no more than budget_ms, {budget!r}; leave it out"
                raise ValueError(message)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Compare the duration of each call with the budget of its tool."""
        if not trajectory.calls:
            return Skipped("no tool calls")
        kept = [call for call in trajectory.calls if call.duration_ms <= self.budgets_ms.get(call.name, self.budget_ms)]
        value = len(kept) / len(trajectory.calls)
        explanation = f"{len(kept)} of {len(trajectory.calls)} calls kept to their budget."
        return Score(value, value >= self.threshold, explanation)
