"""Prints `docs/reference/metrics.md`: every metric, from the tables that the code itself uses.

python docs/metrics_reference.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from spanscore.collect.held_trace import DropReason
from spanscore.collect.remembered import GivenUp, LateReason
from spanscore.contracts.instruments.instrument import (
    FAIL_REASON,
    FAIL_REASONS,
    OUTCOME,
    RUNS,
    SCORE,
    SCORE_INSTRUMENTS,
    SWITCHABLE,
    Instrument,
    InstrumentKind,
)
from spanscore.contracts.instruments.own import (
    EXPORT_FAILURES,
    LOGS_UNREAD,
    METRICS_REFUSED,
    OWN_INSTRUMENTS,
    PAUSES_GIVEN_UP,
    REQUESTS_DECODED,
    REQUESTS_REFUSED,
    SPANS_DROPPED,
    SPANS_LATE,
    SPANS_REFUSED,
    TRACES_CLOSED,
)
from spanscore.messages.printable import MAX_LABEL_CHARS
from spanscore.metrics.exposition import prometheus_name
from spanscore.metrics.fail_reasons import ADMITTING_RUN, MOST_ADMITTED, MOST_COUNTED
from spanscore.metrics.measurements import OTHER_ERROR
from spanscore.metrics.series import MAX_NAMES, MAX_SERIES, OTHER
from spanscore.model import CloseReason
from spanscore.otlp.findings import Refusal, Unread
from spanscore.receivers.intake.requests import Busy, Wrong

_TOP: Final = f"""\
# Metrics

All metrics of spanscore, with their names in OpenTelemetry and in Prometheus. The exporters `otlp` and `prometheus`
have all of them, and so has an application's meter provider.

The number of series is bounded. No attribute holds an id. Names have no control characters, are in Unicode's form NFC
and have at most {MAX_LABEL_CHARS} characters. The first {MAX_NAMES} tool names and error types have their own series,
all later ones are `{OTHER}`. From {MAX_SERIES:,} series of a metric on, names from spans become `{OTHER}`. Sums over
all series stay exact.

A trace that is scored again because of late spans is counted once, at its first closing. Metrics of scores are sent at
most once, the events `gen_ai.evaluation.result` at least once with `storage`.

In Prometheus, an attribute is a label with `_` in place of each point, and empty if a series does not have it.

`service.instance.id` distinguishes replicas. It is new for each process unless `OTEL_RESOURCE_ATTRIBUTES` sets it: in
OTLP an attribute of the resource, in Prometheus a label of `target_info`, beside the `instance` of every series.
"""

_SWITCHABLE: Final = " and ".join(f"`{each.name}`" for each in SWITCHABLE)
_SCORES: Final = f"""\
## Scores

Every measurement carries an exemplar with the scored trace and span: in Prometheus as `trace_id` and `span_id`, on
pages in the OpenMetrics format only.

`{OUTCOME}` is `pass`, `fail`, `skipped` (too little was recorded to evaluate) or `failed` (the evaluator
raised an exception, took too long, or returned no valid outcome). `error.type` is there for failed calls only: the
one of the call's span, or else the type of its exception; `{OTHER_ERROR}` where the spans name none.

`{FAIL_REASONS.name}` counts each failing run of `{RUNS.name}` once for each of its [reasons](../report.md#reasons).
The first {ADMITTING_RUN - 1} runs of a reason count as `{OTHER}`; from then on it is a value of `{FAIL_REASON}`.

- For this, the runs of the {MOST_COUNTED:,} reasons are counted that were seen last.
- At most {MOST_ADMITTED} reasons have a value at once. If a further one is to get a value, the reason that was not seen
  for longest gives way, if it was not seen for an hour: its series stays and does not grow. Else the further reason
  counts as `{OTHER}`.
- After a restart of the process, both begin again.

{_SWITCHABLE} are metrics of the GenAI semantic conventions: name, unit, boundaries and attributes
are those of `open-telemetry/semantic-conventions-genai` at commit `048366ea40c59a587e88367b110ad56f5de4b736`; the
attribute `service.name` is ours. Instrumentations that record them count the same calls. Where both go to one place,
leave either out:

```yaml
metrics:
  disabled: [{", ".join(each.name for each in SWITCHABLE)}]
```

A board or a rule of `deploy` that shows tools then shows what the instrumentation records, if its series have
`service.name`. `{SCORE.name}` as a metric is no convention, although its name looks like one: the
conventions have scores in events only. Splunk's instrumentations use that name as well: their values
are those of other evaluators.
"""

_OWN: Final = """\
## spanscore itself

At every moment of rest, spans received = closed + live + late + refused + dropped.
"""

_CLOSED: Final[Mapping[str, str]] = {
    CloseReason.ROOT_ENDED: "the root span ended, and `decision_delay` passed",
    CloseReason.TIMED_OUT: "no span came for `trace_timeout`, or the trace reached `max_trace_age`",
    CloseReason.SPAN_LIMIT: "it had `span_limit` spans",
    CloseReason.SIZE_LIMIT: "it had `max_trace_bytes` bytes",
    CloseReason.EVICTED: "it was the oldest when there were more than `num_traces`, or their spans took more than "
    "`max_bytes`, or it kept the most when `storage` ran out",
    CloseReason.SHUTDOWN: "spanscore stopped",
}
_LATE: Final[Mapping[str, str]] = {
    LateReason.RESCORED: "it is in a later revision of its trace",
    LateReason.IGNORED: "`late_spans` is `ignore`",
    LateReason.OVER_LIMIT: "its trace has reached its limit of spans or bytes",
    LateReason.NOT_KEPT: "the other spans of its trace are no longer in memory",
}
_GIVEN_UP: Final[Mapping[str, str]] = {
    GivenUp.EXPIRED: "no span came for `pause_wait`",
    GivenUp.NO_ROOM: "it paused first when `pause_bytes` or `max_bytes` was reached",
    "storage": "room on disk was short, or a million traces were closed since; only after a restart its spans are late",
}
_DROPPED: Final[Mapping[str, str]] = {
    DropReason.DUPLICATE: "an equal span arrived before: a client sent it again",
    DropReason.CONFLICT: "eight different spans with its id arrived before",
    DropReason.HANDED_OVER: "its Kafka partition went to another consumer, which reads it again",
    "queue_full": "more spans ended in the application than the queue can hold",
    "shut_down": "it ended after spanscore was shut down",
}
_REFUSED: Final[Mapping[str, str]] = {
    Refusal.INVALID_TRACE_ID: "its trace id is missing, zero or of the wrong length",
    Refusal.INVALID_SPAN_ID: "its span id is missing, zero or of the wrong length",
    Refusal.INVALID_PARENT_SPAN_ID: "its parent span id is of the wrong length",
    Refusal.INVALID_LINK: "a link of it has an id of the wrong length",
    Refusal.INVALID_TIME: "a time of it is no 64-bit number",
    Refusal.INVALID_ENUM: "its kind or status code is neither a number nor a known name",
    Refusal.INVALID_VALUE: "a value of it has the wrong type, or is out of range",
    Refusal.INVALID_UTF8: "a text of it is not UTF-8",
    Refusal.TOO_DEEP: "a value of it nests too deeply",
    Refusal.TOO_MANY_FIELDS: "it is larger than 1 MiB and has more than 1,500,000 fields",
    Refusal.TOO_MANY_VALUES: "the spans before it have the 1,048,576 values that a request may have",
    Refusal.MALFORMED: "it is no OTLP span",
    Refusal.UNKNOWN_FIELD: "always 0: a resource or scope has only unknown fields, so that its spans are not known",
}
_POINTS_REFUSED: Final[Mapping[str, str]] = {
    Refusal.INVALID_TRACE_ID: "the trace id of an exemplar is not hexadecimal",
    Refusal.INVALID_SPAN_ID: "the span id of an exemplar is not hexadecimal",
    Refusal.INVALID_ENUM: "its temporality is neither a number nor a known name",
    Refusal.MALFORMED: "it is no OTLP metric",
    **{
        reason: _REFUSED[reason]
        for reason in (
            *(Refusal.INVALID_TIME, Refusal.INVALID_VALUE, Refusal.INVALID_UTF8),
            *(Refusal.TOO_DEEP, Refusal.TOO_MANY_FIELDS),
        )
    },
}
_UNREAD: Final[Mapping[str, str]] = {
    Unread.OTHER_EVENT: "no dialect reads events of its name",
    Unread.NO_RUN: "its run is not known, because it has neither a trace id nor a session; it may hold a tool call",
}
_DECODERS: Final[Mapping[str, str]] = {
    "fast": "the compiled one",
    "python": "the one that is always there; it also reads what is too unusual, wrong or large for the compiled one",
}
_REQUESTS_REFUSED: Final[Mapping[str, str]] = {
    Wrong.MALFORMED: "it cannot be read",
    Wrong.NO_VALID_SPAN: "every span, log record or metric in it was refused",
    Wrong.TOO_LARGE: "it is larger than allowed",
    Wrong.TIMED_OUT: "it did not come in time",
    Wrong.UNAUTHENTICATED: "it has no valid token",
    Wrong.MISDIRECTED: "it is from a web page that leads its own name to this machine",
    Wrong.UNSUPPORTED: "its encoding or its compression is not known",
    Wrong.NOT_FOUND: "nothing is served at its path",
    Wrong.METHOD_NOT_ALLOWED: "its method is not POST",
    Busy.STARTING: "spanscore starts, and replays stored requests first",
    Busy.SHUTTING_DOWN: "spanscore stops; clients send this request and later ones again",
    Busy.REQUESTS: "too many requests came at once",
    Busy.MEMORY: "requests hold too much memory",
    Busy.STORAGE: "it could not be stored",
    Busy.DOWNSTREAM: "the queue to the next receiver is full, or with `storage` or Kafka half full of events",
    Busy.FAULT: "an unexpected error in spanscore",
}
_EXPORT_FAILURES: Final[Mapping[str, str]] = {
    "queue_full": "the emitter's queue had no room",
    "not_started": "the exporter could not be started in the application's process",
    "shut_down": "the application had shut its meter or logger provider down, or spanscore stopped before it was sent",
    "export_failed": "the receiver refused",
    "rejected": "the receiver took the request, but not all that is in it",
    "any other": "the type of the error that was raised",
}
_REASONS: Final[Mapping[str, Mapping[str, str]]] = {
    TRACES_CLOSED.name: _CLOSED,
    SPANS_LATE.name: _LATE,
    PAUSES_GIVEN_UP.name: _GIVEN_UP,
    SPANS_DROPPED.name: _DROPPED,
    SPANS_REFUSED.name: _REFUSED,
    METRICS_REFUSED.name: _POINTS_REFUSED,
    LOGS_UNREAD.name: _UNREAD,
    EXPORT_FAILURES.name: _EXPORT_FAILURES,
    REQUESTS_DECODED.name: _DECODERS,
    REQUESTS_REFUSED.name: _REQUESTS_REFUSED,
}


def metrics_reference() -> str:
    """Return the page."""
    return "\n".join([_TOP, _SCORES, *_sections(SCORE_INSTRUMENTS), _OWN, *_sections(OWN_INSTRUMENTS)])


def undocumented() -> set[str]:
    """Return the reasons that the code can give and the page does not explain."""
    kinds: tuple[type[StrEnum], ...] = (CloseReason, GivenUp, LateReason, DropReason, Refusal, Unread, Wrong, Busy)
    explained = {reason for reasons in _REASONS.values() for reason in reasons}
    return {reason.value for kind in kinds for reason in kind} - explained


def _sections(instruments: Iterable[Instrument]) -> Iterator[str]:
    for instrument in instruments:
        yield "\n".join(_section(instrument)) + "\n"


def _section(instrument: Instrument) -> Iterator[str]:
    yield f"### `{instrument.name}`\n"
    yield f"{instrument.description}\n"
    yield f"- {instrument.kind.value.capitalize()}, unit `{instrument.unit}`"
    if instrument.kind is InstrumentKind.HISTOGRAM:
        yield f"- Boundaries: {', '.join(map(_decimal, instrument.boundaries))}"
    if instrument.attributes:
        yield f"- Attributes: {', '.join(f'`{attribute}`' for attribute in instrument.attributes)}"
    yield f"- Prometheus: `{prometheus_name(instrument)}`"
    reasons = _REASONS.get(instrument.name)
    if reasons:
        yield f"- `{instrument.attributes[-1]}`:"
        yield from (f"    - `{reason}`: {meaning}" for reason, meaning in reasons.items())


def _decimal(number: float) -> str:
    return f"{number:.6f}".rstrip("0").rstrip(".")


if __name__ == "__main__":
    sys.stdout.write(metrics_reference())
