"""Runs the configured evaluators on a closed trace: trace in, reports out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias

from spanscore.contracts import Evaluator
from spanscore.model import (
    Attributes,
    Evaluation,
    Failed,
    Outcome,
    Report,
    Score,
    Skipped,
    Span,
    Trace,
    Trajectory,
    Unit,
)
from spanscore.model.outcomes import checked, failure
from spanscore.reading.reader import DialectReader
from spanscore.reading.slimming import Slimming
from spanscore.reading.trajectory import DialectFailedError, trajectories

REFUSED: Final = "a span of this run was refused"
"""Why an evaluation of a run is skipped that lacks a span or a log record."""
MISSING: Final = "a span of this run that others name as their parent was not received"
"""Why an evaluation of a run is skipped of which a span was lost before it came here."""

_OUTCOMES: Final = (Score, Skipped, Failed)
_SAMPLED_BITS: Final = 56  # the random part of a trace id by W3C Trace Context, level 2


class Answer(Protocol):
    """What an evaluator that runs elsewhere will have answered; a `concurrent.futures.Future` is one."""

    def done(self) -> bool:
        """Return whether the answer is here."""

    def result(self, timeout: float | None = None, /) -> Outcome:
        """Wait for the answer. Raises TimeoutError when it does not come in time."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Have something called when the answer is here, on any thread."""


Elsewhere: TypeAlias = Callable[[Evaluator, Trajectory], Answer]
"""Has an evaluator run in another process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorEntry:
    """One evaluator as configured: what it is called, what it runs, and on which trajectories."""

    name: str
    type: str
    resolve: Callable[[Trajectory], Evaluator | Skipped | Failed]
    """Returns the evaluator for a trajectory: always the same one, or one made for what this trajectory expects."""
    version: str | None = None
    """Of the distribution that the evaluator comes from."""
    matches: Callable[[Attributes], bool] | None = None
    sample_ratio: float = 1.0
    informational: bool = False
    """Whether its scores are measured only, and decide nothing."""
    ignores: Callable[[str], bool] | None = None
    """Whether calls of this tool are left out before evaluating."""
    reads: frozenset[str] = frozenset()
    """The keys of the attributes that `resolve` and `matches` look at."""
    needs_model_calls: bool = False
    """Whether the evaluator looks at requests to models, or at the texts that those were sent."""
    needs_results: bool = True
    """Whether the evaluator looks at what tools returned."""
    match: Mapping[str, str] = field(default_factory=dict)
    """What `matches` looks for, as the configuration has it: globs by attribute."""
    time_limit_s: float | None = None
    """How long one evaluation may take; None where it needs no limit."""
    elsewhere: Elsewhere | None = None
    """What keeps the time limit; None where the evaluator is run here."""

    def applies_to(self, trajectory: Trajectory) -> bool:
        """Return whether the trajectory is among those to evaluate. Sampling is by trace id: all or none of a trace."""
        if self.matches is not None and not self.matches(trajectory.attributes):
            return False
        if self.sample_ratio >= 1.0:
            return True
        randomness = int.from_bytes(trajectory.trace_id[-_SAMPLED_BITS // 8 :], "big")
        return randomness < self.sample_ratio * (1 << _SAMPLED_BITS)


_Evaluating: TypeAlias = tuple[EvaluatorEntry, Outcome | Answer]


class Scoring:
    """A trace whose evaluations may not all be answered yet."""

    def __init__(
        self,
        trace: Trace,
        found: Sequence[tuple[Trajectory, Sequence[_Evaluating]]],
        *,
        tool_content: bool = False,
        unmeasured: frozenset[str] = frozenset(),
    ) -> None:
        self.trace: Final = trace
        self._tool_content: Final = tool_content
        self._unmeasured: Final = unmeasured
        self._found: Final = found
        self._awaited: Final = [
            outcome for _, evaluating in found for _, outcome in evaluating if not isinstance(outcome, _OUTCOMES)
        ]

    @property
    def is_done(self) -> bool:
        """Whether every evaluation is answered."""
        return not self._awaited or all(answer.done() for answer in self._awaited)

    def when_answered(self, callback: Callable[[], None]) -> None:
        """Have something called, on any thread, for each answer that is still to come."""
        for answer in self._awaited:
            answer.add_done_callback(lambda _: callback())

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for the next answer that is missing; False when it does not come in time."""
        missing = next((answer for answer in self._awaited if not answer.done()), None)
        try:
            if missing is not None:
                missing.result(timeout_s)
        except TimeoutError:
            return False
        return True

    def reports(self) -> tuple[Report, ...]:
        """Return a report for each trajectory of the trace; what is not answered yet has failed."""
        return tuple(
            Report(
                trajectory=trajectory,
                evaluations=tuple(
                    Evaluation(
                        name=entry.name,
                        type=entry.type,
                        version=entry.version,
                        informational=entry.informational,
                        outcome=_known(outcome if isinstance(outcome, _OUTCOMES) else _answered(outcome), trajectory),
                    )
                    for entry, outcome in evaluating
                ),
                close_reason=self.trace.close_reason,
                revision=self.trace.revision,
                tool_content=self._tool_content,
                unmeasured=self._unmeasured,
            )
            for trajectory, evaluating in self._found
        )


class Pipeline:
    """Reads the trajectories out of a trace and has every evaluator that applies score them.

    An evaluator that raises, or answers what no evaluator may, is reported as `Failed`; the others are not affected.

    Args:
        entries: the evaluators.
        reader: reads spans.
        unit: what one trajectory is.
        tool_content: whether tool arguments and results may be shown.
        unmeasured: the names of the metrics that are not recorded.
        passed_on: what is let pass, as it is not an evaluator's; nothing on a thread that no user interrupts.
        model_calls: whether model calls, texts and turns are read though no evaluator needs them.
        slimming: takes out of spans what need not be kept for this; without it, all is.
    """

    def __init__(  # noqa: PLR0913 - what a configuration says of scoring
        self,
        entries: Sequence[EvaluatorEntry],
        reader: DialectReader,
        unit: Unit = Unit.TRACE,
        *,
        tool_content: bool = False,
        unmeasured: frozenset[str] = frozenset(),
        passed_on: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
        model_calls: bool = False,
        slimming: Slimming | None = None,
    ) -> None:
        self.entries: Final = tuple(entries)
        self.reader: Final = reader
        self.unit: Final = unit
        self.tool_content: Final = tool_content
        self.unmeasured: Final = unmeasured
        self._passed_on: Final = passed_on
        self.slimming: Final = slimming
        self._needs_model_calls: Final = model_calls or any(entry.needs_model_calls for entry in self.entries)

    def slimmed(self, spans: Collection[Span], sizes: Iterable[int] | None) -> Iterable[int] | None:
        """Take out of spans what need not be kept, and return the sizes of what is left, where they are known."""
        return sizes if self.slimming is None or sizes is None else self.slimming.slim(spans, sizes)

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Scoring:
        """Run the evaluators that run here, and have those begin that run elsewhere; on all trajectories, or some."""
        return Scoring(
            trace,
            [
                (
                    trajectory,
                    [(each, self._outcome(each, trajectory)) for each in self.entries if each.applies_to(trajectory)],
                )
                for trajectory in self._trajectories(trace)
                if wanted is None or wanted(trajectory)
            ],
            tool_content=self.tool_content,
            unmeasured=self.unmeasured,
        )

    def _trajectories(self, trace: Trace) -> tuple[Trajectory, ...]:
        if not trace.spans:
            return ()
        return trajectories(trace, self.reader, self.unit, model_calls=self._needs_model_calls)

    def run(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> tuple[Report, ...]:
        """Return a report for each trajectory of the trace that is wanted, when every evaluator has answered."""
        scoring = self.begin(trace, wanted)
        while not scoring.is_done:
            scoring.wait(None)
        return scoring.reports()

    def _outcome(self, entry: EvaluatorEntry, trajectory: Trajectory) -> Outcome | Answer:
        if trajectory.unread is not None:
            return Skipped(trajectory.unread)
        try:
            evaluator = entry.resolve(trajectory)
            if isinstance(evaluator, (Skipped, Failed)):
                return evaluator
            if entry.ignores is not None:
                kept = tuple(call for call in trajectory.calls if not entry.ignores(call.name))
                trajectory = replace(trajectory, calls=kept, completeness=trajectory.completeness.of(kept))
            if entry.elsewhere is not None:
                return entry.elsewhere(evaluator, trajectory)
            return checked(evaluator.evaluate(trajectory))
        except self._passed_on:
            raise
        except DialectFailedError as error:
            return Skipped(str(error))
        except BaseException as error:  # noqa: BLE001 - the border to plug-ins: their failure stays theirs
            return failure(error)


def _known(outcome: Outcome, trajectory: Trajectory) -> Outcome:
    """Return an outcome as far as the run is known: without some of its spans, lasting failures and errors stay."""
    seen = trajectory.completeness
    lacks = REFUSED if seen.spans_refused else MISSING if seen.spans_missing else None
    if lacks is None or not isinstance(outcome, Score):
        return outcome
    return Skipped(lacks) if outcome.passed or outcome.mended_by else outcome


def _answered(answer: Answer) -> Outcome:
    return answer.result() if answer.done() else Failed("Abandoned", "there was no time left to wait for the answer")
