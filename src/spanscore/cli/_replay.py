"""Recorded requests as they are sent again: in protobuf, with other ids or times where asked for, at a pace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
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

    body: bytes
    """In protobuf."""
    spans: int
    moment_ns: int
    """When it can have been sent first: when its last span ended. 0 where no span says."""


def requests(recording: Recording) -> Iterator[Request]:
    """Yield the requests of a recording in their order; those without spans are left out."""
    for document in recording.documents():
        for decoded, source in zip(document.requests, document.sources, strict=True):
            if decoded.spans:
                yield Request(_body(source, decoded.spans), len(decoded.spans), _moment_ns(decoded.spans))


def moments_ns(recording: Recording) -> Iterator[int]:
    """Yield the moments of the requests of a recording."""
    for document in recording.documents():
        for decoded in document.requests:
            if decoded.spans:
                yield _moment_ns(decoded.spans)


def _body(source: Any, spans: list[Span]) -> bytes:
    return source if isinstance(source, bytes) else accepted_only_from_json(source, spans)


def _moment_ns(spans: Iterable[Span]) -> int:
    return max(span.end_ns or span.start_ns for span in spans)


class Rewriting:
    """Gives requests other ids, other times, or both.

    Args:
        id_key: makes new ids out of the old ones, so that spans stay together and lead to the same spans; None keeps
            the ids.
        shift_ns: is added to every time.
    """

    def __init__(self, id_key: bytes | None = None, shift_ns: int = 0) -> None:
        self._id_key: Final = id_key
        self._shift_ns: Final = shift_ns

    def rewritten(self, body: bytes) -> bytes:
        """Return the request with other ids and times; what is unknown to us in it stays."""
        if self._id_key is None and not self._shift_ns:
            return body
        request = ExportTraceServiceRequest.FromString(body)
        for resource_spans in request.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    self._rewrite(span)
        return request.SerializeToString()

    def _rewrite(self, span: SpanMessage) -> None:
        if self._id_key is not None:
            span.trace_id = _fresh(span.trace_id, self._id_key)
            span.span_id = _fresh(span.span_id, self._id_key)
            span.parent_span_id = _fresh(span.parent_span_id, self._id_key)
            for link in span.links:
                link.trace_id = _fresh(link.trace_id, self._id_key)
                link.span_id = _fresh(link.span_id, self._id_key)
        span.start_time_unix_nano = self._shifted(span.start_time_unix_nano)
        span.end_time_unix_nano = self._shifted(span.end_time_unix_nano)
        for event in span.events:
            event.time_unix_nano = self._shifted(event.time_unix_nano)

    def _shifted(self, time_ns: int) -> int:
        return min(max(0, time_ns + self._shift_ns), _LARGEST_TIME_NS) if time_ns else 0


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
