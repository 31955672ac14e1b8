"""OTLP logs: the records that a dialect reads, as spans.

Most records that are sent are nobody's here. Those are told by their bytes, and neither parsed nor kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from spanscore.model import LOG_RECORD, NO_SPAN, Attributes, Span
from spanscore.otlp.field_numbers import (
    RESOURCE,
    RESOURCE_SPANS,
    SCOPE,
    SCOPE_SPANS,
    SPANS,
)
from spanscore.otlp.findings import (
    SPANS_PER_REQUEST,
    Caveat,
    Decoded,
    Findings,
    MalformedRequest,
    Refusal,
    SpanRefused,
)
from spanscore.otlp.kept_size import names_size
from spanscore.otlp.protobuf_check import MOST_FIELDS, PARSED_AT_ONCE, has_too_many_fields
from spanscore.otlp.protobuf_values import read_attributes, read_resource
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.wire import (
    FIELDS_LOOKED_AT,
    Place,
    WireError,
    fields,
    joined_field,
    length_delimited,
    readable_field,
)
from spanscore.reading.log_records import BODY, EVENT_NAMES, event_name, run_id, with_body

_TRACE_ID_LENGTH: Final = 16
_SPAN_ID_LENGTH: Final = 8
_FIELDS_AT_ONCE: Final = 8_192
_BROKEN: Final = b"\0"
"""No field begins with it."""
_IDS: Final = (LogRecord.TRACE_ID_FIELD_NUMBER, LogRecord.SPAN_ID_FIELD_NUMBER)

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


def decode_logs(body: bytes, names: Sequence[str], *, max_records: int | None = SPANS_PER_REQUEST) -> Decoded:
    """Decode the records of one request that are read.

    Args:
        body: a serialized ExportLogsServiceRequest.
        names: what the names of their events begin with.
        max_records: refuse a request with more of them.

    Raises:
        MalformedRequest: it is none, or has too many of them.
    """
    return at_once(decoding_logs(body, names, max_records=max_records))


def decoding_logs(body: bytes, names: Sequence[str], *, max_records: int | None = SPANS_PER_REQUEST) -> Steps[Decoded]:
    """Do what `decode_logs` does in steps, of which each reads one record."""
    decoding = _Decoding(body, tuple(names), max_records)
    if names and decoding.mentions((0, len(body))):
        try:
            yield from decoding.run()
        except WireError as error:
            message = f"not an ExportLogsServiceRequest in protobuf: {error}"
            raise MalformedRequest(message) from error
    found = decoding.findings.decoded(decoding.spans, decoding.sizes)
    records = yield from _counting(body)
    known = len(found.spans) + found.refused_spans + found.caveats.get(Caveat.NO_RUN, 0)
    return replace(found, unread=max(0, records - known))


def _counting(body: bytes) -> Steps[int]:
    """Count the records of a request, up to where it is broken."""
    count = 0
    with suppress(WireError):
        for resource_logs in _contents(body, (0, len(body)), RESOURCE_SPANS):
            for scope_logs in _contents(body, resource_logs, SCOPE_SPANS):
                for _ in _contents(body, scope_logs, SPANS):
                    count += 1
                    if not count % _FIELDS_AT_ONCE:
                        yield
    return count


def log_trace_ids(body: bytes) -> tuple[bytes, ...]:
    """Return the trace ids of the records in a request, each once, in their order.

    Raises:
        MalformedRequest: it cannot be decoded.
    """
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        message = "not an ExportLogsServiceRequest in protobuf"
        raise MalformedRequest(message) from error
    records = (record for each in request.resource_logs for scope in each.scope_logs for record in scope.log_records)
    return tuple(dict.fromkeys(trace_id for record in records if (trace_id := own_trace_id(record))))


def with_refused(body: bytes, lost: Iterable[Span], name: str) -> bytes:
    """Return a request with records more that will be refused, so that it is all that is to be kept of one in JSON.

    Args:
        body: an ExportLogsServiceRequest.
        lost: what stands for the refused records.
        name: of an event that is read.
    """
    broken = (LogRecord(trace_id=each.trace_id, span_id=each.span_id, event_name=name) for each in lost)
    records = b"".join(length_delimited(SPANS, record.SerializeToString() + _BROKEN) for record in broken)
    return body + length_delimited(RESOURCE_SPANS, length_delimited(SCOPE_SPANS, records))


def _contents(body: bytes, place: Place, number: int) -> Iterator[Place]:
    return ((first, behind) for _, known, first, behind in fields(body, place) if known == number)


def narrowed_logs(body: bytes, trace_ids: Collection[bytes]) -> bytes:
    """Return a request with the records of these traces only; a large one, or one with refused records, as it is."""
    if len(body) > PARSED_AT_ONCE:
        return body
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError:  # it has refused records
        return body
    for resource_logs in request.resource_logs:
        resource = read_resource(resource_logs.resource, Findings())
        for scope_logs in resource_logs.scope_logs:
            kept = [record for record in scope_logs.log_records if _trace_id(record, resource) in trace_ids]
            del scope_logs.log_records[:]
            scope_logs.log_records.extend(kept)
    return request.SerializeToString()


def _trace_id(record: LogRecord, resource: Attributes) -> bytes | None:
    return own_trace_id(record) or run_id(_attributes(record, Findings()), resource)


class _Decoding:
    """Makes the spans of one request from its records."""

    def __init__(self, body: bytes, names: tuple[str, ...], most: int | None) -> None:
        self.findings: Final = Findings(is_bounded=most is not None)
        self.spans: Final[list[Span]] = []
        self.sizes: Final[list[int]] = []
        self._body: Final = body
        self._names: Final = names
        self._most: Final = most
        self._mention: Final = _mention(names)

    def mentions(self, place: Place) -> bool:
        """Return whether a part of the request has the name of an event that is read."""
        return self._mention.search(self._body, *place) is not None

    def run(self) -> Steps[None]:
        """Read all records whose bytes have such a name."""
        for resource_logs in (yield from self._inside((0, len(self._body)), RESOURCE_SPANS)):
            resource: Attributes | None = None
            for scope_logs in (yield from self._inside(resource_logs, SCOPE_SPANS)):
                scope: str | None = None
                for record in (yield from self._inside(scope_logs, SPANS)):
                    yield
                    try:
                        if resource is None:
                            message = _parsed(Resource, joined_field(self._body, resource_logs, RESOURCE))
                            resource = read_resource(message, self.findings)
                        if scope is None:
                            scope = _parsed(InstrumentationScope, joined_field(self._body, scope_logs, SCOPE)).name
                        self._add(self._body[slice(*record)], resource, scope)
                    except SpanRefused as refused:
                        self.findings.refuse(refused.reason, f"the log record at byte {record[0]}: {refused}")
                        self.findings.lose(
                            *(readable_field(self._body, record, number, FIELDS_LOOKED_AT) for number in _IDS)
                        )

    def _inside(self, place: Place, number: int) -> Steps[list[Place]]:
        """Return where those messages lie, in the fields of that number, that have such a name."""
        found: list[Place] = []
        for count, (_, known, first, behind) in enumerate(fields(self._body, place), 1):
            if known == number and self.mentions((first, behind)):
                found.append((first, behind))
            if not count % _FIELDS_AT_ONCE:
                yield
        return found

    def _add(self, content: bytes, resource: Attributes, scope: str) -> None:
        record = _parsed(LogRecord, content)
        name = _event_name(record, self._names)
        if name is None:
            return
        if self._most is not None and len(self.spans) >= self._most:
            message = f"the request has more than {self._most} log records that are read"
            raise MalformedRequest(message)
        findings = self.findings
        findings.begin_span()
        attributes = _attributes(record, findings)
        trace_id = own_trace_id(record) or run_id(attributes, resource)
        if trace_id is None:
            findings.caveats[Caveat.NO_RUN] += 1
            return
        time_ns = record.time_unix_nano or record.observed_time_unix_nano
        span = Span(
            trace_id,
            blake2b(content, digest_size=_SPAN_ID_LENGTH).digest(),
            record.span_id if len(record.span_id) == _SPAN_ID_LENGTH else NO_SPAN,
            name,
            time_ns,
            time_ns,
            LOG_RECORD,
            attributes=attributes,
            scope=scope,
            resource=resource,
            dropped_attributes=record.dropped_attributes_count,
        )
        self.spans.append(span)
        self.sizes.append(findings.size + names_size(name, "", scope))


@lru_cache(maxsize=16)
def _mention(names: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(name.encode()) for name in names))


def _parsed(message_type: type[_AnyMessage], content: bytes) -> _AnyMessage:
    try:
        if has_too_many_fields(content, message_type):
            message = f"large, and has more than {MOST_FIELDS} fields"
            raise SpanRefused(Refusal.TOO_MANY_FIELDS, message)
        return message_type.FromString(content)
    except (DecodeError, WireError) as error:
        message = "not valid protobuf"
        raise SpanRefused(Refusal.MALFORMED, message) from error


def _attributes(record: LogRecord, findings: Findings) -> Attributes:
    attributes = read_attributes(record.attributes, findings)
    return with_body(attributes, read_attributes([KeyValue(key=BODY, value=record.body)], findings).get(BODY))


def _event_name(record: LogRecord, names: tuple[str, ...]) -> str | None:
    """Return the name of a record's event: emitters write it in its field, in an attribute, or as the body."""
    told = (pair.value.string_value for pair in record.attributes if pair.key in EVENT_NAMES)
    return event_name((record.event_name, record.body.string_value, *told), names)


def own_trace_id(record: LogRecord) -> bytes:
    """Return the trace id of a record; empty where it has none."""
    trace_id = record.trace_id
    return trace_id if len(trace_id) == _TRACE_ID_LENGTH and any(trace_id) else b""
