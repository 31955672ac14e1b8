"""Runs the configured evaluators on a closed trace: trace in, reports out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from spanscore.model import (
    ConversationOutline,
    Evaluation,
    Failed,
    Outcome,
    Report,
    Skipped,
    Trace,
    Trajectory,
    Unit,
)
from spanscore.model.outcomes import checked, failure
from spanscore.otlp.slices import Steps, at_once
from spanscore.reports.cases import CASE_KEYS, TEST_KEYS
from spanscore.scoring.conversations.held_conversation import ConversationRevision
from spanscore.scoring.conversations.turns import Turn, TurnNeeds, decoded_turn, joined_turns
from spanscore.scoring.doubts import OUTCOMES, Answer, is_doubtful, with_doubts
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.known_outcomes import known_of_conversation, known_of_run
from spanscore.scoring.masked_reports import masked_report
from spanscore.trajectories.masks import Masks
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import Readings
from spanscore.trajectories.trajectory import DialectFailedError, lacks_content, trajectories

_Evaluating: TypeAlias = tuple[EvaluatorEntry, Answer]


class Scoring:
    """A trace whose evaluations may not all be answered yet."""

    def __init__(
        self,
        trace: Trace,
        found: Sequence[tuple[Trajectory, Sequence[_Evaluating]]],
        pipeline: Pipeline,
        conversation: ConversationOutline | None = None,
    ) -> None:
        self.trace: Final = trace
        self._pipeline: Final = pipeline
        self._conversation: Final = conversation
        self._found: Final = found
        self._awaited: Final = [
            outcome for _, evaluating in found for _, outcome in evaluating if not isinstance(outcome, OUTCOMES)
        ]

    @property
    def is_paused(self) -> bool:
        """Whether a run in the trace pauses at its end."""
        return any(trajectory.completeness.paused for trajectory, _ in self._found)

    @property
    def is_done(self) -> bool:
        """Whether every evaluation has an outcome."""
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
        """Return a report for each trajectory of the trace; evaluations without an outcome yet are failures."""
        return self.shown(self.unmasked())

    def shown(self, reports: Iterable[Report]) -> tuple[Report, ...]:
        """Return reports of this trace without masked values."""
        masks = self._pipeline.masks
        return tuple(reports) if masks is None else tuple(masked_report(each, masks) for each in reports)

    def unmasked(self) -> Iterator[Report]:
        """Yield the reports with all values. They are for decisions about the trace, and must not be shown."""
        for trajectory, evaluating in self._found:
            yield Report(
                trajectory=trajectory,
                evaluations=tuple(
                    Evaluation(
                        name=entry.name,
                        type=entry.type,
                        version=entry.version,
                        informational=entry.informational,
                        outcome=self._known(outcome, trajectory),
                    )
                    for entry, outcome in evaluating
                ),
                close_reason=self.trace.close_reason,
                revision=self.trace.revision,
                tool_content=self._pipeline.tool_content,
                unmeasured=self._pipeline.unmeasured,
                conversation=self._conversation,
            )

    def _known(self, answer: Answer, run: Trajectory) -> Outcome:
        if isinstance(answer, OUTCOMES):
            outcome = answer
        elif answer.done():
            outcome = answer.result()
        else:
            outcome = Failed("Abandoned", "there was no time left to wait for the answer")
        if self._conversation is None:
            return known_of_run(outcome, run)
        return known_of_conversation(outcome, run, self._conversation)


class Pipeline:
    """Reads the trajectories out of a trace and has every evaluator that applies score them.

    An evaluator that raises, or returns an invalid outcome, is reported as `Failed`; the others are not affected.

    Args:
        entries: the evaluators.
        reader: reads spans.
        unit: the extent of one trajectory.
        tool_content: whether tool arguments and results may be shown.
        unmeasured: the names of the metrics that are not recorded.
        masks: replaces values in reports, after the evaluation; None for none.
        passed_on: exceptions that are not contained, such as KeyboardInterrupt; empty on threads of no user.
        model_calls: whether model calls, texts and turns are read even if no evaluator needs them.
    """

    def __init__(  # noqa: PLR0913 - the settings of scoring
        self,
        entries: Sequence[EvaluatorEntry],
        reader: DialectReader,
        unit: Unit = Unit.TRACE,
        *,
        tool_content: bool = False,
        unmeasured: frozenset[str] = frozenset(),
        masks: Masks | None = None,
        passed_on: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
        model_calls: bool = False,
    ) -> None:
        self.entries: Final = tuple(entry for entry in entries if entry.over == "run")
        self.over_conversations: Final = tuple(entry for entry in entries if entry.over == "conversation")
        self.reader: Final = reader
        self.unit: Final = unit
        self.tool_content: Final = tool_content
        self.unmeasured: Final = unmeasured
        self.masks: Final = masks
        self._passed_on: Final = passed_on
        self._needs_model_calls: Final = model_calls or any(
            entry.needs_model_calls for entry in (*self.entries, *self.over_conversations)
        )

    @property
    def runs_here(self) -> bool:
        """Whether no evaluator runs in another process."""
        return all(entry.elsewhere is None for entry in self.entries)

    @property
    def turn_needs(self) -> TurnNeeds:
        """The parts of turns that its evaluators over conversations look at, and reports."""
        entries = self.over_conversations
        return TurnNeeds(
            attributes=sorted({*TEST_KEYS, *CASE_KEYS}.union(*(entry.reads for entry in entries))),
            results=self.tool_content or any(entry.needs_results for entry in entries),
        )

    def begin(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> Steps[Scoring]:
        """Run the evaluators that run here, and start the others; on all trajectories, or only the wanted ones.

        Reading a span is one step, and so is each evaluation.
        """
        found: list[tuple[Trajectory, list[_Evaluating]]] = []
        readings = Readings(trace.spans, self.reader)
        yield from readings.read()
        for trajectory in trajectories(
            trace, self.reader, self.unit, model_calls=self._needs_model_calls, readings=readings
        ):
            if wanted is not None and not wanted(trajectory):
                continue
            entries = [each for each in self.entries if each.applies_to(trajectory)]
            found.append((trajectory, (yield from self._evaluating(entries, trajectory))))
        return Scoring(trace, found, self)

    def turn(self, trace: Trace, reports: Sequence[Report]) -> Turn | None:
        """Return a trace, of which these are all reports, as a turn of a conversation; None if it is no agent's.

        A turn is the whole trace, whatever the unit is.
        """
        if not trace.spans or not any(report.trajectory.recognised for report in reports):
            return None
        run = reports[0].trajectory
        if self.unit is not Unit.TRACE or self.masks is not None:  # a turn has the values
            (run,) = trajectories(trace, self.reader, Unit.TRACE, model_calls=self._needs_model_calls)
        start_ns = run.start_ns if run.start_ns is not None else min(span.start_ns for span in trace.spans)
        return Turn(run, start_ns, trace.close_reason)

    def begin_conversation(self, revision: ConversationRevision) -> Steps[Scoring]:
        """Run the evaluators over conversations on one, and start those that run elsewhere.

        Decoding a turn is one step, and so is each evaluation.
        """
        held = revision.conversation
        turns = []
        for content in revision.turns:
            turns.append(decoded_turn(content))
            yield
        joined = joined_turns(turns, continued=held.continued)
        run = joined.trajectory
        last = Trace(trace_id=run.trace_id, spans=(), close_reason=joined.close_reason, revision=revision.number)
        entries = [each for each in self.over_conversations if each.applies_to(run, held.key)]
        evaluating = yield from self._evaluating(entries, run)
        outline = ConversationOutline(
            turns=joined.outline,
            key=held.key,
            finished=revision.finished,
            continued=held.continued,
            unread=joined.unread,
        )
        return Scoring(last, [(run, evaluating)], self, outline)

    def run(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> tuple[Report, ...]:
        """Return a report for each trajectory of the trace that is wanted, when every evaluator has answered."""
        scoring = at_once(self.begin(trace, wanted))
        while not scoring.is_done:
            scoring.wait(None)
        return scoring.reports()

    def _evaluating(self, entries: Iterable[EvaluatorEntry], trajectory: Trajectory) -> Steps[list[_Evaluating]]:
        doubtful = is_doubtful(trajectory)
        found: list[_Evaluating] = []
        for each in entries:
            yield
            if doubtful:
                found.append((each, with_doubts(trajectory, partial(self._evaluated, each))))
            else:
                found.append((each, self._evaluated(each, trajectory)))
        return found

    def _evaluated(self, entry: EvaluatorEntry, trajectory: Trajectory) -> Answer:
        if trajectory.unread is not None:
            return Skipped(trajectory.unread, ("tool calls",) if lacks_content(trajectory.unread) else ())
        try:
            evaluator = entry.resolve(trajectory)
            if isinstance(evaluator, (Skipped, Failed)):
                return evaluator
            if (ignores := entry.ignores) is not None:
                trajectory = trajectory.keeping(i for i, call in enumerate(trajectory.calls) if not ignores(call.name))
            if entry.elsewhere is not None:
                return entry.elsewhere(evaluator, trajectory)
            return checked(evaluator.evaluate(trajectory))
        except self._passed_on:
            raise
        except DialectFailedError as error:
            return Skipped(str(error))
        except BaseException as error:  # noqa: BLE001 - the border to plug-ins: their failure stays theirs
            return failure(error)
