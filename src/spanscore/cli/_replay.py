"""Recorded requests as they are sent again: in protobuf, with other ids or times where asked for, at a pace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import Span
from spanscore.otlp.forwardable import accepted_only_from_json
from spanscore.recordings.files import Recording

_LARGEST_TIME_NS: Final = 2**64 - 1


class Request(NamedTuple):
    """One recorded request."""

    source: Any
    """What it was decoded from: JSON as text or parsed, or bytes of protobuf."""
    spans: list[Span]

    @property
    def body(self) -> bytes:
        """The request in protobuf."""
        return self.source if isinstance(self.source, bytes) else accepted_only_from_json(self.source, self.spans)

    @property
    def moment_ns(self) -> int:
        """When it can have been sent first: when its last span ended. 0 where no span says."""
        return max(span.end_ns or span.start_ns for span in self.spans)


def requests(recording: Recording) -> Iterator[Request]:
    """Yield the requests of a recording in their order; those without spans are left out."""
    for document in recording.documents():
        for decoded, source in zip(document.requests, document.sources, strict=True):
            if decoded.spans:
                yield Request(source, decoded.spans)


def replayed(recording: Recording, pace: Pace, id_key: bytes | None, shift_ns: int) -> Iterator[tuple[bytes, int]]:
    """Yield each request, rewritten, when it is time for it, and how many spans it has."""
    for request in requests(recording):
        body = rewritten(request.body, id_key, shift_ns)
        pace.wait(request.moment_ns)
        yield body, len(request.spans)


def rewritten(body: bytes, id_key: bytes | None = None, shift_ns: int = 0) -> bytes:
    """Return a request with other ids, other times, or both; what is unknown to us in it stays.

    Args:
        body: the request in protobuf.
        id_key: makes new ids out of the old ones, so that spans stay together and lead to the same spans; None keeps
            the ids.
        shift_ns: is added to every time.
    """
    if id_key is None and not shift_ns:
        return body
    request = ExportTraceServiceRequest.FromString(body)
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                _shift(span, shift_ns)
                if id_key is not None:
                    _renew(span, id_key)
    return request.SerializeToString()


def _shift(span: SpanMessage, shift_ns: int) -> None:
    def shifted(time_ns: int) -> int:
        return min(max(0, time_ns + shift_ns), _LARGEST_TIME_NS) if time_ns else 0

    span.start_time_unix_nano = shifted(span.start_time_unix_nano)
    span.end_time_unix_nano = shifted(span.end_time_unix_nano)
    for event in span.events:
        event.time_unix_nano = shifted(event.time_unix_nano)


def _renew(span: SpanMessage, key: bytes) -> None:
    span.parent_span_id = _fresh(span.parent_span_id, key)
    identified: list[SpanMessage | SpanMessage.Link] = [span, *span.links]
    for each in identified:
        each.trace_id = _fresh(each.trace_id, key)
        each.span_id = _fresh(each.span_id, key)


def _fresh(old: bytes, key: bytes) -> bytes:
    """Return an id of the same length; what is no id, as a parent of zeros, stays as it is."""
    return blake2b(old, digest_size=len(old), key=key).digest() if any(old) else old


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
