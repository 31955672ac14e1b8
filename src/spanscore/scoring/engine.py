"""The engine: takes spans, and sends reports to every emitter. Both live front doors drive it with their clock."""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeAlias

from spanscore.collect.counts import Counts
from spanscore.collect.remembered import LateReason
from spanscore.collect.table import TraceTable
from spanscore.contracts import Emitter, HoldsSpansBack
from spanscore.contracts.instruments.instrument import Instrument
from spanscore.contracts.instruments.own import EVALUATION_DURATION, SCORE_LATENCY, TRACE_SPAN_COUNT
from spanscore.contracts.instruments.tallies import Tallies
from spanscore.messages.faults import Faults, contained
from spanscore.messages.printable import printable
from spanscore.messages.throttle import Throttle
from spanscore.model import CloseReason, FinishReason, Report, Span, Trace, Trajectory, Unit
from spanscore.scoring.conversation_scoring import ConversationScoring
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.conversations.held_conversation import ConversationRevision
from spanscore.scoring.emission import Emission
from spanscore.scoring.pipeline import Pipeline, Scoring

Clock: TypeAlias = Callable[[], float]
"""Seconds that never run backwards."""

Measure: TypeAlias = Callable[[Instrument, float], None]

_PAUSED: Final = "paused"
"""Stands for the verdict of a run that pauses and was not counted yet."""
_PAUSED_FAILING: Final = "paused, fail"
"""Stands for the verdict of a run that pauses and was counted, because it fails already."""
_PAUSES: Final = frozenset({_PAUSED, _PAUSED_FAILING})

_log = logging.getLogger(__name__)


class Listener(Protocol):
    """Callbacks of an engine."""

    def answered(self) -> None:
        """Called on any thread after an evaluation elsewhere has ended: `settle` or `work` has something to do."""

    def scored(self, trace: Trace) -> None:
        """Called after all reports of a trace were emitted, or if it could not be scored."""

    def gave_up(self, trace_id: bytes) -> None:
        """Called when a run that paused in this trace is waited for no more: further spans will be late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The parts of an engine that its owner provides."""

    listener: Listener | None = None
    measure: Measure = lambda _instrument, _value: None
    """Records the measurements of its own work."""
    dropped: Mapping[str, int] = field(default_factory=Counter)
    """The counts of spans that never reach it, by reason."""


class _UnderWay(NamedTuple):
    scoring: Scoring
    began: float
    revision: ConversationRevision | None = None
    """The conversation that is scored; None for a trace."""


class Engine:
    """Puts spans into traces, has closed traces scored, and hands the reports to all emitters.

    Not thread-safe: it belongs to one owner, a thread or an event loop, which calls `add` with new spans, and `expire`
    when `table.next_due` says so. The same spans give the same reports in every front door. An owner that has other
    things to do calls `take` and `work` instead, and scores a little at a time.

    The engine never blocks for an evaluator that runs elsewhere: the reports of its trace, and later ones, are emitted
    by the first call after its answer, in the order in which their traces were closed.

    A fault of one trace, one evaluator or one emitter affects no other.

    Args:
        table: joins spans to traces.
        pipeline: scores traces.
        emitters: the emitters of reports, by name.
        clock: returns the time in seconds.
        owner: the callbacks and counts of the owner.
        conversations: joins traces to conversations, if configured. Reports of conversations go to the emitters only;
            no method returns them.
    """

    def __init__(  # noqa: PLR0913 - all but the last are always needed
        self,
        table: TraceTable,
        pipeline: Pipeline,
        emitters: Mapping[str, Emitter],
        clock: Clock,
        owner: Owner | None = None,
        *,
        conversations: Conversations | None = None,
    ) -> None:
        owner = owner or Owner()
        self.table: Final = table
        self.pipeline = pipeline
        self.conversations: Final = conversations
        self.emitters: Final = dict(emitters)
        self.tallies: Final = Tallies(dropped=owner.dropped)
        self.backlog = 0
        """The number of spans in traces that are closed and wait for their scores."""
        self._listener: Final = owner.listener
        self._measure: Final = owner.measure
        self._gave_way: Final = Throttle(_tell_gave_way, clock)
        self._too_late: Final = Throttle(_tell_too_late, clock)
        self._faults: Final = Faults(lambda: self.pipeline.tool_content)
        self._emission: Final = Emission(self.emitters, self.tallies, self._faults)
        self._talks: Final = (
            None
            if conversations is None
            else ConversationScoring(conversations, self._emission, self.tallies, self._faults)
        )
        self._clock = clock
        self._closed: Final[deque[Trace]] = deque()
        self._under_way: Final[deque[_UnderWay]] = deque()
        self._unscored: Final[Counter[bytes]] = Counter()
        self._counted_before: Final[set[bytes]] = set()
        """Traces with closings that emitters have counted before a restart, and that are still to be repeated."""
        self._has_known = False
        self._unknown: str | None = None
        """Why the first trace was not scored in which no agent is known."""

    def reload(self, pipeline: Pipeline, is_root: Callable[[Span], bool]) -> None:
        """Use another configuration from now on, also for open traces; the rule for root spans may change, too."""
        self.pipeline = pipeline
        if self.conversations is not None:
            self.conversations.needs = pipeline.turn_needs
        self.table.is_root = is_root

    def note_counted(self, trace_ids: Iterable[bytes]) -> None:
        """Note traces that were scored before a restart and are kept: `AtMostOnce` emitters have had their reports."""
        self._counted_before.update(trace_ids)

    def repeat_closing(self, trace_id: bytes, *, is_last: bool) -> None:
        """Close a trace where it was closed before a restart; `work` scores it. After the last time, count it again."""
        self._enqueue(filter(None, [self.table.close(trace_id, CloseReason.TIMED_OUT)]))
        if is_last:
            self._counted_before.discard(trace_id)

    def add(self, spans: Collection[Span], sizes: Iterable[int] | None = None) -> tuple[Report, ...]:
        """Take in spans and emit the reports of the traces that this completes."""
        return self._score(self.table.add(spans, self._clock(), sizes))

    def take(self, spans: Collection[Span], sizes: Iterable[int], received_at: float | None = None) -> None:
        """Take spans; `work` scores the traces that they complete.

        Args:
            spans: the spans.
            sizes: the size of each in bytes.
            received_at: the time of their receipt, on the clock; now by default.
        """
        now = self._clock() if received_at is None else received_at
        self._enqueue(self.table.add(spans, now, sizes, close_due=False))

    def work(self, until: float, now: float | None = None) -> bool:
        """Close and score due traces, one by one; return whether nothing is left to do.

        At least one step is done, even after `until`. A trace that is due stays open until its turn comes.

        Args:
            until: the time to stop, on the clock.
            now: the time for traces; the clock's by default.
        """
        while True:
            if self._under_way and self._under_way[0].scoring.is_done:
                self._emit_next()
            elif self._closed:
                self._begin_next()
            elif self.table.is_due(at := self._clock() if now is None else now):
                self._enqueue(self.table.expire(at, most=1))
            elif self.conversations is not None and self.conversations.is_due(at):
                self._begin_conversations(self.conversations.expire(at, most=1))
            else:
                return True
            if self._clock() >= until:
                return False

    def started(self, trace_id: bytes, span_id: bytes) -> tuple[Report, ...]:
        """Learn that a span is running: its trace waits for it."""
        return self._score(self.table.started(trace_id, span_id, self._clock()))

    def expire(self) -> tuple[Report, ...]:
        """Emit the reports of the traces that are due, and of the conversations."""
        reports = self._score(self.table.expire(self._clock()))
        if self.conversations is not None:
            self._begin_conversations(self.conversations.expire(self._clock()))
            reports += self.settle()
        return reports

    def next_due(self) -> float | None:
        """Return when to call `expire` next; None when no trace and no conversation is open."""
        due = self.table.next_due()
        idle = None if self.conversations is None else self.conversations.next_due()
        return due if idle is None else idle if due is None else min(due, idle)

    def finish_conversations(self, until: float) -> None:
        """Finish open conversations until the time `until`, because no further turn comes to this process.

        Nothing is done if they are kept for the next process. Call `settle_all` first: the reports of a trace make it
        a turn.
        """
        if self.conversations is None or self.conversations.journal is not None:
            return
        for revision in self.conversations.finish(FinishReason.SHUTDOWN):
            self._begin_conversations([revision])
            self.settle()
            if self._clock() >= until:
                break
        self.settle_all(max(0.0, until - self._clock()))

    def drain(self, until: float = math.inf) -> tuple[Report, ...]:
        """Close every open trace, because nothing more comes, and score as many as there is time for."""
        return self._score(self.table.drain(), until)

    def cut_short(self, until: float = math.inf, only: Iterable[bytes] | None = None) -> tuple[Report, ...]:
        """Close open traces, all or only these, before they are due, and score closed traces until the time `until`.

        They are incomplete: further spans may be on their way. Call `close_due` first.
        """
        return self._score(self.table.cut_short(only), until)

    def close_due(self) -> None:
        """Close the traces that are due, and leave it to `work` or `cut_short` to score them."""
        self._enqueue(self.table.expire(self._clock()))

    def let_go(self, trace_ids: Collection[bytes]) -> None:
        """Let emitters discard the spans of these traces that they hold back: the next owner sends them on."""
        for emitter in self.emitters.values():
            if isinstance(emitter, HoldsSpansBack):
                contained(emitter, partial(emitter.give_up, trace_ids))

    def evict(self, trace_id: bytes) -> None:
        """Close a trace, if it is open, because it has no room elsewhere, and leave it to `work` to score it."""
        self._enqueue(filter(None, [self.table.close(trace_id, CloseReason.EVICTED)]))

    def waiting(self) -> list[bytes]:
        """Return the traces that are open, or closed and not scored yet."""
        return [*self.table.open_traces(), *(trace.trace_id for trace in self._closed)]

    def is_open(self, trace_id: bytes) -> bool:
        """Return whether a trace waits for its end, or for its scores."""
        return trace_id in self._unscored or self.table.is_open(trace_id)

    def settle(self) -> tuple[Report, ...]:
        """Emit the reports whose evaluations are all answered, up to the first that is not."""
        reports: list[Report] = []
        while self._under_way and self._under_way[0].scoring.is_done:
            reports += self._emit_next()
        return tuple(reports)

    def settle_all(self, timeout_s: float) -> tuple[Report, ...]:
        """Wait for the evaluations under way, at most so long, and emit their reports."""
        deadline = self._clock() + timeout_s
        reports = list(self.settle())
        while self._under_way and self._under_way[0].scoring.wait(max(0.0, deadline - self._clock())):
            reports += self.settle()
        return tuple(reports)

    def counts(self) -> Counts:
        """Return the counts of every span and trace so far, by outcome."""
        return self.table.counts()

    def flush(self, timeout_s: float) -> bool:
        """Flush every emitter; True if everything was sent within the timeout."""
        return self._emission.finish("flush", self._clock, timeout_s) and not self._under_way

    def close(self, timeout_s: float) -> bool:
        """Close every emitter; True when all that was queued went out within the timeout."""
        deadline = self._clock() + timeout_s
        self._gave_way.close()
        self._too_late.close()
        self.settle_all(timeout_s)
        if self._unknown is not None and not self._has_known:
            _log.warning("spanscore: no trace was scored, of %d: %s", self.tallies.unrecognised, self._unknown)
        in_time = not self._under_way
        while self._under_way:
            self._emit_next()
        self.finish_conversations(deadline)
        while self._under_way:
            self._emit_next()
        if self.conversations is not None and (left := self.conversations.counts().open):
            if self.conversations.journal is None:
                _log.warning("conversations for whose scores there was no time: %d", left)
            else:
                _log.info("conversations that stay on disk for the next start: %d", left)
        return self._emission.finish("close", self._clock, max(0.0, deadline - self._clock())) and in_time

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The emitters that did not send everything when they were flushed or closed."""
        return self._emission.unfinished

    def _score(self, traces: Iterable[Trace], until: float = math.inf) -> tuple[Report, ...]:
        """Score these traces and all closed ones, until the time `until`."""
        self._enqueue(traces)
        reports = [*self.settle()]
        while self._closed and self._clock() < until:
            self._begin_next()
            reports += self.settle()
        return tuple(reports)

    def _enqueue(self, traces: Iterable[Trace]) -> None:
        for trace in traces:
            self._closed.append(trace)
            if trace.trace_id in self._counted_before:
                self._emission.counted.add((trace.trace_id, trace.revision))
            self.backlog += len(trace.spans)
            self._unscored[trace.trace_id] += 1
        while self.table.evicted:
            self._gave_way.note(*self.table.evicted.popitem())
        while self.table.too_late:
            if self.pipeline.reader.read(self.table.too_late.pop()) is not None:
                self._too_late.note(LateReason.NOT_KEPT)
        self._gave_way.tell_due()
        self._too_late.tell_due()
        self._note_given_up()

    def _note_given_up(self) -> None:
        while self.table.given_up:
            trace_id = self.table.given_up.pop()
            if self._listener is not None:
                self._listener.gave_up(trace_id)

    def _wait_no_more(self, trace: Trace) -> None:
        self.backlog -= len(trace.spans)
        self._unscored[trace.trace_id] -= 1
        if not self._unscored[trace.trace_id]:
            del self._unscored[trace.trace_id]

    def _begin_next(self) -> None:
        trace = self._closed.popleft()
        began = self._clock()
        try:
            scoring = self.pipeline.begin(trace)
        except BaseException as error:  # noqa: BLE001 - a fault in one trace must not cost another
            self._wait_no_more(trace)
            self._faults.contain(error, "a trace could not be scored")
            self.tallies.evaluation_errors["", type(error).__name__] += 1
            if self._listener is not None:
                self._listener.scored(trace)
            return
        finally:
            if self.pipeline.reader.failures:
                self._note_failed_dialects()
        if scoring.is_paused:
            self.table.hold(trace)
            self._note_given_up()
        self._under_way.append(_UnderWay(scoring, began))
        self._await(scoring)

    def _await(self, scoring: Scoring) -> None:
        if not scoring.is_done and self._listener is not None:
            scoring.when_answered(self._listener.answered)

    def _begin_conversations(self, revisions: Iterable[ConversationRevision]) -> None:
        if self._talks is not None:
            for scoring, revision in self._talks.begun(revisions, self.pipeline):
                self._under_way.append(_UnderWay(scoring, self._clock(), revision))
                self._await(scoring)

    def _note_failed_dialects(self) -> None:
        failures = self.pipeline.reader.failures
        for (name, error), count in failures.items():
            self.tallies.dialect_errors[name, error] += count
            self._faults.tell_once(f"dialect {name!r} failed on a span: {error}; its traces are not scored")
        failures.clear()

    def _emit_next(self) -> tuple[Report, ...]:
        scoring, began, revision = self._under_way.popleft()
        if revision is not None:
            if self._talks is not None:
                self._talks.emit(scoring, revision)
            return ()
        trace = scoring.trace
        self._wait_no_more(trace)
        continues = not _PAUSES.isdisjoint(trace.verdicts.values())
        reports = tuple(
            # The traces of others are left alone: nothing is said of one in which no agent is known.
            self._noted(trace, report, continues=continues)
            if report.trajectory.recognised
            else replace(report, evaluations=())
            for report in scoring.reports()
        )
        if trace.spans:
            self._measure(EVALUATION_DURATION, self._clock() - began)
            self._measure(TRACE_SPAN_COUNT, len(trace.spans))
        for report in reports:
            if report.trajectory.recognised:
                self._has_known |= not report.revision
            elif not report.revision:
                self._note_unknown(report.trajectory)
            self._emission.emit(report, trace.trace_id)
        if trace.root_received_at is not None and not trace.revision:
            self._measure(SCORE_LATENCY, self._clock() - trace.root_received_at)
        # A closing that is repeated after a restart is a turn already, or was one of a conversation that is finished.
        if self._talks is not None and not self._emission.is_counted(trace):
            self._begin_conversations(self._talks.joined(trace, reports, self.pipeline, self._clock()))
        if self._listener is not None:
            self._listener.scored(trace)
        return reports

    def _noted(self, trace: Trace, report: Report, *, continues: bool) -> Report:
        """Note the verdict of a run for its next revision, and return the report, marked if the run was not counted.

        That is if the run has only paused, or if it is new in a trace that continues after a pause.
        """
        run = report.trajectory.root_span_id if report.trajectory.unit is Unit.AGENT else b""
        before = trace.verdicts.get(run)
        pauses = bool(report.trajectory.completeness.paused)
        if pauses and not report.failing:
            trace.verdicts.setdefault(run, _PAUSED)
            return report
        only_paused = before in _PAUSES
        trace.verdicts[run] = _PAUSED_FAILING if pauses and (only_paused or before is None) else report.verdict
        counted = "fail" if before == _PAUSED_FAILING else before
        if counted not in {None, _PAUSED, report.verdict}:
            self.tallies.revised[counted, report.verdict] += 1
        if only_paused:
            return replace(report, paused_before=before == _PAUSED, resumed=not pauses)
        return replace(report, paused_before=True) if continues and before is None else report

    def _note_unknown(self, trajectory: Trajectory) -> None:
        self.tallies.unrecognised += 1
        if self._unknown is None:
            self._unknown = printable(trajectory.unread or "")
            _log.info("a trace is not scored: %s; further ones are only counted", self._unknown)


def _tell_too_late(_kind: LateReason, count: int) -> None:
    _log.warning(
        "spans of agents that arrived after their trace was scored and removed from memory are in no score: %d; raise "
        "traces.decision_delay, or traces.trace_timeout for traces whose root is not received",
        count,
    )


def _tell_gave_way(limit: str, count: int) -> None:
    _log.warning("open traces closed and scored as incomplete, as traces.%s is reached: %d", limit, count)
