"""Runs the configured evaluators on a closed trace: trace in, reports out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spanscore.contracts import Evaluator
from spanscore.model import (
    Attributes,
    Evaluation,
    Failed,
    Outcome,
    Report,
    Score,
    Skipped,
    Trace,
    Trajectory,
    Unit,
)
from spanscore.read.reader import DialectReader
from spanscore.read.trajectory import trajectories

MAX_MESSAGE_CHARS: Final = 256

_SAMPLED_BITS: Final = 56  # the random part of a trace id by W3C Trace Context, level 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorEntry:
    """One evaluator as configured: what it is called, what it runs, and on which trajectories."""

    name: str
    type: str
    resolve: Callable[[Trajectory], Evaluator | Skipped | Failed]
    """Returns the evaluator for a trajectory: always the same one, or one made for what this trajectory expects."""
    matches: Callable[[Attributes], bool] | None = None
    sample_ratio: float = 1.0
    ignores: Callable[[str], bool] | None = None
    """Whether calls of this tool are left out before evaluating."""
    reads: frozenset[str] = frozenset()
    """The keys of the attributes that `resolve` and `matches` look at."""

    def applies_to(self, trajectory: Trajectory) -> bool:
        """Return whether the trajectory is among those to evaluate. Sampling is by trace id: all or none of a trace."""
        if self.matches is not None and not self.matches(trajectory.attributes):
            return False
        if self.sample_ratio >= 1.0:
            return True
        randomness = int.from_bytes(trajectory.trace_id[-_SAMPLED_BITS // 8 :], "big")
        return randomness < self.sample_ratio * (1 << _SAMPLED_BITS)


class Pipeline:
    """Reads the trajectories out of a trace and has every evaluator that applies score them.

    An evaluator that raises, or answers what no evaluator may, is reported as `Failed`; the others are not affected.
    """

    def __init__(self, entries: Sequence[EvaluatorEntry], reader: DialectReader, unit: Unit = Unit.TRACE) -> None:
        self.entries: Final = tuple(entries)
        self.reader: Final = reader
        self.unit: Final = unit

    def run(self, trace: Trace) -> tuple[Report, ...]:
        """Return a report for each trajectory of the trace."""
        return tuple(
            Report(
                trajectory=trajectory,
                evaluations=self._evaluations(trajectory),
                close_reason=trace.close_reason,
                revision=trace.revision,
            )
            for trajectory in trajectories(trace, self.reader, self.unit)
        )

    def _evaluations(self, trajectory: Trajectory) -> tuple[Evaluation, ...]:
        return tuple(
            Evaluation(name=entry.name, type=entry.type, outcome=_outcome(entry, trajectory))
            for entry in self.entries
            if entry.applies_to(trajectory)
        )


def _outcome(entry: EvaluatorEntry, trajectory: Trajectory) -> Outcome:
    try:
        evaluator = entry.resolve(trajectory)
        if isinstance(evaluator, (Skipped, Failed)):
            return evaluator
        if entry.ignores is not None:
            kept = tuple(call for call in trajectory.calls if not entry.ignores(call.name))
            trajectory = replace(trajectory, calls=kept, completeness=trajectory.completeness.of(kept))
        return _checked(evaluator.evaluate(trajectory))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the border to plug-ins: their failure stays theirs
        return Failed(type(error).__name__, str(error)[:MAX_MESSAGE_CHARS])


def _checked(outcome: object) -> Outcome:
    """Return what an evaluator answered, or why it cannot be used: a wrong number must never be exported as a score."""
    if isinstance(outcome, Score):
        value: object = outcome.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return Failed(
                "InvalidResult", f"the score's value must be a finite number, not {value!r}"[:MAX_MESSAGE_CHARS]
            )
        if not 0 <= value <= 1:
            return Failed("InvalidResult", f"the score's value must be from 0 to 1, not {value!r}")
        return outcome
    if isinstance(outcome, (Skipped, Failed)):
        return outcome
    kind = type(outcome).__name__
    return Failed("InvalidResult", f"an evaluator answers Score, Skipped or Failed, not {kind!r}")
