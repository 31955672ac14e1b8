"""The metrics about spanscore itself: what arrived, what became of it, and what waits."""

from __future__ import annotations

from typing import Final

from spanscore.instruments.instrument import (
    CLOSE_REASON,
    COUNTS,
    DIALECT,
    EMITTER,
    ERROR_TYPE,
    EVALUATION,
    QUEUE,
    REASON,
    Instrument,
    InstrumentKind,
)

_DELAYED_SECONDS: Final = (
    0.001,
    0.005,
    0.01,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.0,
    2.05,
    2.1,
    2.25,
    2.5,
    3.0,
    5.0,
    10.0,
    30.0,
    60.0,
    300.0,
)
"""Fine behind the two seconds that traces wait by default: what comes on top of them is what there is to see."""
_MICROSECONDS: Final = (0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0)

REQUESTS_ACCEPTED: Final = Instrument(
    name="spanscore.requests.accepted",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests that a receiver took, whole or without some of their spans.",
)
REQUESTS_EMPTY: Final = Instrument(
    name="spanscore.requests.empty",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests among the accepted ones that held no span at all: many are a sign of a wrong sender.",
)
REQUESTS_REFUSED: Final = Instrument(
    name="spanscore.requests.refused",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests answered with an error, by why; what gRPC refuses by itself is not among them.",
    attributes=(REASON,),
)
SPANS_RECEIVED: Final = Instrument(
    name="spanscore.spans.received",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans that arrived: always those in closed traces + live + late + refused + dropped.",
)
SPANS_CLOSED: Final = Instrument(
    name="spanscore.spans.closed",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans in closed traces, except late ones.",
)
SPANS_REFUSED: Final = Instrument(
    name="spanscore.spans.refused",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans answered with an error, by what was wrong with them.",
    attributes=(REASON,),
)
SPANS_LATE: Final = Instrument(
    name="spanscore.spans.late",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans that came after their trace was closed, by what became of them.",
    attributes=(REASON,),
)
SPANS_DROPPED: Final = Instrument(
    name="spanscore.spans.dropped",
    kind=InstrumentKind.COUNTER,
    unit="{span}",
    description="Spans accepted and not kept, by why.",
    attributes=(REASON,),
)
SPANS_LIVE: Final = Instrument(
    name="spanscore.spans.live",
    kind=InstrumentKind.GAUGE,
    unit="{span}",
    description="Spans in open traces, not counted elsewhere yet.",
)
TRACES_OPEN: Final = Instrument(
    name="spanscore.traces.open",
    kind=InstrumentKind.GAUGE,
    unit="{trace}",
    description="Traces that wait for their root or for late spans.",
)
TRACES_CLOSED: Final = Instrument(
    name="spanscore.traces.closed",
    kind=InstrumentKind.COUNTER,
    unit="{trace}",
    description="Traces closed for the first time, by why.",
    attributes=(CLOSE_REASON,),
)
TRACES_REVISED: Final = Instrument(
    name="spanscore.traces.revised",
    kind=InstrumentKind.COUNTER,
    unit="{trace}",
    description="Traces closed and scored again because of late spans.",
)
TRACES_UNRECOGNISED: Final = Instrument(
    name="spanscore.traces.unrecognised",
    kind=InstrumentKind.COUNTER,
    unit="{trace}",
    description="Traces without a span of a known instrumentation: other services' traces, which are left alone.",
)
DIALECT_ERRORS: Final = Instrument(
    name="spanscore.dialect.errors",
    kind=InstrumentKind.COUNTER,
    unit="{error}",
    description="Spans on which a dialect went wrong; the evaluations of their traces are skipped.",
    attributes=(DIALECT, ERROR_TYPE),
)
MEMORY_HELD: Final = Instrument(
    name="spanscore.memory.held",
    kind=InstrumentKind.GAUGE,
    unit="By",
    description="Size of all spans in memory, of open traces and of closed ones that late spans may reopen.",
)
TRACE_SPAN_COUNT: Final = Instrument(
    name="spanscore.trace.span_count",
    kind=InstrumentKind.HISTOGRAM,
    unit="{span}",
    description="Spans of a closed trace.",
    boundaries=COUNTS,
)
EVALUATION_DURATION: Final = Instrument(
    name="spanscore.evaluation.duration",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="Time to read and evaluate one closed trace.",
    boundaries=_MICROSECONDS,
)
EVALUATION_ERRORS: Final = Instrument(
    name="spanscore.evaluation.errors",
    kind=InstrumentKind.COUNTER,
    unit="{error}",
    description="Evaluations that failed because the evaluator went wrong.",
    attributes=(EVALUATION, ERROR_TYPE),
)
SCORE_LATENCY: Final = Instrument(
    name="spanscore.score.latency",
    kind=InstrumentKind.HISTOGRAM,
    unit="s",
    description="From the root span's arrival to its scores going out, the configured delay included.",
    boundaries=_DELAYED_SECONDS,
)
QUEUE_SIZE: Final = Instrument(
    name="spanscore.queue.size",
    kind=InstrumentKind.GAUGE,
    unit="{item}",
    description="Items waiting in a queue or being sent.",
    attributes=(QUEUE,),
)
QUEUE_CAPACITY: Final = Instrument(
    name="spanscore.queue.capacity",
    kind=InstrumentKind.GAUGE,
    unit="{item}",
    description="Items a queue can hold.",
    attributes=(QUEUE,),
)
EXPORT_FAILURES: Final = Instrument(
    name="spanscore.export.failures",
    kind=InstrumentKind.COUNTER,
    unit="{failure}",
    description="Reports and requests that an emitter could not send, by why.",
    attributes=(EMITTER, REASON),
)

STORAGE_SIZE: Final = Instrument(
    name="spanscore.storage.size",
    kind=InstrumentKind.GAUGE,
    unit="By",
    description="Size of the spans kept on disk until they are scored.",
)
STORAGE_CAPACITY: Final = Instrument(
    name="spanscore.storage.capacity",
    kind=InstrumentKind.GAUGE,
    unit="By",
    description="Size at which spans are refused, with a request to retry.",
)
STORAGE_LOST: Final = Instrument(
    name="spanscore.storage.lost",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Stored requests that were damaged when they were read after a restart, or whose file was removed.",
)
STORAGE_REFUSED: Final = Instrument(
    name="spanscore.storage.refused",
    kind=InstrumentKind.COUNTER,
    unit="{request}",
    description="Requests that could not be stored, by why; but for `too_large`, their senders were told to retry.",
    attributes=(REASON,),
)
STORAGE_SYNC_FAILURES: Final = Instrument(
    name="spanscore.storage.sync_failures",
    kind=InstrumentKind.COUNTER,
    unit="{failure}",
    description="Times that the disk could not be made to keep what was written; it then goes to a new file.",
)
KAFKA_RECORDS: Final = Instrument(
    name="spanscore.kafka.records",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Records read from Kafka, those included that were read before by another member of the group.",
)
KAFKA_POISON: Final = Instrument(
    name="spanscore.kafka.poison_records",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Records that could not be used, by why; they are in the dead-letter topic where there is one.",
    attributes=(REASON,),
)
KAFKA_MISROUTED: Final = Instrument(
    name="spanscore.kafka.misrouted_records",
    kind=InstrumentKind.COUNTER,
    unit="{record}",
    description="Records that were used, but whose key is not their trace id: their traces may be split over members.",
    attributes=(REASON,),
)
KAFKA_PARTITIONS: Final = Instrument(
    name="spanscore.kafka.partitions",
    kind=InstrumentKind.GAUGE,
    unit="{partition}",
    description="Partitions of the topic that this member of the group reads.",
)
KAFKA_LAG: Final = Instrument(
    name="spanscore.kafka.lag",
    kind=InstrumentKind.GAUGE,
    unit="{record}",
    description="Records in these partitions that were not read yet.",
)
KAFKA_UNCOMMITTED: Final = Instrument(
    name="spanscore.kafka.uncommitted_records",
    kind=InstrumentKind.GAUGE,
    unit="{record}",
    description="Records in these partitions that were read, and are held for traces that are still open.",
)
KAFKA_COMMIT_FAILURES: Final = Instrument(
    name="spanscore.kafka.commit_failures",
    kind=InstrumentKind.COUNTER,
    unit="{failure}",
    description="Offsets that could not be committed, by the broker's error; the next commit repeats them.",
    attributes=(REASON,),
)

OWN_INSTRUMENTS: Final = (
    REQUESTS_ACCEPTED,
    REQUESTS_EMPTY,
    REQUESTS_REFUSED,
    SPANS_RECEIVED,
    SPANS_CLOSED,
    SPANS_LIVE,
    SPANS_LATE,
    SPANS_REFUSED,
    SPANS_DROPPED,
    TRACES_OPEN,
    TRACES_CLOSED,
    TRACES_REVISED,
    TRACES_UNRECOGNISED,
    DIALECT_ERRORS,
    MEMORY_HELD,
    TRACE_SPAN_COUNT,
    EVALUATION_DURATION,
    EVALUATION_ERRORS,
    SCORE_LATENCY,
    QUEUE_SIZE,
    QUEUE_CAPACITY,
    EXPORT_FAILURES,
    STORAGE_SIZE,
    STORAGE_CAPACITY,
    STORAGE_LOST,
    STORAGE_REFUSED,
    STORAGE_SYNC_FAILURES,
    KAFKA_RECORDS,
    KAFKA_POISON,
    KAFKA_MISROUTED,
    KAFKA_PARTITIONS,
    KAFKA_LAG,
    KAFKA_UNCOMMITTED,
    KAFKA_COMMIT_FAILURES,
)
