"""The engine: takes spans, and sends reports to every emitter. Both live front doors drive it with their clock."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

from spanscore.collect.counts import Counts
from spanscore.collect.table import TraceTable
from spanscore.contracts import Emitter, HoldsSpansBack
from spanscore.contracts.instruments.tallies import Tallies
from spanscore.messages.faults import Faults, contained
from spanscore.model import CloseReason, FinishReason, Report, Span, Trace
from spanscore.scoring.conversation_scoring import ConversationScoring
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.emission import Emission
from spanscore.scoring.owner import Clock, Keeps, Measure
from spanscore.scoring.pipeline import Pipeline
from spanscore.scoring.scoring_queue import ScoringQueue

_log = logging.getLogger(__name__)


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
        measure: records measurements, if that is wanted.
        dropped: the counts of spans that never reach the engine, by reason.
        conversations: joins traces to conversations, if configured. Reports of conversations go to the emitters only;
            no method returns them.
        keep: decides whether the spans of a trace are sent on, if configured.
    """

    def __init__(  # noqa: PLR0913 - all but the last are always needed
        self,
        table: TraceTable,
        pipeline: Pipeline,
        emitters: Mapping[str, Emitter],
        clock: Clock,
        *,
        measure: Measure | None = None,
        dropped: Mapping[str, int] | None = None,
        conversations: Conversations | None = None,
        keep: Keeps | None = None,
    ) -> None:
        self.table: Final = table
        self.conversations: Final = conversations
        self.emitters: Final = dict(emitters)
        self.tallies: Final = Tallies(dropped=Counter() if dropped is None else dropped)
        self._clock = clock
        self.faults: Final = Faults(lambda: self.queue.pipeline.tool_content and self.queue.pipeline.masks is None)
        self._emission: Final = Emission(self.emitters, self.tallies, self.faults)
        talks = None
        if conversations is not None:
            talks = ConversationScoring(conversations, self._emission, self.tallies, self.faults, keep)
        self.queue: Final = ScoringQueue(
            pipeline,
            table,
            self._emission,
            talks,
            clock=clock,
            measure=measure or (lambda _instrument, _value: None),
            tallies=self.tallies,
            faults=self.faults,
            keep=keep,
        )

    def reload(self, pipeline: Pipeline, is_root: Callable[[Span], bool]) -> None:
        """Use another configuration from now on, also for open traces; the rule for root spans may change, too."""
        self.queue.pipeline = pipeline
        if self.conversations is not None:
            self.conversations.needs = pipeline.turn_needs
        self.table.is_root = is_root

    def note_counted(self, trace_ids: Iterable[bytes]) -> None:
        """Note traces that were scored before a restart and are kept: `AtMostOnce` emitters have had their reports."""
        self._emission.counted_before.update(trace_ids)

    def repeat_closing(self, trace_id: bytes, *, is_last: bool) -> None:
        """Close a trace where it was closed before a restart; `work` scores it. After the last time, count it again."""
        self.queue.put(filter(None, [self.table.close(trace_id, CloseReason.TIMED_OUT)]))
        if is_last:
            self._emission.counted_before.discard(trace_id)

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
        self.queue.put(self.table.add(spans, now, sizes, close_due=False))

    def work(self, until: float, now: float | None = None) -> bool:
        """Close and score due traces, one by one; return whether nothing is left to do.

        At least one step is done, even after `until`. A trace that is due stays open until its turn comes.

        Args:
            until: the time to stop, on the clock.
            now: the time for traces; the clock's by default.
        """
        while True:
            if self.queue.step(until):
                pass
            elif (closed := self.table.expire_next(at := self._clock() if now is None else now)) is not None:
                self.queue.put(closed)
            elif self.conversations is not None and self.conversations.is_due(at):
                self.queue.put_conversations(self.conversations.expire(at, most=1))
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
            self.queue.put_conversations(self.conversations.expire(self._clock()))
            reports += self.queue.settle()
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
            self.queue.put_conversations([revision])
            self.queue.settle()
            if self._clock() >= until:
                break
        self.queue.settle_all(max(0.0, until - self._clock()))

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
        self.queue.put(self.table.expire(self._clock()))

    def let_go(self, trace_ids: Collection[bytes]) -> None:
        """Discard what is held of these traces: the next owner scores them, and sends their spans on."""
        if self.queue.ahead is not None:
            for trace_id in trace_ids:
                self.queue.ahead.forget(trace_id)
        for emitter in self.emitters.values():
            if isinstance(emitter, HoldsSpansBack):
                contained(emitter, partial(emitter.give_up, trace_ids))

    def evict(self, trace_id: bytes) -> None:
        """Close a trace, if it is open, because it has no room elsewhere, and leave it to `work` to score it."""
        self.queue.put(filter(None, [self.table.close(trace_id, CloseReason.EVICTED)]))

    def waiting(self) -> list[bytes]:
        """Return the traces that are open, or closed and not scored yet."""
        return [*self.table.open.ids(), *self.queue.not_begun()]

    def is_open(self, trace_id: bytes) -> bool:
        """Return whether a trace waits for its end, or for its scores."""
        return trace_id in self.queue.waiting or trace_id in self.table.open

    def counts(self) -> Counts:
        """Return the counts of every span and trace so far, by outcome."""
        return self.table.counts()

    def flush(self, timeout_s: float) -> bool:
        """Flush every emitter; True if everything was sent within the timeout."""
        return self._emission.finish("flush", self._clock, timeout_s) and self.queue.is_done

    def close(self, timeout_s: float) -> bool:
        """Close every emitter; True when all that was queued went out within the timeout."""
        deadline = self._clock() + timeout_s
        self.queue.settle_all(timeout_s)
        self.queue.unscored.close()
        in_time = self.queue.is_done
        self.queue.emit_all()
        self.finish_conversations(deadline)
        self.queue.emit_all()
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
        self.queue.put(traces)
        return self.queue.score(until)
