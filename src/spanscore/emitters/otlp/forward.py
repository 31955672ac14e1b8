"""The received spans, passed on over OTLP; a root span carries the scores of its trace as events."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from spanscore.contracts import Roots
from spanscore.emitters.otlp._encoded_scores import child_span_request, encoded_scores
from spanscore.emitters.otlp._held_roots import HeldRoots
from spanscore.emitters.otlp._keep_tags import observed_tags
from spanscore.emitters.otlp.forward_settings import ForwardCounts, ForwardSettings
from spanscore.emitters.otlp.trace_keeper import TraceKeeper
from spanscore.emitters.sending.backlog import ITEM_SIZE, QueueItem
from spanscore.emitters.sending.client import Client
from spanscore.emitters.sending.send_queue import SendQueue, SendSettings, Timing
from spanscore.model import CloseReason, KeepDecision, Report, Span, Trace, Unit
from spanscore.otlp.raw_requests import RootSpan, Split, split
from spanscore.reports.evaluation_event import event_time_ns

_SCORES_SIZE: Final = 2048  # of the events of one root, about
_TAGS_SIZE: Final = 128  # of a kept span, about


class Forward:
    """Passes every received span on exactly once and byte for byte as it came.

    A finished root span is held back until its trace is scored, and then passed on with its verdict as attributes, and
    with an event `gen_ai.evaluation.result` for each evaluation of it, at the time of its end: backends keep the first
    version of a span, so that these cannot be sent behind. All other spans go on at once. A root whose scores do not
    come is passed on without: because its trace was closed before it came, because too many are held, or at the end.

    The scores of a trace that has no root, because the parent of its topmost span is recorded elsewhere or was lost,
    go out as a span of their own below that one.

    Only roots are held back. An agent's span below the root is not: evaluations of it, which `unit: agent` makes, show
    as events where the agent's span is the root, and as log events everywhere. The same goes for `root: agent`.

    What cannot be sent now waits in a bounded queue and is sent again as OTLP says; a thread does the sending, so that
    nothing here waits for the network. May be called from any thread.

    Args:
        client: sends; the queue's alone.
        settings: the spans to hold back, and the limits.
        timing: the clock.
    """

    def __init__(self, client: Client, settings: ForwardSettings | None = None, timing: Timing | None = None) -> None:
        settings = settings or ForwardSettings()
        timing = timing or Timing()
        self._roots: Roots = settings.roots
        self._annotates: Final = settings.annotates
        self._child_spans: Final = settings.child_spans
        self._clock: Final = timing.clock
        self._held: Final = HeldRoots(settings.hold)
        self._received = self._annotated = self._handed_over = 0
        self._unannotated: Final[Counter[str]] = Counter()
        self._last_scored = b""
        self._last_tags = b""
        self.keeper: TraceKeeper | None = None
        self._refused: tuple[int, int] | None = None
        """The items and bytes of the request for which there was no room last, until there is."""
        self._lock: Final = threading.Lock()  # guards all of the above: the queue's thread passes expired roots on
        sending = SendSettings(name="forward", queue=settings.queue, retries=settings.retries)
        self.outbox: Final = SendQueue(client, sending, self._expire, timing)
        """Requests that wait or are being sent, without the root spans that wait for their scores."""

    needs_results: Final = False
    """Results of calls are in scores only with `tool_content: true`."""

    @property
    def progress(self) -> tuple[int, int]:
        """The number of items queued so far, and the number sent or given up."""
        return self.outbox.progress

    def counts(self) -> ForwardCounts:
        """Return the counts of every span so far."""
        with self._lock:
            spans = self.outbox.spans()
            received, held, handed_over, sampled = self._received, len(self._held), self._handed_over, 0
            if self.keeper is not None and self.keeper.is_on:
                kept = self.keeper.counts
                received, held, sampled = kept.received, held + kept.held_spans, kept.spans["dropped"]
                handed_over += kept.spans["handed_over"]
            more = {"handed_over": handed_over, "sampled": sampled}
            return ForwardCounts(
                received=received,
                sent=spans.sent,
                queued=spans.queued,
                held=held,
                dropped={**spans.dropped, **{why: number for why, number in more.items() if number}},
                annotated=self._annotated,
                unannotated=dict(self._unannotated),
            )

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
        """Return whether a request of that many bytes, with these spans, can be taken without dropping any of it.

        A request is one item of the queue, and so is each of its roots, or with a keeper maybe each of its spans. Roots
        that wait for their scores need room too, as soon as they have them. Of little room, each request gets a
        share, so that a flood of large ones does not keep out small ones.
        """
        is_kept = self.keeper is not None and self.keeper.is_on
        items = 1 + (len(spans) if is_kept else _count_roots(spans, self._roots))
        fits = self._fits(items, size)
        if not fits:
            self._refused = items, size
        return fits

    @property
    def is_refusing(self) -> bool:
        """Whether the request for which there was no room last would still have none."""
        if self._refused is not None and self._fits(*self._refused):
            self._refused = None
        return self._refused is not None

    def _fits(self, items: int, size: int) -> bool:
        with self._lock:
            held, held_size = len(self._held), self._held.size
            reserved, more = held, held_size + held * (_SCORES_SIZE + ITEM_SIZE)
            if self.keeper is not None and self.keeper.is_on:
                counts = self.keeper.counts
                reserved += counts.held_spans
                more += counts.held_bytes + counts.held_spans * _TAGS_SIZE  # with the memory of traces, and so of items
        return self.outbox.shares(items, size, reserved, more) or not (self.outbox.size + reserved)

    def is_waiting(self) -> bool:
        """Return whether requests wait to be sent."""
        return self.outbox.size > 0

    def keep_by(self, keeper: TraceKeeper) -> None:
        """Have a keeper take all spans, and send on those that it keeps. Call it before the first span."""
        self.keeper = keeper

    def closed(self, trace_id: bytes) -> None:
        """Note that a trace is closed."""
        with self._lock:
            if self.keeper is not None:
                self.keeper.closed(trace_id, self._clock())

    def earlier(self, trace_id: bytes) -> KeepDecision:
        """Return the decision for a trace that is decided."""
        with self._lock:
            return KeepDecision(kept=True) if self.keeper is None else self.keeper.earlier(trace_id)

    def decide(self, trace: Trace, reports: Sequence[Report] | None) -> KeepDecision:
        """Return the decision for a closed trace, and send its spans on if it is kept. To be called before `emit`."""
        with self._lock:
            if self.keeper is None:
                return KeepDecision(kept=True)
            self._release_scored()
            decision = self.keeper.decide(trace, reports)
            if self._send_kept():
                scored = {report.trajectory.root_span_id for report in reports or ()}
                self._release(self._held.take_others(trace.trace_id, scored), "not_evaluated")
            return decision

    def take(self, request: bytes) -> None:
        """Take the accepted spans of one ExportTraceServiceRequest, in protobuf. To be called before they are scored.

        Raises:
            WireError: it is no such request; nothing of it is taken.
        """
        keeper = self.keeper
        parts = None if keeper is not None and keeper.is_on else split(request, self._roots)
        with self._lock:
            if keeper is not None:
                keeper.take(request, self._clock())
            self._release_scored()
            if parts is not None:
                self._received += parts.spans + len(parts.roots)
                self._put(parts)
            else:
                self._send_kept()

    def take_other(self, signal: Literal["metrics", "logs"], request: bytes) -> None:
        """Queue a request with metrics or logs, in protobuf, unchanged."""
        self.outbox.put(QueueItem(signal, request))

    def emit(self, report: Report) -> None:
        """Pass the evaluated root span on, with its scores, or send a span with the scores behind it.

        Conversations have no span of their own.
        """
        trajectory = report.trajectory
        if trajectory.unit is Unit.CONVERSATION or report.dropped:
            return
        if self._child_spans:
            self._send_child(report)
        with self._lock:
            if trajectory.trace_id != self._last_scored:
                self._release_scored()
            self._last_scored = trajectory.trace_id
            tags = self._last_tags = b"" if report.keep is None else observed_tags(report.keep)
            roots = self._held.take(trajectory.trace_id, trajectory.root_span_id)
            if not report.evaluations or not self._annotates:
                self._release(roots, "not_evaluated", tags)
                return
            if not roots and self._roots != "none" and _is_rootless(report):
                self._send_child(report)
            for root in roots:
                content = root.content + tags + encoded_scores(report, event_time_ns(root.start_ns, root.end_ns))
                self.outbox.put(QueueItem("traces", content, 1, root.envelope))
                self._annotated += 1

    def give_up(self, trace_ids: Iterable[bytes]) -> None:
        """Drop the roots of traces that another receiver gets as well: it passes them on, with their scores."""
        with self._lock:
            given_up = list(trace_ids)
            self._handed_over += sum(len(self._held.take(trace_id)) for trace_id in given_up)
            if self.keeper is not None:
                self.keeper.give_up(given_up)

    def flush(self, timeout_s: float) -> bool:
        """Send what waits to be sent, and return whether all of it was. Roots that wait for their scores stay."""
        self._expire()
        return self.outbox.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Send everything within the timeout, roots without scores too, and return whether nothing was lost."""
        with self._lock:
            if self.keeper is not None:
                self.keeper.drain()
                self._send_kept()
            self._roots = "none"  # later spans are dropped, and not held
            self._release(self._held.drain(), "shut_down")
        return self.outbox.close(timeout_s)

    def _put(self, parts: Split) -> None:
        if parts.rest:
            self.outbox.put(QueueItem("traces", parts.rest, parts.spans))
        now = self._clock()
        for root in parts.roots:
            self._release(self._held.add(root, now), "displaced")

    def _send_kept(self) -> bool:
        """Send the spans on that the keeper has released, and return whether there are any."""
        released = () if self.keeper is None else self.keeper.onward()
        for parts in released:
            self._put(parts)
        return bool(released)

    def _expire(self) -> None:
        with self._lock:
            if self.keeper is not None:
                self.keeper.expire(self._clock())
                self._send_kept()
            self._release(self._held.expire(self._clock()), "expired")

    def _send_child(self, report: Report) -> None:
        if request := child_span_request(report, time.time_ns()):
            self.outbox.put(QueueItem("traces", request))

    def _release_scored(self) -> None:
        """Send the other roots of the trace scored last: its reports arrive in sequence, and are complete now."""
        self._release(self._held.take(self._last_scored), "not_evaluated", self._last_tags)
        self._last_scored = b""

    def _release(self, roots: Iterable[RootSpan], why: str, tags: bytes = b"") -> None:
        for root in roots:
            self.outbox.put(QueueItem("traces", root.content + tags, 1, root.envelope))
            self._unannotated[why] += 1


def _count_roots(spans: Sequence[Span], roots: Roots) -> int:
    if roots == "none":
        return 0
    may_be_remote = roots == "remote_parent"
    return sum(not span.parent_span_id or (may_be_remote and span.parent_is_remote) for span in spans)


def _is_rootless(report: Report) -> bool:
    return report.close_reason is not CloseReason.ROOT_ENDED and report.trajectory.unit is Unit.TRACE
