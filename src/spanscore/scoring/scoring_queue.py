"""Closed traces and conversations that wait for their scores, and those whose evaluations are not answered yet."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from spanscore.collect.table import TraceTable
from spanscore.contracts.instruments.own import EVALUATION_DURATION, SCORE_LATENCY, TRACE_SPAN_COUNT
from spanscore.contracts.instruments.tallies import Tallies
from spanscore.messages.faults import Faults
from spanscore.model import Report, Trace
from spanscore.otlp.slices import Steps
from spanscore.scoring.ahead import NOT_SCORED, Ahead
from spanscore.scoring.conversation_scoring import ConversationScoring
from spanscore.scoring.conversations.held_conversation import ConversationRevision
from spanscore.scoring.emission import Emission
from spanscore.scoring.owner import Clock, Keeps, Measure, Owner
from spanscore.scoring.pipeline import Pipeline, Scoring
from spanscore.scoring.run_verdicts import with_verdicts
from spanscore.scoring.unscored import Unscored


class _Beginning(NamedTuple):
    trace: Trace
    began: float
    steps: Steps[Scoring]


class _Conversation(NamedTuple):
    revision: ConversationRevision
    steps: Steps[Scoring]


class _UnderWay(NamedTuple):
    scoring: Scoring
    began: float
    revision: ConversationRevision | None = None
    """The conversation that is scored; None for a trace."""


class ScoringQueue:
    """Scores closed traces and emits their reports, in the order in which they were closed. Never blocks by itself.

    A trace is scored when its turn comes, in steps, so that others wait for one evaluation at most. Its reports are
    emitted when all of its evaluations are answered, and those of the traces before it are emitted.

    Args:
        pipeline: scores traces; may be replaced later.
        table: keeps the spans of traces whose runs pause.
        emission: the emitters.
        talks: scores conversations, if configured.
        clock: returns the time in seconds.
        measure: records how long an evaluation takes, and when a trace is scored.
        tallies: counts traces that cannot be scored, and verdicts that were revised.
        faults: logs why a trace cannot be scored.
        keep: decides whether a trace is kept, before its reports are emitted; None if that is not configured.
    """

    def __init__(  # noqa: PLR0913 - the parts of an engine
        self,
        pipeline: Pipeline,
        table: TraceTable,
        emission: Emission,
        talks: ConversationScoring | None,
        *,
        clock: Clock,
        measure: Measure,
        tallies: Tallies,
        faults: Faults,
        keep: Keeps | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.backlog = 0
        """The number of spans in traces that are closed and wait for their scores."""
        self.waiting: Final[dict[bytes, int]] = {}
        """The number of closings that wait for their scores, by trace."""
        self.owner = Owner()
        """The callbacks of the owner, who sets them before the first span."""
        self.ahead: Ahead | None = None
        """Scores traces before they are due; set by an owner that has idle times."""
        self.unscored: Final = Unscored(tallies, faults, clock)
        self._table: Final = table
        self._emission: Final = emission
        self._talks: Final = talks
        self._clock: Final = clock
        self._measure: Final = measure
        self._tallies: Final = tallies
        self._faults: Final = faults
        self._keep: Final = keep
        self._closed: Final[deque[Trace]] = deque()
        self._beginning: _Beginning | None = None
        """The trace whose evaluations are being begun."""
        self._conversations: Final[deque[_Conversation]] = deque()
        """The conversations whose evaluations are to be begun, the first of them perhaps in part."""
        self._under_way: Final[deque[_UnderWay]] = deque()

    @property
    def is_done(self) -> bool:
        """Whether no evaluation is under way."""
        return not self._under_way and not self._conversations

    def not_begun(self) -> list[bytes]:
        """Return the closed traces that are not scored yet."""
        beginning = () if self._beginning is None else (self._beginning.trace,)
        return [trace.trace_id for trace in (*beginning, *self._closed)]

    def put(self, traces: Iterable[Trace]) -> None:
        """Take in the traces that the table has closed."""
        for trace in traces:
            self._closed.append(trace)
            if trace.trace_id in self._emission.counted_before:
                self._emission.counted.add((trace.trace_id, trace.revision))
            self.backlog += len(trace.spans)
            self.waiting[trace.trace_id] = self.waiting.get(trace.trace_id, 0) + 1
            if self._keep is not None:
                self._keep.closed(trace.trace_id)
        self.unscored.note_lost(self._table, self.pipeline.reader)
        self._note_given_up()

    def put_conversations(self, revisions: Iterable[ConversationRevision]) -> None:
        """Take in conversations to score, before further traces."""
        if self._talks is not None:
            for revision in revisions:
                self._conversations.append(_Conversation(revision, self._talks.begin(revision, self.pipeline)))

    def step(self, until: float = -math.inf) -> bool:
        """Emit the reports of a trace, or score one; False if there is nothing to do.

        Scoring a trace stops between two of its steps at the time `until`, after at least one step.
        """
        if self._under_way and self._under_way[0].scoring.is_done:
            self._emit_next()
        elif self._conversations:
            self._begin_conversation()
        else:
            return self._begin_next(until)
        return True

    def score(self, until: float) -> tuple[Report, ...]:
        """Score closed traces until the time `until`, and return the reports that were emitted."""
        reports = [*self.settle()]
        while self._clock() < until and self._begin_next(until):
            reports += self.settle()
        return tuple(reports)

    def settle(self) -> tuple[Report, ...]:
        """Emit the reports whose evaluations are all answered, up to the first that is not.

        Conversations that wait are begun.
        """
        reports: list[Report] = []
        self._begin_conversations()
        while self._under_way and self._under_way[0].scoring.is_done:
            reports += self._emit_next()
            self._begin_conversations()
        return tuple(reports)

    def settle_all(self, timeout_s: float) -> tuple[Report, ...]:
        """Wait for the evaluations under way, at most so long, and emit their reports."""
        deadline = self._clock() + timeout_s
        reports = list(self.settle())
        while self._under_way and self._under_way[0].scoring.wait(max(0.0, deadline - self._clock())):
            reports += self.settle()
        return tuple(reports)

    def emit_all(self) -> None:
        """Emit the reports of all evaluations under way; those without an answer have failed."""
        self._begin_conversations()
        while self._under_way:
            self._emit_next()
            self._begin_conversations()

    def _note_given_up(self) -> None:
        while self._table.past.given_up:
            self.owner.gave_up(self._table.past.given_up.pop())

    def _wait_no_more(self, trace: Trace) -> None:
        self.backlog -= len(trace.spans)
        if left := self.waiting.pop(trace.trace_id) - 1:
            self.waiting[trace.trace_id] = left

    def _begin_next(self, until: float) -> bool:
        """Begin the evaluations of the next closed trace, as far as there is time; False if there is no such trace."""
        if self._beginning is None:
            if not self._closed:
                return False
            trace = self._closed.popleft()
            if self.ahead is not None and (scored := self.ahead.scored(trace, self.pipeline)) is not None:
                self.unscored.note_failures(scored.failures)
                self._begun(scored.scoring, self._clock() - scored.took_s)
                return True
            self._beginning = _Beginning(trace, self._clock(), self.pipeline.begin(trace))
        trace, began, steps = self._beginning
        try:
            next(steps)
            while self._clock() < until:
                next(steps)
        except StopIteration as done:
            self._beginning = None
            self._begun(done.value, began)
        except BaseException as error:  # noqa: BLE001 - a fault in one trace must not cost another
            self._beginning = None
            self._wait_no_more(trace)
            self._faults.contain(error, NOT_SCORED)
            self._tallies.evaluation_errors["", type(error).__name__] += 1
            if self._keep is not None:
                self._keep.decide(trace, None)
            self.owner.scored(trace.trace_id)
        finally:
            self.unscored.note_failures(self.pipeline.reader.failures)
        return True

    def _begin_conversations(self) -> None:
        while self._conversations:
            self._begin_conversation()

    def _begin_conversation(self) -> None:
        revision, steps = self._conversations[0]
        try:
            next(steps)
        except StopIteration as done:
            self._conversations.popleft()
            self._begun(done.value, self._clock(), revision)
        except BaseException as error:  # noqa: BLE001 - as above
            self._conversations.popleft()
            if self._talks is not None:
                self._talks.failed(revision, error)

    def _begun(self, scoring: Scoring, began: float, revision: ConversationRevision | None = None) -> None:
        trace = scoring.trace
        if revision is None and scoring.is_paused:
            self._table.past.hold(trace.trace_id, trace.revision)
            self._note_given_up()
            if self._table.past.is_paused(trace.trace_id):
                self.owner.paused(trace.trace_id)
        self._under_way.append(_UnderWay(scoring, began, revision))
        if not scoring.is_done:
            scoring.when_answered(self.owner.answered)

    def _emit_next(self) -> tuple[Report, ...]:
        scoring, began, revision = self._under_way.popleft()
        if revision is not None:
            if self._talks is not None:
                self._talks.emit(scoring, revision)
            return ()
        trace = scoring.trace
        self._wait_no_more(trace)
        reports = tuple(with_verdicts(trace, scoring.unmasked(), self._tallies.revised))
        if trace.spans:
            self._measure(EVALUATION_DURATION, self._clock() - began)
            self._measure(TRACE_SPAN_COUNT, len(trace.spans))
        decision = None if self._keep is None else self._keep.decide(trace, reports)
        reports = scoring.shown(reports if decision is None else [replace(each, keep=decision) for each in reports])
        for report in reports:
            self.unscored.note_recognised(report)
            self._emission.emit(report, trace.trace_id)
        if trace.root_received_at is not None and not trace.revision:
            self._measure(SCORE_LATENCY, self._clock() - trace.root_received_at)
        # A closing that is repeated after a restart is a turn already, or was one of a conversation that is finished.
        if self._talks is not None and not self._emission.is_counted(trace):
            self.put_conversations(self._talks.joined(trace, reports, self.pipeline, self._clock()))
        self.owner.scored(trace.trace_id)
        return reports
