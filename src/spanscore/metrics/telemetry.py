"""Metrics of spanscore itself: outcomes of spans and traces, durations, and failures."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

from spanscore.collect.counts import Counts
from spanscore.collect.held_trace import DropReason
from spanscore.collect.remembered import GivenUp, LateReason
from spanscore.contracts import Outgoing, SendsInBackground, Sink
from spanscore.contracts.instruments import own
from spanscore.contracts.instruments.instrument import Instrument, InstrumentKind
from spanscore.contracts.instruments.tallies import Tallies
from spanscore.metrics.series import Read, Values
from spanscore.model import CloseReason, FinishReason
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.conversations.held_conversation import ConversationCounts
from spanscore.scoring.engine import Engine

Numbers: TypeAlias = Mapping[Values, float]
Kind = TypeVar("Kind", DropReason, GivenUp, LateReason, CloseReason)


class OwnTelemetry:
    """Measures an engine.

        telemetry = OwnTelemetry([exposition])
        engine = Engine(..., measure=telemetry.measure)
        telemetry.watch(engine)

    Counting costs nothing between collections: the engine and the emitters keep these numbers anyway. They
    are read without stopping the engine, so that sums over several metrics are exact only while it rests. Where more
    than one engine is watched, their numbers are added up.
    """

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self.sinks: Final = tuple(sinks)
        self._reads: Final[defaultdict[str, list[Read]]] = defaultdict(list)
        for instrument in own.OWN_INSTRUMENTS:
            if instrument.kind is not InstrumentKind.HISTOGRAM:
                for sink in self.sinks:
                    sink.observe(instrument, partial(self._total, instrument))

    def measure(self, instrument: Instrument, value: float) -> None:
        """Record a measurement of our own work; passed to `Engine`."""
        for sink in self.sinks:
            sink.record(instrument, value)

    def observe(self, instrument: Instrument, read: Read) -> None:
        """Add numbers to a counter or a gauge of ours, such as the size of the storage."""
        self._reads[instrument.name].append(read)

    def watch(self, engine: Engine) -> None:
        """Register the metrics of an engine's spans and traces, and of its emitters' queues."""
        for instrument, read in _READS:
            self.observe(instrument, partial(_read, engine, read))
        if (conversations := engine.conversations) is not None:
            for instrument, read_conversations in _READS_OF_CONVERSATIONS:
                self.observe(instrument, partial(_read_conversations, conversations, read_conversations))
        for name, emitter in engine.emitters.items():
            outbox = emitter.outbox if isinstance(emitter, SendsInBackground) else None
            if outbox is not None:
                self.watch_queue(name, outbox)

    def watch_queue(self, name: str, outbox: Outgoing) -> None:
        """Register the metrics of a queue: its size, and its failures."""
        self.observe(own.QUEUE_SIZE, lambda: {(name,): outbox.size})
        self.observe(own.QUEUE_CAPACITY, lambda: {(name,): outbox.capacity})
        self.observe(own.EXPORT_FAILURES, partial(_failures, name, outbox))

    def _total(self, instrument: Instrument) -> Numbers:
        total: dict[Values, float] = {}
        for read in self._reads[instrument.name]:
            for values, number in read().items():
                total[values] = total.get(values, 0) + number
        return total


def _failures(name: str, outbox: Outgoing) -> Numbers:
    return {(name, reason): number for reason, number in outbox.failures.items()}


def _read(engine: Engine, read: Callable[[Counts, Tallies], Numbers]) -> Numbers:
    return read(engine.counts(), engine.tallies)


def _read_conversations(held: Conversations, read: Callable[[ConversationCounts], Numbers]) -> Numbers:
    return read(held.counts())


def _received(counts: Counts, tallies: Tallies) -> Numbers:
    # Spans that were refused, or dropped before they reached the table, were received all the same.
    return _one(counts.received + _sum(tallies.refused) + _sum(tallies.dropped))


def _each(kinds: Iterable[Kind], counted: Mapping[Kind, int]) -> Numbers:
    return {(kind.value,): counted.get(kind, 0) for kind in kinds}


def _one(number: float) -> Numbers:
    return {(): number}


def _by_one(numbers: Mapping[str, int]) -> Numbers:
    return {(key,): number for key, number in dict(numbers).items()}


def _by_two(counter: Counter[tuple[str, str]]) -> Numbers:
    return {(name, reason): number for (name, reason), number in dict(counter).items()}


def _sum(counter: Mapping[str, int]) -> int:
    # Copied first, at once: the owner may add a reason meanwhile.
    return sum(dict(counter).values())


_READS: Final[tuple[tuple[Instrument, Callable[[Counts, Tallies], Numbers]], ...]] = (
    (own.SPANS_RECEIVED, _received),
    (own.SPANS_CLOSED, lambda counts, _: _one(counts.in_closed)),
    (own.SPANS_LIVE, lambda counts, _: _one(counts.live)),
    (own.SPANS_LATE, lambda counts, _: _each(LateReason, counts.late)),
    (own.SPANS_REFUSED, lambda _, tallies: _by_one(tallies.refused)),
    (own.SPANS_DROPPED, lambda counts, tallies: {**_each(DropReason, counts.dropped), **_by_one(tallies.dropped)}),
    (own.LOGS_UNREAD, lambda _, tallies: _by_one(tallies.unread)),
    (own.TRACES_OPEN, lambda counts, _: _one(counts.open_traces)),
    (own.TRACES_CLOSED, lambda counts, _: _each(CloseReason, counts.closed)),
    (own.TRACES_REVISED, lambda counts, _: _one(counts.revisions)),
    (own.RUNS_REVISED, lambda _, tallies: _by_two(tallies.revised)),
    (own.PAUSES_GIVEN_UP, lambda counts, _: _each(GivenUp, counts.given_up)),
    (own.TRACES_UNRECOGNISED, lambda _, tallies: _one(tallies.unrecognised)),
    (own.DIALECT_ERRORS, lambda _, tallies: _by_two(tallies.dialect_errors)),
    (own.MEMORY_HELD, lambda counts, _: _one(counts.held_bytes)),
    (own.EVALUATION_ERRORS, lambda _, tallies: _by_two(tallies.evaluation_errors)),
    (own.EXPORT_FAILURES, lambda _, tallies: _by_two(tallies.export_failures)),
)

_READS_OF_CONVERSATIONS: Final[tuple[tuple[Instrument, Callable[[ConversationCounts], Numbers]], ...]] = (
    (own.CONVERSATIONS, lambda counts: {(word,): counts.verdicts[word] for word in ("pass", "fail", "none")}),
    (own.CONVERSATIONS_OPEN, lambda counts: _one(counts.open)),
    (own.CONVERSATIONS_FINISHED, lambda counts: {(each.value,): counts.finished[each] for each in FinishReason}),
    (
        own.CONVERSATIONS_TURNS,
        lambda counts: {
            ("joined",): counts.in_finished + counts.in_open,
            ("without_key",): counts.without_key,
            ("late",): counts.late,
        },
    ),
    (own.CONVERSATIONS_AMBIGUOUS, lambda counts: _one(counts.ambiguous)),
)
