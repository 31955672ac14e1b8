"""Recorded OTLP in protobuf: one bare request, or many, each behind its length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.otlp.from_logs import decode_logs, log_trace_ids
from spanscore.otlp.from_protobuf import decode_protobuf, trace_ids
from spanscore.otlp.protobuf_check import checking
from spanscore.otlp.signals import apart
from spanscore.otlp.slices import at_once
from spanscore.recordings._recorded import LENGTH_PREFIX, READ_ERRORS, REQUEST_TAG, Content, Document, unreadable

_WHOLE_FILE: Final = 0
_TRACE_ID_LENGTH: Final = 16


def protobuf_documents(content: Content, max_request_size: int, log_names: Sequence[str] = ()) -> Iterator[Document]:
    """Decode the requests of a recording one by one."""
    for number, end, body in _requests(content, max_request_size):
        if isinstance(body, MalformedRequest):
            yield Document(number, end, problems=(body,))
            continue
        found: list[tuple[Decoded, bytes | Logs]] = []
        problems: list[MalformedRequest] = []
        for part in _parts(body):
            try:
                found.append((_decoded(part, log_names), part))
            except MalformedRequest as error:
                problems.append(error)
        yield Document(number, end, [each for each, _ in found], problems, sources=[source for _, source in found])


def protobuf_mentions(content: Content, max_request_size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the trace ids of the spans in a recording, each with the place of a byte in the request that has it."""
    for _, end, body in _requests(content, max_request_size):
        found: Iterable[bytes] = ()
        if isinstance(body, bytes):
            with suppress(MalformedRequest):
                spans, logs = apart(body)
                found = (*trace_ids(spans), *log_trace_ids(logs))
        yield from ((end - 1, trace_id) for trace_id in found if len(trace_id) == _TRACE_ID_LENGTH)


def _parts(body: bytes) -> Iterator[bytes | Logs]:
    """Yield what is in a request: files that were written one behind the other are one, with spans and logs in it."""
    spans, logs = apart(body)
    if spans or not logs:
        yield spans
    if logs:
        yield Logs(logs)


def _decoded(part: bytes | Logs, log_names: Sequence[str]) -> Decoded:
    if not isinstance(part, Logs):
        return decode_protobuf(part, max_spans=None)
    at_once(checking(part.body, ExportLogsServiceRequest))
    return decode_logs(part.body, log_names, max_records=None)


def _requests(content: Content, max_request_size: int) -> Iterator[tuple[int, int, bytes | MalformedRequest]]:
    """Yield the number of each request, the end of its bytes, and the bytes."""
    too_large = MalformedRequest(
        f"the request is larger than {max_request_size:,} bytes; the rest of the file is not read"
    )
    number = end = 0
    try:
        if content.peek(1).startswith(REQUEST_TAG):
            body = content.read(max_request_size + 1)
            yield _WHOLE_FILE, len(body), body if len(body) <= max_request_size else too_large
            return
        while prefix := content.read(LENGTH_PREFIX):
            number += 1
            length = int.from_bytes(prefix, "big")
            if length > max_request_size:
                yield number, end, too_large
                return
            body = content.read(length)
            end += len(prefix) + len(body)
            if len(prefix) < LENGTH_PREFIX or len(body) < length:
                yield number, end, MalformedRequest("the request is cut off at the end of the file")
                return
            yield number, end, body
    except READ_ERRORS as error:
        yield _WHOLE_FILE, content.tell(), unreadable(error)
