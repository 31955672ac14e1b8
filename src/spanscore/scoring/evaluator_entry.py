"""A configured evaluator: the entry of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from spanscore.contracts import Evaluator
from spanscore.model import Attributes, Failed, Skipped, Trajectory
from spanscore.scoring.doubts import PendingOutcome

_SAMPLED_BITS: Final = 56  # the random part of a trace id by W3C Trace Context, level 2


Elsewhere: TypeAlias = Callable[[Evaluator, Trajectory], PendingOutcome]
"""Has an evaluator run in another process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorEntry:
    """One configured evaluator: its name, its type, and the trajectories that it applies to."""

    name: str
    type: str
    resolve: Callable[[Trajectory], Evaluator | Skipped | Failed]
    """Returns the evaluator for a trajectory: always the same one, or one for the expectation of this trajectory."""
    version: str | None = None
    """Of the distribution that the evaluator comes from."""
    matches: Callable[[Attributes], bool] | None = None
    sample_ratio: float = 1.0
    informational: bool = False
    """Whether its scores are only measured, and never fail a run."""
    ignores: Callable[[str], bool] | None = None
    """Returns whether calls of a tool are left out before evaluating."""
    ignore_tools: tuple[str, ...] = ()
    """The configured names and globs of `ignores`."""
    reads: frozenset[str] = frozenset()
    """The keys of the attributes that `resolve` and `matches` look at."""
    needs_model_calls: bool = False
    """Whether the evaluator reads requests to models, or the texts that were sent to them."""
    needs_results: bool = True
    """Whether the evaluator reads the results of tools."""
    match: Mapping[str, str] = field(default_factory=dict)
    """The configured condition of `matches`: globs by attribute."""
    time_limit_s: float | None = None
    """The time limit of one evaluation, in seconds; None for no limit."""
    elsewhere: Elsewhere | None = None
    """Runs the evaluator with the time limit elsewhere; None if it runs here."""
    over: Literal["run", "conversation"] = "run"
    """The extent of the trajectories that it evaluates."""

    def applies_to(self, trajectory: Trajectory, sampled_by: bytes | None = None) -> bool:
        """Return whether to evaluate the trajectory.

        Sampling is by trace id, all or none of a trace, or by other bytes that are as random.
        """
        if self.matches is not None and not self.matches(trajectory.attributes):
            return False
        if self.sample_ratio >= 1.0:
            return True
        random = trajectory.trace_id if sampled_by is None else sampled_by
        randomness = int.from_bytes(random[-_SAMPLED_BITS // 8 :], "big")
        return randomness < self.sample_ratio * (1 << _SAMPLED_BITS)
