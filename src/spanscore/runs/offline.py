"""Scores recorded spans: the same table and pipeline as live, with the end of the recording in place of the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain, count
from typing import Final, NamedTuple, Protocol

from spanscore.collect.table import TraceTable
from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.errors import ConfigError
from spanscore.model import FinishReason, Report, Span, Trace, Trajectory
from spanscore.otlp.slices import at_once
from spanscore.recordings.span_batches import SpanBatch
from spanscore.scoring.conversations.held_conversation import ConversationRevision
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.reader import DialectReader

MOST_WAITING: Final = 20_000
"""Spans of the traces whose reports wait for a trace that began before theirs: an unread explanation needs them."""

_UNBOUNDED: Final = 2**62
_NO_FLAGS: Final = (
    "traces.root: 'remote_parent' cannot be used with tables, which do not store whether a parent is remote (the flags "
    "of a span); allowed: 'parentless', 'agent'"
)
_NOW: Final = 0.0  # nothing waits: the recording itself says when a trace is complete


class Recorded(Protocol):
    """A source of recorded spans."""

    def read(self) -> Iterator[SpanBatch]:
        """Yield the spans, document by document, and with them which traces are finished."""


class Scores(Protocol):
    """The pipeline that scores traces."""

    @property
    def reader(self) -> DialectReader:
        """The reader of tool calls."""

    def run(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> tuple[Report, ...]:
        """Return a report for each trajectory of the trace that is wanted."""


def score(  # noqa: PLR0913 - most callers give the first three
    recording: Recorded,
    config: Config,
    pipeline: Scores,
    wanted: Callable[[Trajectory], bool] | None = None,
    *,
    most_waiting: int = MOST_WAITING,
    conversations: RecordedConversations | None = None,
) -> Iterator[Report]:
    """Yield a report for every trajectory of a recording that is wanted.

    The order is that of the recording: a trace has the place of the first document with a span of it. Traces that
    begin in one document are in the order of their start times. Each is scored as soon as its last span was read, and
    its report waits for the traces before it, unless the traces that wait have more than `most_waiting` spans.

    Memory holds the traces that are open at one place of the recording, the reports that wait, and the turns of
    `conversations`, whose reports come last.
    """
    # What protects a live process from its senders would here cut what the user asked to have scored.
    settings = replace(
        config.traces,
        decision_delay_s=float(_UNBOUNDED),
        num_traces=_UNBOUNDED,
        max_bytes=_UNBOUNDED,
        late_spans="ignore",
        remember_traces=1,
        keep_closed_spans=0,
    )
    table = TraceTable(settings, wiring.root_condition(config, pipeline.reader))
    order = _RecordedOrder(most_waiting)
    for batch in recording.read():
        if batch.is_flagless and settings.root == "remote_parent":
            raise ConfigError(_NO_FLAGS)
        order.begin(batch.spans)
        for trace in chain(
            table.add([*batch.spans, *batch.lost], _NOW), filter(None, map(table.close, batch.finished))
        ):
            if trace.spans:
                order.end(trace, _run(trace, pipeline, wanted, conversations))
        order.forget(batch.finished)
        yield from order.ready()
    for trace in filter(lambda trace: trace.spans, table.drain()):
        order.end(trace, _run(trace, pipeline, wanted, conversations))
    yield from order.ready(at_end=True)
    if conversations is not None:
        yield from conversations.finish()


def _run(
    trace: Trace,
    pipeline: Scores,
    wanted: Callable[[Trajectory], bool] | None,
    conversations: RecordedConversations | None,
) -> tuple[Report, ...]:
    reports = pipeline.run(trace, wanted)
    if conversations is not None:
        conversations.add(trace, reports)
    return reports


class _Ended(NamedTuple):
    document: int
    start_ns: int
    number: int
    """Of the trace, in the order of first spans."""
    spans: int
    reports: tuple[Report, ...]


class _RecordedOrder:
    """Delays reports until the reports of traces that began earlier are out."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting: Final = most_waiting
        self._document = 0
        self._numbers = count()
        self._begun: dict[bytes, tuple[int, int]] = {}
        """Of each open trace the document in which it began, and its number; in this order."""
        self._waiting: list[_Ended] = []
        """A heap."""
        self._spans = 0

    def begin(self, spans: Iterable[Span]) -> None:
        """Note the traces that begin in a document."""
        self._document += 1
        for span in spans:
            if span.trace_id not in self._begun:
                self._begun[span.trace_id] = self._document, next(self._numbers)

    def end(self, trace: Trace, reports: tuple[Report, ...]) -> None:
        """Take the reports of a trace; one that a limit closed may end again in the document in which it did."""
        document, number = self._begun.pop(trace.trace_id, (self._document, next(self._numbers)))
        start_ns = min(span.start_ns for span in trace.spans)
        heappush(self._waiting, _Ended(document, start_ns, number, len(trace.spans), reports))
        self._spans += len(trace.spans)

    def forget(self, finished: Iterable[bytes]) -> None:
        """Wait no more for traces of which nothing is left to come; a limit may have closed them before their end."""
        for trace_id in finished:
            self._begun.pop(trace_id, None)

    def ready(self, *, at_end: bool = False) -> Iterator[Report]:
        """Yield the reports before which none can come any more; all at the end, or where too many wait."""
        first_open, _ = next(iter(self._begun.values()), (_UNBOUNDED, 0))
        while self._waiting and (at_end or self._waiting[0].document < first_open or self._spans > self._most_waiting):
            ended = heappop(self._waiting)
            self._spans -= ended.spans
            yield from ended.reports


class RecordedConversations:
    """Joins the runs of a recording to conversations, and evaluates these.

    Turns are the traces that have a report: where only some are wanted, the others are left out here, too.
    """

    def __init__(self, config: Config, pipeline: Pipeline) -> None:
        if config.conversations is not None:  # no clock, and room for all that is to be scored
            config = replace(config, conversations=replace(config.conversations, max_bytes=_UNBOUNDED))
        self._held: Final = wiring.conversations(config, pipeline)
        self._pipeline: Final = pipeline
        self._reports: Final[list[Report]] = []

    def add(self, trace: Trace, reports: tuple[Report, ...]) -> None:
        """Take a trace with its reports."""
        turn = None if self._held is None else self._pipeline.turn(trace, reports)
        if self._held is not None and turn is not None:
            found = self._held.add(trace.trace_id, turn, trace.revision, _NOW)
            self._reports.extend(self._scored(each for each in found if each.finished is not None))

    def finish(self) -> Iterator[Report]:
        """Yield the reports of all conversations."""
        yield from self._reports
        if self._held is not None:
            yield from self._scored(self._held.finish(FinishReason.END_OF_INPUT))

    def _scored(self, revisions: Iterable[ConversationRevision]) -> Iterator[Report]:
        for revision in revisions:
            scoring = at_once(self._pipeline.begin_conversation(revision))
            while not scoring.is_done:
                scoring.wait(None)
            yield from scoring.reports()
