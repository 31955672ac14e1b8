"""The metrics about spanscore itself: received data, its outcome, and queues."""

from __future__ import annotations

from typing import Final

from spanscore.contracts.instruments.instrument import (
    CLOSE_REASON,
    COUNTS,
    DECODER,
    DELAYED_SECONDS,
    DIALECT,
    EMITTER,
    ERROR_TYPE,
    EVALUATION,
    KEEP_DECISION,
    KEEP_RULE,
    MICROSECONDS,
    MONITOR,
    OUTCOME,
    OUTCOME_FROM,
    OUTCOME_TO,
    QUEUE,
    REASON,
    SERIES,
    Instrument,
    counter,
    gauge,
    histogram,
)

REQUESTS_ACCEPTED: Final = counter(
    "spanscore.requests.accepted", "{request}", "Requests that a receiver took, whole or without some of their spans."
)
REQUESTS_EMPTY: Final = counter(
    "spanscore.requests.empty",
    "{request}",
    "Requests among the accepted ones that held neither a span nor a log record: many are a sign of a wrong sender.",
)
REQUESTS_DECODED: Final = counter(
    "spanscore.requests.decoded",
    "{request}",
    "Requests among the accepted ones that came as traces in protobuf, by the decoder that has read them.",
    (DECODER,),
)
REQUESTS_REFUSED: Final = counter(
    "spanscore.requests.refused",
    "{request}",
    "Requests answered with an error, by why; what gRPC refuses by itself is not among them.",
    (REASON,),
)
SPANS_RECEIVED: Final = counter(
    "spanscore.spans.received",
    "{span}",
    "Spans that arrived: always those in closed traces + live + late + refused + dropped.",
)
SPANS_CLOSED: Final = counter("spanscore.spans.closed", "{span}", "Spans in closed traces, except late ones.")
SPANS_LIVE: Final = gauge("spanscore.spans.live", "{span}", "Spans in open traces, not counted elsewhere yet.")
SPANS_LATE: Final = counter(
    "spanscore.spans.late", "{span}", "Spans that came after their trace was closed, by what became of them.", (REASON,)
)
SPANS_REFUSED: Final = counter(
    "spanscore.spans.refused",
    "{span}",
    "Spans that were refused, alone or with their request, by what was wrong with them; not those of requests that "
    "were not read, as their number is unknown.",
    (REASON,),
)
SPANS_DROPPED: Final = counter("spanscore.spans.dropped", "{span}", "Spans accepted and not kept, by why.", (REASON,))
METRICS_REFUSED: Final = counter(
    "spanscore.metrics.refused",
    "{data_point}",
    "Data points of received metrics that were refused, by what was wrong with their metric, at least one for each "
    "metric. The others are sent on.",
    (REASON,),
)
LOGS_UNREAD: Final = counter(
    "spanscore.logs.unread",
    "{log_record}",
    "Log records that were taken and passed on unread, by why. Those that are read count as spans.",
    (REASON,),
)
TRACES_OPEN: Final = gauge("spanscore.traces.open", "{trace}", "Traces that wait for their root or for late spans.")
TRACES_CLOSED: Final = counter(
    "spanscore.traces.closed", "{trace}", "Traces closed for the first time, by why.", (CLOSE_REASON,)
)
TRACES_REVISED: Final = counter(
    "spanscore.traces.revised", "{trace}", "Traces closed and scored again because of late spans."
)
RUNS_REVISED: Final = counter(
    "spanscore.runs.revised",
    "{run}",
    "Runs whose verdict changed when late spans had them scored again, by the verdict before and the one after.",
    (OUTCOME_FROM, OUTCOME_TO),
)
PAUSES_GIVEN_UP: Final = counter(
    "spanscore.pauses.given_up",
    "{trace}",
    "Traces with a run that pauses that are no longer held: if the run continues in its trace, its spans are late.",
    (REASON,),
)
TRACES_UNRECOGNISED: Final = counter(
    "spanscore.traces.unrecognised",
    "{trace}",
    "Traces without a span of a known instrumentation: other services' traces, which are left alone.",
)
CONVERSATIONS: Final = counter(
    "spanscore.conversations",
    "{conversation}",
    "Reported conversations by verdict: pass (an evaluation passed and none failed), fail, or none.",
    (OUTCOME,),
)
CONVERSATIONS_OPEN: Final = gauge(
    "spanscore.conversations.open", "{conversation}", "Conversations that wait for turns."
)
CONVERSATIONS_FINISHED: Final = counter(
    "spanscore.conversations.finished", "{conversation}", "Conversations that were finished, by why.", (REASON,)
)
CONVERSATIONS_TURNS: Final = counter(
    "spanscore.conversations.turns",
    "{trace}",
    "Traces of agents that were received as turns of conversations: joined (in a finished or an open one), without_key "
    "(no attribute names a conversation), or late (revisions of turns whose conversation was finished).",
    (REASON,),
)
CONVERSATIONS_AMBIGUOUS: Final = counter(
    "spanscore.conversations.ambiguous",
    "{trace}",
    "Turns that name several conversations, and were taken for a turn of the one that their root names first.",
)
DIALECT_ERRORS: Final = counter(
    "spanscore.dialect.errors",
    "{error}",
    "Spans on which a dialect raised an exception; the evaluations of their traces are skipped.",
    (DIALECT, ERROR_TYPE),
)
MEMORY_HELD: Final = gauge(
    "spanscore.memory.held",
    "By",
    "Size of all spans in memory, of open traces and of closed ones that late spans may reopen.",
)
MONITOR_RUNS: Final = counter(
    "spanscore.monitor.runs",
    "{run}",
    "Runs that a monitor counted. The value of spanscore.monitor.series has the values of the attributes in `by`.",
    SERIES,
)
MONITOR_RUNS_BAD: Final = counter("spanscore.monitor.runs.bad", "{run}", "Runs among these that failed.", SERIES)
MONITOR_EVIDENCE: Final = gauge(
    "spanscore.monitor.evidence",
    "1",
    "Evidence that runs fail more often than they may, as the logarithm to base 10 of its share of that of an alarm: "
    "from -12 to 0, which is the alarm.",
    SERIES,
)
MONITOR_OBJECTIVE: Final = gauge(
    "spanscore.monitor.objective", "1", "The share of a monitor's runs that may fail, `at_most`.", (MONITOR,)
)
MONITOR_ALARM: Final = gauge("spanscore.monitor.alarm", "1", "1 during an alarm of a monitor, else 0.", SERIES)
MONITOR_ALARMS: Final = counter("spanscore.monitor.alarms", "{alarm}", "Alarms of a monitor that have begun.", SERIES)
TRACE_SPAN_COUNT: Final = histogram(
    "spanscore.trace.span_count", "{span}", "Spans of a closed trace.", boundaries=COUNTS
)
EVALUATION_DURATION: Final = histogram(
    "spanscore.evaluation.duration", "s", "Time to read and evaluate one closed trace.", boundaries=MICROSECONDS
)
EVALUATION_ERRORS: Final = counter(
    "spanscore.evaluation.errors",
    "{error}",
    "Evaluations that failed because the evaluator raised an exception, took too long, or returned no valid outcome.",
    (EVALUATION, ERROR_TYPE),
)
SCORE_LATENCY: Final = histogram(
    "spanscore.score.latency",
    "s",
    "From the root span's arrival to its scores going out, the configured delay included.",
    boundaries=DELAYED_SECONDS,
)
QUEUE_SIZE: Final = gauge("spanscore.queue.size", "{item}", "Items waiting in a queue or being sent.", (QUEUE,))
QUEUE_CAPACITY: Final = gauge("spanscore.queue.capacity", "{item}", "Items a queue can hold.", (QUEUE,))
EXPORT_FAILURES: Final = counter(
    "spanscore.export.failures",
    "{failure}",
    "Reports and requests that an emitter could not send, by why.",
    (EMITTER, REASON),
)
EXPORT_DELAY: Final = gauge(
    "spanscore.export.delay",
    "s",
    "Time for which the receiver of an emitter has taken nothing although items wait; 0 while it takes requests.",
    (EMITTER,),
)
STORAGE_SIZE: Final = gauge(
    "spanscore.storage.size",
    "By",
    "Size of the stored data on disk: spans until they are scored, and the ids of closed traces.",
)
STORAGE_CAPACITY: Final = gauge(
    "spanscore.storage.capacity", "By", "Size at which spans are refused, with a request to retry."
)
STORAGE_LOST: Final = counter(
    "spanscore.storage.lost",
    "{record}",
    "Stored records that were damaged when they were read again, or whose file was removed: requests, ids of closed "
    "traces, conversations, and the state of monitors.",
)
STORAGE_REFUSED: Final = counter(
    "spanscore.storage.refused",
    "{request}",
    "Requests that could not be stored, by why; except for `too_large`, their senders were asked to retry.",
    (REASON,),
)
STORAGE_SYNC_FAILURES: Final = counter(
    "spanscore.storage.sync_failures",
    "{failure}",
    "Writes that the disk did not confirm; their data is then written to a new file.",
)
KAFKA_RECORDS: Final = counter(
    "spanscore.kafka.records",
    "{record}",
    "Records read from Kafka, including records that another member of the group read before.",
)
KAFKA_POISON: Final = counter(
    "spanscore.kafka.poison_records",
    "{record}",
    "Records that could not be used, by why; they are in the dead-letter topic where there is one, but for "
    "`unreadable` ones, which the client could not decompress, or whose checksum is wrong.",
    (REASON,),
)
KAFKA_NOT_PUT_ASIDE: Final = counter(
    "spanscore.kafka.dead_letter_failures",
    "{record}",
    "Records that could not be used, nor written to the dead-letter topic, by the client's error: lost.",
    (REASON,),
)
KAFKA_MISROUTED: Final = counter(
    "spanscore.kafka.misrouted_records",
    "{record}",
    "Records that were used, but whose key is not their trace id: their traces may be split over members.",
    (REASON,),
)
KAFKA_PARTITIONS: Final = gauge(
    "spanscore.kafka.partitions", "{partition}", "Partitions of the topic that this member of the group reads."
)
KAFKA_LAG: Final = gauge("spanscore.kafka.lag", "{record}", "Records in these partitions that were not read yet.")
KAFKA_UNCOMMITTED: Final = gauge(
    "spanscore.kafka.uncommitted_records",
    "{record}",
    "Records in these partitions that were read, and are held for traces that are still open.",
)
KAFKA_REMOVED: Final = counter(
    "spanscore.kafka.removed_records",
    "{record}",
    "Records that the retention of the topic removed before they were read: lost.",
)
KAFKA_COMMIT_FAILURES: Final = counter(
    "spanscore.kafka.commit_failures",
    "{failure}",
    "Offsets that could not be committed, by the broker's error; the next commit repeats them.",
    (REASON,),
)
KEEP_TRACES: Final = counter(
    "spanscore.keep.traces",
    "{trace}",
    "Traces by the rule of the section keep that decided, and its decision: kept or dropped; with mode observe what "
    "the decision would be, here and in the next ones.",
    (KEEP_RULE, KEEP_DECISION),
)
KEEP_SPANS: Final = counter(
    "spanscore.keep.spans",
    "{span}",
    "Spans by decision: kept, dropped, or handed_over to another process. Received = these + those that wait.",
    (KEEP_DECISION,),
)
KEEP_BYTES: Final = counter(
    "spanscore.keep.bytes", "By", "Size of these spans as they were received, by decision.", (KEEP_DECISION,)
)
KEEP_UNDECIDED: Final = counter(
    "spanscore.keep.undecided",
    "{trace}",
    "Traces that were kept without a decision, by why: max_bytes was reached, their evaluation hung or failed, or the "
    "process was shut down.",
    (REASON,),
)
KEEP_LATE: Final = counter(
    "spanscore.keep.late",
    "{span}",
    "Spans that came after the decision of their trace, which they follow; also in spanscore.keep.spans.",
    (KEEP_DECISION,),
)
KEEP_INCONSISTENT: Final = counter(
    "spanscore.keep.inconsistent",
    "{span}",
    "Kept spans whose sampling threshold was left out of their trace state, because it was wrong or unreadable.",
)
KEEP_HELD: Final = gauge("spanscore.keep.held", "By", "Size of the spans that wait for the decision of their trace.")
PAGE_RUNS_SKIPPED: Final = counter(
    "spanscore.page.skipped_runs", "{run}", "Runs that came faster than the page of runs shows them; they are scored."
)
PAGE_CLIENTS_DROPPED: Final = counter(
    "spanscore.page.dropped_clients",
    "{client}",
    "Readers of pages that were disconnected because they did not read, or refused because too many others read.",
)

OWN_INSTRUMENTS: Final = tuple(each for each in globals().values() if isinstance(each, Instrument))
