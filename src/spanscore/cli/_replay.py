"""Recorded requests as they are sent again: in protobuf, with other ids or times where asked for, at a pace."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Decoded
from spanscore.otlp.forwardable import accepted_only_from_json
from spanscore.recordings.files import Recording
from spanscore.sending.client import Signal
from spanscore.wording.plural import plural

_LARGEST_TIME_NS: Final = 2**64 - 1

NOUNS: Final[dict[Signal, str]] = {"traces": "span", "logs": "log record"}
"""What the requests hold that are sent again."""


class Request(NamedTuple):
    """One recorded request, with spans or with logs."""

    source: Any
    """What it was decoded from: JSON as text or parsed, bytes of protobuf, or `Logs`."""
    decoded: Decoded

    @property
    def signal(self) -> Signal:
        """What it holds."""
        return "logs" if isinstance(self.source, Logs) else "traces"

    @property
    def items(self) -> int:
        """How many spans or log records it has."""
        return len(self.decoded.spans) + self.decoded.unread

    @property
    def body(self) -> bytes:
        """The request in protobuf."""
        source = self.source
        if isinstance(source, Logs):
            return source.body
        return source if isinstance(source, bytes) else accepted_only_from_json(source, self.decoded.spans)

    @property
    def moment_ns(self) -> int:
        """When it can have been sent first: when its last span ended, or record was written. 0 where nothing says."""
        if not isinstance(self.source, Logs):
            return max(span.end_ns or span.start_ns for span in self.decoded.spans)
        records = _records(ExportLogsServiceRequest.FromString(self.source.body))
        return max(record.time_unix_nano or record.observed_time_unix_nano for record in records)


class Outgoing(NamedTuple):
    """A request as it is sent."""

    signal: Signal
    body: bytes
    items: int
    """How many spans or log records it has."""


def requests(recording: Recording) -> Iterator[Request]:
    """Yield the requests of a recording in their order; those without spans or log records are left out.

    Args:
        recording: one that reads no log records: all are sent as they are.
    """
    for document in recording.documents():
        for decoded, source in zip(document.requests, document.sources, strict=True):
            request = Request(source, decoded)
            if request.items:
                yield request


def replayed(recording: Recording, pace: Pace, id_key: bytes | None, shift_ns: int) -> Iterator[Outgoing]:
    """Yield each request, rewritten, when it is time for it."""
    for request in requests(recording):
        body = rewritten(request.body, id_key, shift_ns, request.signal)
        pace.wait(request.moment_ns)
        yield Outgoing(request.signal, body, request.items)


def counted(counts: Counter[Signal]) -> str:
    """Return how many spans and log records there are, in words; signals that were not counted are left out."""
    return ", ".join(plural(counts[signal], noun) for signal, noun in NOUNS.items() if signal in counts) or "0 spans"


def rewritten(body: bytes, id_key: bytes | None = None, shift_ns: int = 0, signal: Signal = "traces") -> bytes:
    """Return a request with other ids, other times, or both; what is unknown to us in it stays.

    Args:
        body: the request in protobuf.
        id_key: makes new ids out of the old ones, so that spans and log records stay together and lead to the same
            spans; None keeps the ids.
        shift_ns: is added to every time.
        signal: what it holds.
    """
    if id_key is None and not shift_ns:
        return body
    return (_rewritten_logs if signal == "logs" else _rewritten_spans)(body, id_key, shift_ns)


def _rewritten_spans(body: bytes, id_key: bytes | None, shift_ns: int) -> bytes:
    request = ExportTraceServiceRequest.FromString(body)
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                _shift(span, shift_ns)
                if id_key is not None:
                    _renew(span, id_key)
    return request.SerializeToString()


def _rewritten_logs(body: bytes, id_key: bytes | None, shift_ns: int) -> bytes:
    request = ExportLogsServiceRequest.FromString(body)
    for record in _records(request):
        record.time_unix_nano = _shifted(record.time_unix_nano, shift_ns)
        record.observed_time_unix_nano = _shifted(record.observed_time_unix_nano, shift_ns)
        if id_key is not None:
            record.trace_id, record.span_id = _fresh(record.trace_id, id_key), _fresh(record.span_id, id_key)
    return request.SerializeToString()


def _records(request: ExportLogsServiceRequest) -> Iterator[LogRecord]:
    return (record for outer in request.resource_logs for inner in outer.scope_logs for record in inner.log_records)


def _shift(span: SpanMessage, shift_ns: int) -> None:
    span.start_time_unix_nano = _shifted(span.start_time_unix_nano, shift_ns)
    span.end_time_unix_nano = _shifted(span.end_time_unix_nano, shift_ns)
    for event in span.events:
        event.time_unix_nano = _shifted(event.time_unix_nano, shift_ns)


def _shifted(time_ns: int, shift_ns: int) -> int:
    """Return a time moved, within the range of times; one that is not set stays so."""
    return min(max(0, time_ns + shift_ns), _LARGEST_TIME_NS) if time_ns else 0


def _renew(span: SpanMessage, key: bytes) -> None:
    span.parent_span_id = _fresh(span.parent_span_id, key)
    identified: list[SpanMessage | SpanMessage.Link] = [span, *span.links]
    for each in identified:
        each.trace_id = _fresh(each.trace_id, key)
        each.span_id = _fresh(each.span_id, key)


def _fresh(old: bytes, key: bytes) -> bytes:
    """Return an id of the same length; what is no id, as a parent of zeros, stays as it is."""
    is_id = any(old) and len(old) <= blake2b.MAX_DIGEST_SIZE
    return blake2b(old, digest_size=len(old), key=key).digest() if is_id else old


class Pace:
    """Has requests wait until as much time has passed since the first as did when they were recorded.

    Args:
        speed: how many times faster than that; 0 is as fast as possible.
        clock: seconds that never run backwards.
        sleep: waits so many seconds.
    """

    def __init__(
        self, speed: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._speed: Final = speed
        self._clock: Final = clock
        self._sleep: Final = sleep
        self._first: tuple[int, float] | None = None

    def duration_ns(self, recorded_ns: int) -> int:
        """Return how long it takes to send what took that long when it was recorded."""
        return round(recorded_ns / self._speed) if self._speed else 0

    def wait(self, moment_ns: int) -> None:
        """Wait until it is time for a request of that moment; one out of order, or without a moment, goes at once."""
        if not self._speed or not moment_ns:
            return
        if self._first is None:
            self._first = moment_ns, self._clock()
        first_ns, began = self._first
        left_s = began + (moment_ns - first_ns) / 1e9 / self._speed - self._clock()
        if left_s > 0:
            self._sleep(left_s)
