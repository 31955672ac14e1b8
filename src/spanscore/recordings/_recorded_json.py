"""Recorded OTLP/JSON: documents one a line, or spread over lines, or several in an array."""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.otlp.from_json import decode_document
from spanscore.otlp.json_typed import decode_typed
from spanscore.otlp.strict_json import parse
from spanscore.recordings._recorded import READ_ERRORS, Content, Document, unreadable

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1024 * 1024

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_NEW_REQUEST: Final = re.compile(rb'\{.*"resource(?:Spans|Metrics|Logs|Profiles)"\s*:', re.DOTALL)

_SPANS: Final = "resourceSpans"
_OTHER_SIGNALS: Final = frozenset({"resourceMetrics", "resourceLogs", "resourceProfiles"})
_KEYS_SHOWN: Final = 5
_KEY_SHOWN: Final = 40

_KEY: Final = b'"traceId"'
_MENTION: Final = re.compile(_KEY + rb'\s*:\s*"([\da-fA-F]{32})')
_MENTION_CUT_OFF: Final = re.compile(_KEY + rb'\s*(?::\s*(?:"[\da-fA-F]*)?)?')
_LONGEST_MENTION: Final = 6 * (len(_KEY) + 32) + 2
"""With every character written as an escape, and without white space."""
_ESCAPED_ASCII: Final = re.compile(rb"\\u00([0-7][\da-fA-F])")


def json_documents(content: Content, max_request_size: int) -> Iterator[Document]:
    """Decode the documents of a recording one by one; a broken one costs only itself."""
    unfinished: _Unfinished | None = None
    for line in _lines(content, max_request_size):
        if unfinished and not unfinished.goes_on_with(line):
            yield unfinished.document()
            unfinished = None
        if unfinished:
            unfinished.add(line)
        elif line.problem:
            yield Document(line.number, line.end, problems=(line.problem,))
        elif line.text.strip():
            document = _document(line.text, line.number, line.end)
            if document.problems and _brackets_left_open(line.text) > 0:
                unfinished = _Unfinished(line, max_request_size)
            else:
                yield document
        if unfinished and unfinished.brackets_left_open <= 0:
            yield unfinished.document()
            unfinished = None
    if unfinished:
        yield unfinished.document()


def json_mentions(content: Content, max_request_size: int) -> Iterator[tuple[int, bytes]]:
    """Yield each trace id in a recording, and the place of a byte that is not behind the document that has it.

    Looks for the text of trace ids only, which is much faster than parsing. It may find ids that are in no span, but
    misses none: an id that `json_documents` finds is found here as well, however it is escaped or spaced.
    """
    start = 0
    data = b""
    while chunk := _chunk(content):
        data += chunk
        has_escapes = b"\\u00" in data
        text = _ESCAPED_ASCII.sub(lambda escape: unhexlify(escape[1]), data) if has_escapes else data
        for mention in _MENTION.finditer(text):
            yield start + (len(data) - 1 if has_escapes else mention.start()), unhexlify(mention[1])
        keep_from = max(0, len(data) - _LONGEST_MENTION)
        key = data.rfind(_KEY)
        if 0 <= key < keep_from and len(data) - key <= max_request_size and _MENTION_CUT_OFF.fullmatch(data, key):
            keep_from = key
        start += keep_from
        data = data[keep_from:]


def _chunk(content: Content) -> bytes:
    try:
        return content.read1(_CHUNK)
    except READ_ERRORS:
        return b""


class _Line(NamedTuple):
    number: int
    end: int
    text: bytes
    problem: MalformedRequest | None = None


def _lines(content: Content, max_size: int) -> Iterator[_Line]:
    number = end = 0
    try:
        while text := content.readline(max_size + 1):
            number += 1
            end += len(text)
            if len(text) <= max_size:
                text = text.rstrip(b"\r\n")
                yield _Line(number, end, text if number > 1 else text.removeprefix(_BYTE_ORDER_MARK))
                continue
            while text and not text.endswith(b"\n"):
                text = content.readline(_CHUNK)
                end += len(text)
            yield _Line(number, end, b"", _too_large(max_size))
    except READ_ERRORS as error:
        yield _Line(number + 1, end, b"", unreadable(error))


class _Unfinished:
    """A document whose first line is not the whole of it."""

    def __init__(self, line: _Line, max_size: int) -> None:
        self.brackets_left_open = 0
        self._first = line
        self._last = line
        self._size = 0
        self._max_size = max_size
        self._parts: list[bytes] = []
        self._problem: MalformedRequest | None = None
        self.add(line)

    def goes_on_with(self, line: _Line) -> bool:
        """Whether the line can belong to the document: what looks like a new request does not, except in an array."""
        return self._first.text.lstrip().startswith(b"[") or not _NEW_REQUEST.match(line.text)

    def add(self, line: _Line) -> None:
        self.brackets_left_open += _brackets_left_open(line.text)
        self._last = line
        self._size += len(line.text)
        self._problem = self._problem or line.problem
        if self._size > self._max_size:
            self._problem = self._problem or _too_large(self._max_size)
        if self._problem:
            self._parts.clear()  # the document is lost, but its end must still be found
        else:
            self._parts.append(line.text)

    def document(self) -> Document:
        if self._problem:
            return Document(self._first.number, self._last.end, problems=(self._problem,))
        return _document(b"\n".join(self._parts), self._first.number, self._last.end)


def _brackets_left_open(text: bytes) -> int:
    """Count the brackets that a line opens and does not close; none when it ends inside a string."""
    outside = _STRING.sub(b"", text)
    if b'"' in outside:
        return 0
    return outside.count(b"{") + outside.count(b"[") - outside.count(b"}") - outside.count(b"]")


def _document(text: bytes, line: int, end: int) -> Document:
    if (decoded := decode_typed(text, max_spans=None, wanted=None)) is not None:
        return Document(line, end, (decoded,), sources=(text.decode(),))
    try:
        parsed = parse(text)
    except MalformedRequest as error:
        return Document(line, end, problems=(error,))
    requests: list[Decoded] = []
    sources: list[Any] = []
    problems: list[MalformedRequest] = []
    skipped = 0
    for request in parsed if isinstance(parsed, list) else [parsed]:
        if isinstance(request, dict) and request and _SPANS not in request:
            if _OTHER_SIGNALS.isdisjoint(request):
                # A receiver ignores what it does not know, but in a recording it is the wrong file.
                keys = ", ".join(repr(key[:_KEY_SHOWN]) for key in list(request)[:_KEYS_SHOWN])
                problems.append(MalformedRequest(f"not an OTLP trace request: it has no {_SPANS!r}, but {keys}"))
            else:
                skipped += 1
            continue
        try:
            requests.append(decode_document(request, max_spans=None))
        except MalformedRequest as error:
            problems.append(error)
        else:
            sources.append(request)
    return Document(line, end, requests, problems, skipped, sources)


def _too_large(max_size: int) -> MalformedRequest:
    return MalformedRequest(f"the request is larger than {max_size:,} bytes")
