"""OTLP logs: the records that a dialect reads, as spans.

No dialect reads most of the records that are sent. They are recognised by their bytes, and neither parsed nor kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
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
from spanscore.otlp.findings import Caveat, Decoded, Findings, MalformedRequest, Refusal, SpanRefused
from spanscore.otlp.kept_size import names_size
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, SPANS_PER_REQUEST
from spanscore.otlp.protobuf_check import MOST_FIELDS, PARSED_AT_ONCE, counting_fields
from spanscore.otlp.protobuf_values import read_attributes, read_resource
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.wire import (
    FIELDS_LOOKED_AT,
    Place,
    WireError,
    encoded_tag,
    fields,
    joined_field,
    length_delimited,
    readable_field,
)
from spanscore.trajectories.log_records import BODY, EVENT_NAMES, event_name, run_id, with_body

_TRACE_ID_LENGTH: Final = 16
_SPAN_ID_LENGTH: Final = 8
_FIELDS_AT_ONCE: Final = 8_192
_SEARCHED_AT_ONCE: Final = 2**18
"""Bytes: so many are searched for names in some 5 ms."""
BEGINS_NO_RECORD: Final = encoded_tag(1)
"""The id of a span's trace, or the name of a metric; of a log record the first field is a number."""
_BROKEN: Final = b"\0"
"""No field begins with it."""
IDS: Final = (LogRecord.TRACE_ID_FIELD_NUMBER, LogRecord.SPAN_ID_FIELD_NUMBER)

_AnyMessage = TypeVar("_AnyMessage", bound=Message)


def decode_logs(body: bytes, names: Sequence[str], *, max_records: int | None = SPANS_PER_REQUEST) -> Decoded:
    """Decode the records of one request that are read.

    Args:
        body: a serialized ExportLogsServiceRequest.
        names: the prefixes of the names of their events.
        max_records: refuse a request with more records.

    Raises:
        MalformedRequest: it is not such a request, or has too many records.
    """
    return at_once(decoding_logs(body, names, max_records=max_records))


def decoding_logs(body: bytes, names: Sequence[str], *, max_records: int | None = SPANS_PER_REQUEST) -> Steps[Decoded]:
    """Decode like `decode_logs`, in steps of one record."""
    decoding = _LogDecoding(body, tuple(names), max_records)
    try:
        yield from decoding.run()
    except WireError as error:
        raise MalformedRequest(f"not an ExportLogsServiceRequest in protobuf: {error}") from error
    if decoding.others and decoding.others == decoding.records:
        raise MalformedRequest("the request has no log records, but spans or metrics")
    found = decoding.findings.decoded(decoding.spans, decoding.sizes)
    known = len(found.spans) + found.refused_spans + found.caveats.get(Caveat.NO_RUN, 0)
    return replace(found, unread=max(0, decoding.records - known))


def log_trace_ids(body: bytes) -> tuple[bytes, ...]:
    """Return the trace ids of the records in a request, each once, in their order.

    Raises:
        MalformedRequest: it cannot be decoded.
    """
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        raise MalformedRequest("not an ExportLogsServiceRequest in protobuf") from error
    records = (record for each in request.resource_logs for scope in each.scope_logs for record in scope.log_records)
    return tuple(dict.fromkeys(trace_id for record in records if (trace_id := own_trace_id(record))))


def with_refused(body: bytes, lost: Iterable[Span], name: str) -> bytes:
    """Return a request with extra records that will be refused, so that it replaces the request in JSON in storage.

    Args:
        body: an ExportLogsServiceRequest.
        lost: stand-ins for the refused records.
        name: of an event that is read.
    """
    broken = (LogRecord(trace_id=each.trace_id, span_id=each.span_id, event_name=name) for each in lost)
    records = b"".join(length_delimited(SPANS, record.SerializeToString() + _BROKEN) for record in broken)
    return body + length_delimited(RESOURCE_SPANS, length_delimited(SCOPE_SPANS, records))


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


class _LogDecoding:
    """Makes the spans of one request from its records."""

    def __init__(self, body: bytes, names: tuple[str, ...], most: int | None) -> None:
        self.findings: Final = Findings(is_bounded=most is not None)
        self.spans: Final[list[Span]] = []
        self.sizes: Final[list[int]] = []
        self.records = 0
        """The records that were found, whether they are read or not."""
        self.others = 0
        """The records that begin like spans or metrics, and unlike log records."""
        self._body: Final = body
        self._names: Final = names
        self._most: Final = most
        self._mention: Final = _mention(names)
        self._overlap: Final = max((len(name.encode()) for name in names), default=1) - 1
        self._searched = 0
        self._looked_at = 0
        self._resource_logs = self._scope_logs = (0, 0)
        self._resource: Attributes | None = None
        self._scope: str | None = None

    def run(self) -> Steps[None]:
        """Read all records whose bytes have the name of an event that is read, and count the others.

        Raises:
            WireError: a message that has such a name is broken.
        """
        yield from self._each((0, len(self._body)), RESOURCE_SPANS, self._read_resource_logs)

    def _each(self, place: Place, number: int, read: Callable[[Place], Steps[None]]) -> Steps[None]:
        """Read the messages in the fields of that number, up to the first break of the message around them."""
        try:
            for _, known, first, behind in fields(self._body, place):
                self._looked_at += 1
                if not self._looked_at % _FIELDS_AT_ONCE:
                    yield
                if known == number:
                    yield from read((first, behind))
        except WireError:
            if (yield from self._mentions(place)):
                raise

    def _read_resource_logs(self, place: Place) -> Steps[None]:
        self._resource_logs, self._resource = place, None
        yield from self._each(place, SCOPE_SPANS, self._read_scope_logs)

    def _read_scope_logs(self, place: Place) -> Steps[None]:
        self._scope_logs, self._scope = place, None
        yield from self._each(place, SPANS, self._read_record)

    def _read_record(self, place: Place) -> Steps[None]:
        self.records += 1
        self.others += self._body.startswith(BEGINS_NO_RECORD, *place)
        if not (yield from self._mentions(place)):
            return
        yield
        try:
            if self._resource is None:
                content = joined_field(self._body, self._resource_logs, RESOURCE)
                self._resource = read_resource((yield from _parsing(Resource, content)), self.findings)
            if self._scope is None:
                content = joined_field(self._body, self._scope_logs, SCOPE)
                self._scope = (yield from _parsing(InstrumentationScope, content)).name
            content = self._body[slice(*place)]
            record = yield from _parsing(LogRecord, content)
            yield from self._adding(record, content, self._resource, self._scope)
        except SpanRefused as refused:
            self.findings.refuse(refused.reason, f"the log record at byte {place[0]}: {refused}")
            ids = (readable_field(self._body, place, number, FIELDS_LOOKED_AT) for number in IDS)
            self.findings.lose(refused.reason, *ids)

    def _mentions(self, place: Place) -> Steps[bool]:
        """Return whether a part of the request has the name of an event that is read."""
        if not self._names:
            return False
        start, end = place
        while True:
            behind = min(end, start + self._overlap + _SEARCHED_AT_ONCE)
            if self._mention.search(self._body, start, behind):
                return True
            self._searched += behind - start
            if self._searched >= _SEARCHED_AT_ONCE:
                self._searched = 0
                yield
            if behind == end:
                return False
            start = behind - self._overlap

    def _adding(self, record: LogRecord, content: bytes, resource: Attributes, scope: str) -> Steps[None]:
        yield  # a text of 60 MiB takes a tenth of a second each time that it is looked at
        name = _event_name(record, self._names)
        if name is None:
            return
        if self._most is not None and len(self.spans) >= self._most:
            raise MalformedRequest(f"the request has more than {self._most} log records that are read")
        yield
        findings = self.findings
        findings.begin_span()
        attributes = _attributes(record, findings)
        yield
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


def _parsing(message_type: type[_AnyMessage], content: bytes) -> Steps[_AnyMessage]:
    try:
        if (yield from counting_fields(content, message_type)):
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
    # Further ones are left out of a record, and of such a message each field that is looked at becomes an object.
    pairs = record.attributes[:ATTRIBUTES_PER_SPAN]
    told = (pair.value.string_value for pair in pairs if pair.key in EVENT_NAMES)
    return event_name((record.event_name, record.body.string_value, *told), names)


def own_trace_id(record: LogRecord) -> bytes:
    """Return the trace id of a record; empty if it has none."""
    trace_id = record.trace_id
    return trace_id if len(trace_id) == _TRACE_ID_LENGTH and any(trace_id) else b""
