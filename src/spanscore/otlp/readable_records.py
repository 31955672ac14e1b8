"""Requests with logs or metrics in protobuf, without the records that nobody can parse: one of them costs no other.

A metric is a record here; it is counted by its data points.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import Gauge, Metric, ResourceMetrics, ScopeMetrics

from spanscore.otlp.field_numbers import RESOURCE_SPANS, SCOPE_SPANS, SPANS
from spanscore.otlp.findings import Findings, MalformedRequest, SpanRefused
from spanscore.otlp.from_logs import BEGINS_NO_RECORD, IDS
from spanscore.otlp.from_protobuf import parsing
from spanscore.otlp.json_writing import EncodedRecords
from spanscore.otlp.limits import SPANS_PER_REQUEST
from spanscore.otlp.protobuf_check import checking
from spanscore.otlp.slices import Steps
from spanscore.otlp.wire import FIELDS_LOOKED_AT, Place, WireError, fields, length_delimited, readable_field

_MOST_FIELDS: Final = 500_000
"""Fields around the values of records that are taken apart, as many as objects in JSON."""
_FIELDS_AT_ONCE: Final = 8_192
_RECORDS_AT_ONCE: Final = 64
_SEARCHED_AT_ONCE: Final = 2**18
_Levels: TypeAlias = tuple[tuple[Any, int, str], ...]
_LOGS: Final[_Levels] = (
    (ExportLogsServiceRequest, RESOURCE_SPANS, "resource_logs"),
    (ResourceLogs, SCOPE_SPANS, "scope_logs"),
    (ScopeLogs, SPANS, "log_records"),
)
"""The types of the messages around records, and where each has the next one."""
_METRICS: Final[_Levels] = (
    (ExportMetricsServiceRequest, RESOURCE_SPANS, "resource_metrics"),
    (ResourceMetrics, SCOPE_SPANS, "scope_metrics"),
    (ScopeMetrics, SPANS, "metrics"),
)
_KINDS_OF_METRICS: Final = frozenset(each.number for each in Metric.DESCRIPTOR.oneofs_by_name["data"].fields)
_POINTS: Final = Gauge.DATA_POINTS_FIELD_NUMBER
"""In a metric of any kind."""


def readable_logs(body: bytes, names: Sequence[str]) -> Steps[EncodedRecords]:
    """Return a request as it is, or without its broken records, resources and scopes, in steps.

    A broken record without any of these names, of events that are read, is not lost to its run.

    Raises:
        MalformedRequest: it is no such request, or has too many parts.
    """
    return (yield from _readable(body, _Salvaging(body, _LOGS, LogRecord, names)))


def readable_metrics(body: bytes) -> Steps[EncodedRecords]:
    """Return a request with metrics as it is, or without its broken metrics, resources and scopes, in steps.

    Raises:
        MalformedRequest: it is no such request, or has too many parts.
    """
    return (yield from _readable(body, _Salvaging(body, _METRICS, Metric, ())))


def _readable(body: bytes, salvaging: _Salvaging) -> Steps[EncodedRecords]:
    try:
        yield from checking(body, salvaging.levels[0][0])
    except MalformedRequest as error:
        if error.__cause__ is None:  # too many parts
            raise
        try:
            written = yield from salvaging.part((0, len(body)), 0, "")
        except (SpanRefused, WireError):
            raise error from None
        if not salvaging.records or salvaging.others == salvaging.records:
            raise
        return EncodedRecords(written, tuple(salvaging.findings.refused.values()), tuple(salvaging.findings.lost))
    return EncodedRecords(body, (), ())


class _Salvaging:
    """Writes the parts of one request that can be parsed, and notes the others."""

    def __init__(self, body: bytes, levels: _Levels, item_type: Any, names: Sequence[str]) -> None:
        self.levels: Final = levels
        self.item_type: Final = item_type
        self.findings: Final = Findings(is_bounded=False)
        self.records = 0
        self.others = 0
        """The records that begin like spans or metrics."""
        self._body: Final = body
        self._names: Final = [name.encode() for name in names]
        self._left = _MOST_FIELDS
        self._refused = 0

    def part(self, place: Place, level: int, where: str) -> Steps[bytes]:
        """Write a message around records; nothing if no record is left.

        Raises:
            SpanRefused: what the message has beside them is broken.
            WireError: the message is broken.
        """
        message_type, inner, name = self.levels[level]
        written = bytearray()
        inside: list[Place] = []
        for start, number, first, end in fields(self._body, place):
            if self._is_step():
                yield
            if number == inner:
                inside.append((first, end))
            else:
                written += self._body[start:end]
        yield
        around = yield from parsing(message_type, bytes(written))
        if isinstance(around, SpanRefused):
            raise around
        begun = len(written)
        for index, each in enumerate(inside):
            content = yield from self._inside(each, level + 1, f"{where}{name}[{index}]")
            written += length_delimited(inner, content) if content else b""
        return bytes(written) if len(written) > begun else b""

    def _inside(self, place: Place, level: int, where: str) -> Steps[bytes]:
        try:
            if level < len(self.levels):
                return (yield from self.part(place, level, f"{where}."))
            self.records += 1
            self.others += self.item_type is LogRecord and self._body.startswith(BEGINS_NO_RECORD, *place)
            yield
            content = self._body[slice(*place)]
            record = yield from parsing(self.item_type, content)
            if isinstance(record, SpanRefused):
                raise record
        except SpanRefused as refused:
            yield from self._refuse(refused, place, level, where)
            return b""
        return content

    def _refuse(self, refused: SpanRefused, place: Place, level: int, where: str) -> Steps[None]:
        """Note the records in a part that cannot be parsed, or the record itself."""
        places = yield from self._records(place, level)
        self._refused += len(places)
        if self._refused > SPANS_PER_REQUEST:
            raise MalformedRequest(f"more than {SPANS_PER_REQUEST} records of the request are broken")
        items = 0
        for count, each in enumerate(places):
            if not count % _RECORDS_AT_ONCE:
                yield
            items += 1 if self.item_type is LogRecord else (yield from self._points(each))
            if (yield from self._may_be_read(each)):
                ids = (readable_field(self._body, each, number, FIELDS_LOOKED_AT) for number in IDS)
                self.findings.lose(refused.reason, *ids)
        self.findings.refuse(refused.reason, f"{where}: {refused}", items)
        if level < len(self.levels):
            self.records += len(places)

    def _records(self, place: Place, level: int) -> Steps[list[Place]]:
        """Return the places of the records in a part."""
        places = [place]
        for _, inner, _ in self.levels[level:]:
            outers, places = places, []
            for outer in outers:
                for _, number, first, end in fields(self._body, outer):
                    if self._is_step():
                        yield
                    if number == inner:
                        places.append((first, end))
        return places

    def _points(self, metric: Place) -> Steps[int]:
        """Return the number of data points of a broken metric, as far as they can be told apart; at least 1."""
        points = 0
        with suppress(WireError, MalformedRequest):  # the request may have parts left that can be parsed
            for _, kind, start, behind in fields(self._body, metric):
                if self._is_step():
                    yield
                for _, number, _, _ in fields(self._body, (start, behind)) if kind in _KINDS_OF_METRICS else ():
                    if self._is_step():
                        yield
                    points += number == _POINTS
        return max(points, 1)

    def _is_step(self) -> bool:
        """Count a field, and return whether a step ends with it.

        Raises:
            MalformedRequest: the request has too many.
        """
        self._left -= 1
        if self._left < 0:
            raise MalformedRequest(f"the request is broken, and has more than {_MOST_FIELDS} parts")
        return not self._left % _FIELDS_AT_ONCE

    def _may_be_read(self, place: Place) -> Steps[bool]:
        for start in range(*place, _SEARCHED_AT_ONCE):
            yield
            end = min(place[1], start + _SEARCHED_AT_ONCE)
            if any(self._body.find(name, start, min(place[1], end + len(name) - 1)) >= 0 for name in self._names):
                return True
        return False
