"""Metrics of spanscore itself: outcomes of spans and traces, durations, and failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from spanscore.collect.held_trace import DropReason
from spanscore.collect.remembered import GivenUp, LateReason
from spanscore.contracts import Outgoing, SendsInBackground, Sink
from spanscore.contracts.instruments import own
from spanscore.contracts.instruments.instrument import Instrument, InstrumentKind
from spanscore.metrics.series import Values
from spanscore.model import CloseReason, FinishReason
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.engine import Engine

Numbers: TypeAlias = float | Mapping[Any, float]
"""The number of an instrument; or its numbers by the values of its attributes, a tuple, or by that of its only one."""
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
        self._reads: Final[defaultdict[str, list[Callable[[], Numbers]]]] = defaultdict(list)
        for instrument in own.OWN_INSTRUMENTS:
            if instrument.kind is not InstrumentKind.HISTOGRAM:
                for sink in self.sinks:
                    sink.observe(instrument, partial(self._total, instrument))

    def measure(self, instrument: Instrument, value: float) -> None:
        """Record a measurement of our own work; passed to `Engine`."""
        for sink in self.sinks:
            sink.record(instrument, value)

    def observe(self, instrument: Instrument, read: Callable[[], Numbers]) -> None:
        """Add numbers to a counter or a gauge of ours, such as the size of the storage."""
        self._reads[instrument.name].append(read)

    def watch(self, engine: Engine) -> None:
        """Register the metrics of an engine's spans and traces, and of its emitters' queues."""
        for instrument, read in _READS:
            self.observe(instrument, partial(read, engine))
        if (conversations := engine.conversations) is not None:
            for instrument, read_conversations in _READS_OF_CONVERSATIONS:
                self.observe(instrument, partial(read_conversations, conversations))
        for name, emitter in engine.emitters.items():
            outbox = emitter.outbox if isinstance(emitter, SendsInBackground) else None
            if outbox is not None:
                self.watch_queue(name, outbox)

    def watch_queue(self, name: str, outbox: Outgoing) -> None:
        """Register the metrics of a queue: its size, and its failures."""
        self.observe(own.QUEUE_SIZE, lambda: {name: outbox.size})
        self.observe(own.QUEUE_CAPACITY, lambda: {name: outbox.capacity})
        self.observe(
            own.EXPORT_FAILURES, lambda: {(name, reason): number for reason, number in outbox.failures.items()}
        )

    def _total(self, instrument: Instrument) -> Mapping[Values, float]:
        total: dict[Values, float] = {}
        for read in self._reads[instrument.name]:
            found = read()
            # Copied first, at once: the owner may add a reason meanwhile.
            for key, number in dict(found).items() if isinstance(found, Mapping) else [((), found)]:
                values = key if isinstance(key, tuple) else (str(key),)
                total[values] = total.get(values, 0) + number
        return total


def _received(engine: Engine) -> Numbers:
    # Spans that were refused, or dropped before they reached the table, were received all the same.
    tallies = engine.tallies
    return engine.counts().received + sum(dict(tallies.refused).values()) + sum(dict(tallies.dropped).values())


def _turns(held: Conversations) -> Numbers:
    counts = held.counts()
    joined = counts.in_finished + counts.in_open
    return {"joined": joined, "without_key": counts.without_key, "late": counts.late}


def _each(kinds: Iterable[Kind], counted: Mapping[Kind, int]) -> dict[Kind, int]:
    return {kind: counted.get(kind, 0) for kind in kinds}


_READS: Final[tuple[tuple[Instrument, Callable[[Engine], Numbers]], ...]] = (
    (own.SPANS_RECEIVED, _received),
    (own.SPANS_CLOSED, lambda engine: engine.counts().in_closed),
    (own.SPANS_LIVE, lambda engine: engine.counts().live),
    (own.SPANS_LATE, lambda engine: _each(LateReason, engine.counts().late)),
    (own.SPANS_REFUSED, lambda engine: engine.tallies.refused),
    (own.SPANS_DROPPED, lambda engine: {**_each(DropReason, engine.counts().dropped), **dict(engine.tallies.dropped)}),
    (own.METRICS_REFUSED, lambda engine: engine.tallies.refused_points),
    (own.LOGS_UNREAD, lambda engine: engine.tallies.unread),
    (own.TRACES_OPEN, lambda engine: engine.counts().open_traces),
    (own.TRACES_CLOSED, lambda engine: _each(CloseReason, engine.counts().closed)),
    (own.TRACES_REVISED, lambda engine: engine.counts().revisions),
    (own.RUNS_REVISED, lambda engine: engine.tallies.revised),
    (own.PAUSES_GIVEN_UP, lambda engine: _each(GivenUp, engine.counts().given_up)),
    (own.TRACES_UNRECOGNISED, lambda engine: engine.tallies.unrecognised),
    (own.DIALECT_ERRORS, lambda engine: engine.tallies.dialect_errors),
    (own.MEMORY_HELD, lambda engine: engine.counts().held_bytes),
    (own.EVALUATION_ERRORS, lambda engine: engine.tallies.evaluation_errors),
    (own.EXPORT_FAILURES, lambda engine: engine.tallies.export_failures),
)

_READS_OF_CONVERSATIONS: Final[tuple[tuple[Instrument, Callable[[Conversations], Numbers]], ...]] = (
    (own.CONVERSATIONS, lambda held: {word: held.counts().verdicts[word] for word in ("pass", "fail", "none")}),
    (own.CONVERSATIONS_OPEN, lambda held: held.counts().open),
    (own.CONVERSATIONS_FINISHED, lambda held: {each: held.counts().finished[each] for each in FinishReason}),
    (own.CONVERSATIONS_TURNS, _turns),
    (own.CONVERSATIONS_AMBIGUOUS, lambda held: held.counts().ambiguous),
)
