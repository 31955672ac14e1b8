"""The health of a run's tool calls; needs no expectations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final

from annotated_types import Ge

from spanscore.compare.accounts import Account, scored
from spanscore.compare.deviations import Deviation
from spanscore.compare.differences import ABSENT, Difference
from spanscore.compare.names import called_names, listed
from spanscore.evaluators._frame import CallEvaluator
from spanscore.messages.plural import plural
from spanscore.model import Outcome, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

_LIMITS: Final = frozenset({"max_sequence_gaps", "max_latency_p95_ms"})
"""The gates that no single call breaks."""


@dataclass(frozen=True, kw_only=True)
class ToolCallTrajectory(CallEvaluator):
    """Measures the tool calls of a run: how many failed, were repeated or are missing, and how long they took.

    The value is the share of calls that did not fail, 1 when there are none. The run passes when the value reaches
    the threshold and every gate that is set holds. The measurements are in the details: sequence gaps count the
    numbers missing between the smallest and the largest that the instrumentation gave to the calls, none where it
    gives no numbers; a run of k calls of one tool has k - 1 consecutive ones; latency percentiles are by nearest rank
    and leave out calls whose execution was not seen. A truncated trace is measured as far as it was received.
    """

    expectation: ClassVar[str | None] = None
    needs_results: ClassVar[bool] = False

    max_failed: Annotated[int, Ge(0)] | None = None
    """Gate: at most so many calls failed."""
    max_sequence_gaps: Annotated[int, Ge(0)] | None = None
    """Gate: at most so many calls are missing from the sequence."""
    max_consecutive_same_tool: Annotated[int, Ge(0)] | None = None
    """Gate: at most so many calls repeat the tool of the call before."""
    max_latency_p95_ms: Annotated[float, Ge(0)] | None = None
    """Gate: 95 % of the calls took at most so long."""

    def _score(self, trajectory: Trajectory) -> Outcome:
        names = called_names(trajectory, self._normalise)
        measurements = _measurements(trajectory.calls, names)
        total, failed = len(names), measurements["tool_calls_failed"]
        value = (total - failed) / total if total else 1.0
        gates = (
            ("max_failed", self.max_failed, "tool_calls_failed"),
            ("max_sequence_gaps", self.max_sequence_gaps, "tool_call_sequence_gaps"),
            ("max_consecutive_same_tool", self.max_consecutive_same_tool, "consecutive_same_tool_calls"),
            ("max_latency_p95_ms", self.max_latency_p95_ms, "tool_call_latency_p95_ms"),
        )
        exceeded = {
            gate: f"{gate} is {measurements[measured]:g}{_repeated(gate, names)}, the limit is {limit:g}"
            for gate, limit, measured in gates
            if limit is not None and measurements[measured] > limit
        }
        passed = value >= self.threshold and not exceeded

        def account() -> Account:
            share = f"{failed} of {plural(total, 'tool call')} failed" if total else "No tool was called"
            explanation = f"{'; '.join([share, *exceeded.values()])}."
            details = {"measurements": measurements, "gates_exceeded": [*exceeded.values()]}
            if passed:
                return Account(explanation, details)
            failures = [
                Deviation.at("error", index, trajectory.calls, differences=(Difference((), ABSENT, call.error),))
                for index, call in enumerate(trajectory.calls)
                if call.error is not None
            ]
            limits = map(Deviation.of_limit, filter(_LIMITS.__contains__, exceeded))
            told = [*self._repeats(trajectory.calls, names), *limits]
            return Account(explanation, details, failures, told=told)

        return scored(value, passed, account, mended_by=self._mended_by(measurements))

    def _mended_by(self, measurements: Mapping[str, Any]) -> MendedBy:
        """Return where further calls could mend a failure: they change a share, and never lower these numbers."""
        failed, repeats = measurements["tool_calls_failed"], measurements["consecutive_same_tool_calls"]
        if failed > (0 if self.threshold == 1 else math.inf if self.max_failed is None else self.max_failed):
            return MendedBy.NOTHING
        is_repeating = self.max_consecutive_same_tool is not None and repeats > self.max_consecutive_same_tool
        return MendedBy.BETWEEN if is_repeating else MendedBy.ANY

    def _repeats(self, calls: Sequence[ToolCall], names: Sequence[str]) -> list[Deviation]:
        """Return, where there are too many, the first call too many that repeats the tool of the call before it."""
        repeated = [index for index, (one, other) in enumerate(pairwise(names), 1) if one == other]
        limit = self.max_consecutive_same_tool
        if limit is None or len(repeated) <= limit:
            return []
        return [Deviation.at("rule", repeated[limit], calls, expected=f"max_consecutive_same_tool: {limit}")]


def _repeated(gate: str, names: Sequence[str]) -> str:
    """Return in words which tools were called again right after themselves; nothing for another gate."""
    repeated = [one for one, other in pairwise(names) if one == other]
    return f" ({listed(dict.fromkeys(repeated))})" if gate == "max_consecutive_same_tool" else ""


def _measurements(calls: Sequence[ToolCall], names: Sequence[str]) -> dict[str, Any]:
    totals = dict.fromkeys(sorted(set(names)), 0)
    failures = dict.fromkeys(totals, 0)
    latencies: list[float] = []
    sequence: list[int] = []
    consecutive = failed = 0
    before = None
    for name, call in zip(names, calls, strict=True):
        totals[name] += 1
        consecutive += name == before
        before = name
        if call.error is not None:
            failures[name] += 1
            failed += 1
        if call.was_timed or not call.start_ns:  # calls built by hand start at 0 and have no span
            latencies.append(call.duration_ms)
        if call.sequence is not None:
            sequence.append(call.sequence)
    latencies.sort()
    sequence.sort()
    return {
        "tool_calls_total": len(calls),
        "tool_calls_failed": failed,
        "tool_call_sequence_gaps": sum(max(0, later - earlier - 1) for earlier, later in pairwise(sequence)),
        "all_tool_calls_succeeded": not failed,
        "consecutive_same_tool_calls": consecutive,
        "per_tool_failure_rate": {name: failures[name] / total for name, total in totals.items()},
        "tool_call_latency_p50_ms": _percentile(latencies, 50),
        "tool_call_latency_p95_ms": _percentile(latencies, 95),
    }


def _percentile(found: Sequence[float], percent: int) -> float:
    """Return a percentile of sorted numbers by nearest rank; 0 where there are none."""
    return found[math.ceil(percent / 100 * len(found)) - 1] if found else 0.0
