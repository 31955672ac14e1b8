"""Recorded OTLP in protobuf: one bare request, or many, each after its length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.otlp.from_logs import decode_logs, log_trace_ids
from spanscore.otlp.from_protobuf import decode_protobuf, trace_ids
from spanscore.otlp.readable_records import readable_logs
from spanscore.otlp.signals import apart
from spanscore.otlp.slices import at_once
from spanscore.recordings._recorded import (
    LENGTH_PREFIX,
    READ_ERRORS,
    REQUEST_TAG,
    Content,
    CutOff,
    RecordedDocument,
    broken,
    unreadable,
)

_WHOLE_FILE: Final = 0
_TRACE_ID_LENGTH: Final = 16
_MOST_EMPTY: Final = 10_000
"""Requests without content, one after the other. A file system may leave a file full of zeros after a loss of power."""


def protobuf_documents(
    content: Content, max_request_size: int, log_names: Sequence[str] = ()
) -> Iterator[RecordedDocument]:
    """Decode the requests of a recording one by one."""
    for number, end, body in _requests(content, max_request_size):
        if isinstance(body, MalformedRequest):
            yield RecordedDocument(number, end, problems=(body,), is_cut_off=isinstance(body, CutOff))
            continue
        found: list[tuple[Decoded, bytes | Logs]] = []
        problems: list[MalformedRequest] = []
        try:
            parts = list(_parts(body))
        except Exception as error:  # noqa: BLE001 - a request may hold anything, and costs only itself
            problems.append(broken(error))
            parts = []
        for part in parts:
            try:
                found.append(_decoded(part, log_names))
            except Exception as error:  # noqa: BLE001 - as above
                problems.append(broken(error))
        yield RecordedDocument(
            number, end, [each for each, _ in found], problems, sources=[source for _, source in found]
        )


def protobuf_mentions(
    content: Content, max_request_size: int, log_names: Sequence[str] = ()
) -> Iterator[tuple[int, bytes]]:
    """Yield the trace ids of the spans in a recording, each with the place of a byte in the request that has it."""
    for _, end, body in _requests(content, max_request_size):
        found: Iterable[bytes] = ()
        if isinstance(body, bytes):
            with suppress(Exception):  # reading the documents comes to it as well
                spans, logs = apart(body)
                readable, _, lost = at_once(readable_logs(logs, log_names))
                found = (*trace_ids(spans), *log_trace_ids(readable), *(each.trace_id for each in lost))
        yield from ((end - 1, trace_id) for trace_id in found if len(trace_id) == _TRACE_ID_LENGTH)


def _parts(body: bytes) -> Iterator[bytes | Logs]:
    """Yield the parts of a request: concatenated files are one request, with spans and logs in it."""
    spans, logs = apart(body)
    if spans or not logs:
        yield spans
    if logs:
        yield Logs(logs)


def _decoded(part: bytes | Logs, log_names: Sequence[str]) -> tuple[Decoded, bytes | Logs]:
    """Return a decoded part, and its bytes; of logs without broken records."""
    if not isinstance(part, Logs):
        return decode_protobuf(part, max_spans=None), part
    body, refused, lost = at_once(readable_logs(part.body, log_names))
    return decode_logs(body, log_names, max_records=None).refusing(refused, lost), Logs(body)


def _requests(content: Content, max_request_size: int) -> Iterator[tuple[int, int, bytes | MalformedRequest]]:
    """Yield the number of each request, the end of its bytes, and the bytes."""
    too_large = MalformedRequest(
        f"the request is larger than {max_request_size:,} bytes; the rest of the file is not read"
    )
    zeros = MalformedRequest(f"{_MOST_EMPTY:,} empty requests in a row, as of zeros; the rest of the file is not read")
    number = end = empty = 0
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
                yield number, end, CutOff("the request is cut off at the end of the file")
                return
            empty = 0 if body else empty + 1
            if empty > _MOST_EMPTY:
                yield number, end, zeros
                return
            yield number, end, body
    except READ_ERRORS as error:
        yield _WHOLE_FILE, content.tell(), unreadable(error)
