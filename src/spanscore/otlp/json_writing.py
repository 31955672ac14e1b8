"""OTLP/JSON turned into protobuf: log records and metrics before they are read, spans to be stored or sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.model import Span
from spanscore.otlp.field_numbers import RESOURCE, RESOURCE_SPANS, SCHEMA_URL, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import Findings, MalformedRequest, Refusal, RefusedSpans, SpanRefused
from spanscore.otlp.forwardable import AcceptedSpans
from spanscore.otlp.from_json import losing
from spanscore.otlp.json_in_steps import JsonMessages, ids_of, members
from spanscore.otlp.json_names import renaming
from spanscore.otlp.json_repeated import LOG_TIMES, checking_items
from spanscore.otlp.json_scalars import text
from spanscore.otlp.json_shape import LOGS, METRICS, ResourcePart, ScopePart, checking_way, taking_apart
from spanscore.otlp.json_shape import SPANS as TRACES
from spanscore.otlp.slices import Steps, at_once
from spanscore.otlp.strict_json import check_number_of_values, opened, opening
from spanscore.otlp.wire import length_delimited, length_prefix

_MOST_OBJECTS: Final = 500_000
"""Objects and lists of a request with logs or metrics: honest requests of 15 MB have as many."""

_KINDS_OF_METRICS: Final = tuple(each.json_name for each in Metric.DESCRIPTOR.oneofs_by_name["data"].fields)


class EncodedRecords(NamedTuple):
    """A request with logs or metrics."""

    body: bytes
    """An ExportLogsServiceRequest or ExportMetricsServiceRequest in protobuf; empty if no record is left."""
    refused: tuple[RefusedSpans, ...]
    """The records, or data points of metrics, that are not in it."""
    lost: tuple[Span, ...]
    """Stand-ins for the refused records whose trace id can be read."""


class EncodedSpans(NamedTuple):
    """The accepted spans of a request."""

    body: bytes
    """An ExportTraceServiceRequest in protobuf."""
    left_out: tuple[RefusedSpans, ...] = ()
    """The accepted spans that are not in it, as protobuf cannot represent them."""
    lost: tuple[Span, ...] = ()
    """Stand-ins for these."""


def logs_to_protobuf(document: Any) -> EncodedRecords:
    """Write a parsed request with logs (see `parse_request`) in protobuf, without empty resources and scopes.

    Raises:
        MalformedRequest: it is no such request, or has fields but none that leads to records.
    """
    return at_once(_writing_records(document, LOGS, LogRecord))


def writing_logs(body: bytes) -> Steps[EncodedRecords]:
    """Write a request with logs that is not parsed like `logs_to_protobuf`, in steps of one record.

    Raises:
        MalformedRequest: it is not JSON, has too many values, or as `logs_to_protobuf`.
    """
    if not body:
        return EncodedRecords(b"", (), ())
    check_number_of_values(body, _MOST_OBJECTS)
    renamed = yield from renaming(body)
    request = yield from opening(renamed)
    yield from checking_items(renamed, (yield from counting_records(request)), LOG_TIMES)
    return (yield from _writing_records(request, LOGS, LogRecord))


def _writing_records(request: Any, key: str, item_type: Any) -> Steps[EncodedRecords]:
    writing = _Writing(item_type)
    written = yield from writing.request((yield from taking_apart(request, key)))
    refused = [*writing.findings.refused.values()]
    try:
        yield from checking_way(request, key)
    except MalformedRequest as error:
        if not written and not refused:
            raise
        refused.append(RefusedSpans(Refusal.UNKNOWN_FIELD, 0, error.what))
    return EncodedRecords(written, tuple(refused), tuple(writing.findings.lost))


def writing_metrics(body: bytes) -> Steps[EncodedRecords]:
    """Return a request with metrics in OTLP/JSON as protobuf, in steps that each write a few values.

    Raises:
        MalformedRequest: it is none, has too many values, or fields but none that leads to metrics.
    """
    check_number_of_values(body, _MOST_OBJECTS)
    return (yield from _writing_records((yield from _opening(body)), METRICS, Metric))


def accepted_only_from_json(request: Any, spans: Sequence[Span]) -> EncodedSpans:
    """Return a JSON request (text or parsed) that was decoded to these spans, in protobuf without its refused spans.

    Also leaves out spans that protobuf cannot represent, or whose resource or scope it cannot: with attribute values
    nested some 30 deep, or with wrong types in fields that decoding does not read. Leaves out wrong schema URLs.
    """
    body = request.encode(errors="replace") if isinstance(request, str) else request
    return at_once(accepting_only_from_json(body, spans) if isinstance(body, bytes) else _accepting(body, spans))


def accepting_only_from_json(body: bytes, spans: Sequence[Span]) -> Steps[EncodedSpans]:
    """Convert a request that is not parsed like `accepted_only_from_json`, in steps of one span."""
    return (yield from _accepting((yield from _opening(body)), spans))


def counting_records(request: Any) -> Steps[int]:
    """Return the number of log records in a request, as it is written or parsed, in steps."""
    return sum(part.items for part in (yield from taking_apart(request, LOGS)))


def _accepting(request: Any, spans: Sequence[Span]) -> Steps[EncodedSpans]:
    parts = yield from taking_apart(request, TRACES)
    is_whole = len(spans) == sum(part.items for part in parts)
    writing = _WritingAccepted(None if is_whole else AcceptedSpans(spans))
    body = yield from writing.request(parts)
    return EncodedSpans(body, tuple(writing.findings.refused.values()), tuple(writing.findings.lost))


def _opening(body: bytes) -> Steps[Any]:
    return (yield from opening((yield from renaming(body))))


class _Writing:
    """Writes a request with items of one type, and reports refused items. Leaves out parts without items."""

    def __init__(self, item_type: Any) -> None:
        self.findings: Final = Findings(is_bounded=False)
        self._item_type: Final = item_type
        self._messages: Final = JsonMessages()

    def request(self, parts: Sequence[ResourcePart]) -> Steps[bytes]:
        """Write the parts of a request."""
        written = bytearray()
        for part in parts:
            around = yield from self._around(part, "resource", Resource, part.scopes)
            inside = bytearray()
            for scope in () if around is None else part.scopes:
                inside += yield from self._scope(scope)
                yield  # a copy of a large request takes some 10 ms, and more on a busy machine
            if inside and around is not None:
                written += length_prefix(RESOURCE_SPANS, len(around) + len(inside)) + around
                written += inside
        return bytes(written)

    def _scope(self, scope: ScopePart) -> Steps[bytes]:
        around = yield from self._around(scope, "scope", InstrumentationScope, [scope])
        if around is None:
            return b""
        items = bytearray()
        for index, raw in enumerate(scope.items):
            content = yield from self._item(raw, f"{scope.where}.{scope.name}[{index}]")
            yield
            if content is not None:
                items += length_prefix(SPANS, len(content))
                items += content
        yield
        return length_prefix(SCOPE_SPANS, len(around) + len(items)) + around + items if items else b""

    def _around(
        self, part: ResourcePart | ScopePart, key: str, message_type: Any, scopes: Sequence[ScopePart]
    ) -> Steps[bytes | None]:
        """Write the resource or scope around the items of these scopes, and its schema URL; None if it is refused."""
        try:
            return (yield from self._written_around(part, key, message_type))
        except SpanRefused as refused:
            items = [item for scope in scopes for item in scope.items]
            count = 0
            for item in items:
                count += self._counted(item)
                yield
            self.findings.refuse(refused.reason, f"{part.where}.{refused}", count)
            yield from losing(refused.reason, items, self._item_type, self.findings)
            return None

    def _written_around(self, part: ResourcePart | ScopePart, key: str, message_type: Any) -> Steps[bytes]:
        schema_url = self._schema_url(opened(part.fields.get("schemaUrl")))
        message = yield from self._messages.around(part.fields, key, message_type)
        written = b"" if message is None else length_delimited(RESOURCE, message.SerializeToString())
        return written + length_delimited(SCHEMA_URL, schema_url) if schema_url else written

    def _schema_url(self, raw: Any) -> bytes:
        return b"" if raw is None else text(raw, "schemaUrl").encode()

    def _item(self, raw: Any, where: str) -> Steps[bytes | None]:
        """Write an item; None if it is refused."""
        try:
            content: bytes = (yield from self._messages.making(raw, self._item_type)).SerializeToString()
        except SpanRefused as refused:
            self.findings.refuse(refused.reason, f"{where}: {refused}", self._counted(raw))
            self.findings.lose(refused.reason, *ids_of(raw, self._item_type))
            return None
        return content

    def _counted(self, raw: Any) -> int:
        """Return 1, or of a metric the number of its data points."""
        fields = members(raw, Metric) if self._item_type is Metric else None
        kinds = [members(fields.get(kind), Gauge) for kind in _KINDS_OF_METRICS] if isinstance(fields, dict) else []
        points = [opened(kind.get("dataPoints")) for kind in kinds if isinstance(kind, dict)]
        return max(1, sum(len(each) for each in points if isinstance(each, list)))


class _WritingAccepted(_Writing):
    """Writes the accepted spans of a request, or all if none was refused. Leaves out spans that cannot be written."""

    def __init__(self, accepted: AcceptedSpans | None) -> None:
        super().__init__(SpanMessage)
        self._accepted: Final = accepted
        self._judged: Final = JsonMessages(Findings(is_bounded=False))
        self._unwritable: Final[dict[str, tuple[Refusal, str]]] = {}
        """Why the resource or the scope around the next spans cannot be written."""

    def _around(
        self, part: ResourcePart | ScopePart, key: str, message_type: Any, _scopes: Sequence[ScopePart]
    ) -> Steps[bytes | None]:
        self._unwritable.pop(key, None)
        try:
            return (yield from self._written_around(part, key, message_type))
        except SpanRefused as refused:
            unwritable = (refused.reason, f"{part.where}.{refused}")
        except MalformedRequest as error:
            unwritable = (Refusal.MALFORMED, f"{part.where}.{key}: {error}")
        try:
            yield from self._judged.around(part.fields, key, message_type)
        except SpanRefused:
            return None  # no span of it was accepted
        self._unwritable[key] = unwritable
        return b""

    def _schema_url(self, raw: Any) -> bytes:
        return super()._schema_url(raw) if isinstance(raw, str) else b""

    def _item(self, raw: Any, where: str) -> Steps[bytes | None]:
        if self._accepted is not None:
            try:
                judged = yield from self._judged.making(raw, SpanMessage)
            except SpanRefused:
                return None
            if not self._accepted.is_next(judged):
                return None
        unwritable = next(iter(self._unwritable.values()), None)
        if unwritable is None:
            try:
                return (yield from super()._item(raw, where))
            except MalformedRequest as error:
                unwritable = (Refusal.MALFORMED, f"{where}: {error}")
        reason, why = unwritable
        self.findings.refuse(reason, why)
        self.findings.lose(reason, *ids_of(raw, SpanMessage))
        return None
