"""Recorded OTLP/JSON: documents one a line, or spread over lines, or several in an array."""

from __future__ import annotations

import re
from binascii import unhexlify
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.otlp.from_json import decode_document
from spanscore.otlp.from_logs import decode_logs
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.json_names import with_json_names
from spanscore.otlp.json_repeated import LOG_TIMES, SPAN_TIMES, checking_items, checking_spans
from spanscore.otlp.json_shape import LOGS, METRICS, SPANS, shown
from spanscore.otlp.json_typed import decode_typed
from spanscore.otlp.json_writing import counting_records, logs_to_protobuf
from spanscore.otlp.slices import at_once
from spanscore.otlp.strict_json import parse
from spanscore.recordings._recorded import READ_ERRORS, Content, CutOff, RecordedDocument, broken, unreadable
from spanscore.recordings.foreign import from_foreign, is_foreign

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_CHUNK: Final = 1024 * 1024

_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(").*', re.DOTALL)
"""A string, or with group 1 one that does not end: it is the rest, and so a text is gone through once."""
_OTLP: Final = re.compile(rb'"resource(?:_spans|_metrics|_logs|_profiles|Spans|Metrics|Logs|Profiles)"\s*:')
_NEW_REQUEST: Final = re.compile(rb"\{.*" + _OTLP.pattern, re.DOTALL)

_LOGS_KEY: Final = f'"{LOGS}"'.encode()
_OTHER_SIGNALS: Final = frozenset({METRICS, "resourceProfiles", "resource_profiles"})
_READ_SIGNALS: Final = frozenset({SPANS, LOGS})
_OTLP_KEYS: Final = _READ_SIGNALS | _OTHER_SIGNALS
_BASE64_ID: Final = re.compile(rb'"trace_?[iI]d"\s*:\s*"[A-Za-z0-9+/]{22}=="')
"""A trace id as protobuf's own JSON has it."""
_TELEMETRY: Final = re.compile(
    rb'"(?:resource_?(?:spans|logs|metrics|profiles)|(?:context\.)?trace_?id|span_?id|run_type|parentObservationId)"',
    re.IGNORECASE,
)
"""A key of telemetry, of a known form or not."""
_COMMENT: Final = re.compile(
    rb'("[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)|,(?=\s*[}\]])', re.DOTALL
)
"""A string of JSON, or else a comment or a comma too many, which configuration files have."""

_KEY: Final = b'"traceId"'
_OTHER_KEY: Final = b'"trace_id"'
_KEY_AS_LONG: Final = _KEY.ljust(len(_OTHER_KEY))
_MENTION: Final = re.compile(_KEY + rb'\s*:\s*"([\da-fA-F]{32})')
_MENTION_CUT_OFF: Final = re.compile(_KEY + rb'\s*(?::\s*(?:"[\da-fA-F]*)?)?')
_LONGEST_MENTION: Final = 6 * (len(_OTHER_KEY) + 32) + 2
"""With every character written as an escape, and without white space."""
_ESCAPED_ASCII: Final = re.compile(rb"\\u00([0-7][\da-fA-F])")


def json_documents(
    content: Content, max_request_size: int, log_names: Sequence[str] = ()
) -> Iterator[RecordedDocument]:
    """Decode the documents of a recording one by one; a broken one costs only itself."""
    lines = _lines(content, max_request_size)
    for line in lines:
        left: _Line | None = line
        while left:
            first = left
            document, left = _read(first, lines, max_request_size, log_names)
            if document:
                is_cut_off = first.is_cut_off and document.problems and _is_unfinished(first)
                yield _cut_off(document) if is_cut_off else document


def json_mentions(content: Content, _max_request_size: int) -> Iterator[tuple[int, bytes]]:
    """Yield each trace id in a recording, with the offset of a byte at or before the end of its document.

    Searches only the text of trace ids, which is much faster than parsing. It may find ids that are in no span, but
    misses none: an id that `json_documents` finds is found here as well, however it is escaped or spaced.
    """
    start = 0
    data = b""
    while chunk := _chunk(content):
        data = (data + chunk).replace(_OTHER_KEY, _KEY_AS_LONG)
        has_escapes = b"\\u00" in data
        text = _without_escapes(data)
        for mention in _MENTION.finditer(text):
            yield start + (len(data) - 1 if has_escapes else mention.start()), unhexlify(mention[1])
        kept = data[-_LONGEST_MENTION:]
        key = data.rfind(_KEY)
        if 0 <= key < len(data) - len(kept) and _MENTION_CUT_OFF.fullmatch(data, key):
            kept = b"".join(data[key:].split())  # white space between a key and its value may be of any length
        start += len(data) - len(kept)
        data = kept


def _without_escapes(text: bytes) -> bytes:
    """Return a text of JSON in which escaped ASCII is written as it is."""
    return _ESCAPED_ASCII.sub(lambda escape: unhexlify(escape[1]), text) if b"\\u00" in text else text


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
    is_cut_off: bool = False  # the file ends within it


def _lines(content: Content, max_size: int) -> Iterator[_Line]:
    number = end = 0
    try:
        while text := content.readline(max_size + 1):
            number += 1
            end += len(text)
            if len(text) <= max_size:
                line = text.rstrip(b"\r\n").removeprefix(b"" if number > 1 else _BYTE_ORDER_MARK)
                yield _Line(number, end, line, is_cut_off=not text.endswith(b"\n"))
                continue
            while text and not text.endswith(b"\n"):
                text = content.readline(_CHUNK)
                end += len(text)
            yield _Line(number, end, b"", _too_large(max_size))
    except READ_ERRORS as error:
        yield _Line(number + 1, end, b"", unreadable(error), isinstance(error, EOFError))


def _read(
    first: _Line, lines: Iterator[_Line], max_size: int, log_names: Sequence[str]
) -> tuple[RecordedDocument | None, _Line | None]:
    """Decode the document that begins in a line, with the lines that belong to it, and return one that does not."""
    if first.problem:
        return RecordedDocument(first.number, first.end, problems=(first.problem,)), None
    if not first.text.strip():
        return None, None
    document = _document(first.text, first.number, first.end, log_names)
    if not document.problems or (left_open := _brackets_left_open(first.text)) <= 0:
        return document, None
    is_array = first.text.lstrip().startswith(b"[")
    parts, size, end = [first.text], len(first.text), first.end
    problem: MalformedRequest | None = None
    behind: _Line | None = None
    while left_open > 0:
        line = next(lines, None)
        if line is None or (_NEW_REQUEST.match(line.text) and not is_array):
            behind = line
            break
        left_open += _brackets_left_open(line.text)
        size += len(line.text)
        end = line.end
        problem = problem or line.problem or (_too_large(max_size) if size > max_size else None)
        if problem:
            parts.clear()  # the document is lost, but its end must still be found
        else:
            parts.append(line.text)
    if problem:
        return RecordedDocument(first.number, end, problems=(problem,)), behind
    return _document(b"\n".join(parts), first.number, end, log_names), behind


def _is_unfinished(line: _Line) -> bool:
    """Return whether only the beginning of a request is there; a whole one has another problem."""
    return line.problem is not None or b'"' in _STRING.sub(rb"\1", line.text) or _brackets_left_open(line.text) > 0


def _cut_off(document: RecordedDocument) -> RecordedDocument:
    """Return a document in which the file ends, with problems that name this."""
    found = [(each, f"{each.what}; the file ends within this request") for each in document.problems]
    problems = [each if isinstance(each, CutOff) else MalformedRequest(what, line=each.line) for each, what in found]
    return document._replace(is_cut_off=True, problems=problems)


def _brackets_left_open(text: bytes) -> int:
    """Count the brackets that a line opens and does not close; none when it ends inside a string."""
    outside = _STRING.sub(rb"\1", text)
    if b'"' in outside:
        return 0
    return outside.count(b"{") + outside.count(b"[") - outside.count(b"}") - outside.count(b"]")


def _document(text: bytes, line: int, end: int, log_names: Sequence[str]) -> RecordedDocument:
    """Decode a document, and refuse it if that fails in a way that no rule foresees."""
    try:
        return _judged(text, line, end, log_names)
    except Exception as error:  # noqa: BLE001 - a document may hold anything, and costs only itself
        return RecordedDocument(line, end, problems=(broken(error),))


def _judged(text: bytes, line: int, end: int, log_names: Sequence[str]) -> RecordedDocument:
    has_base64_ids = b'=="' in text and _BASE64_ID.search(text) is not None
    if _LOGS_KEY not in text and not has_base64_ids:
        decoded = decode_typed(text, max_spans=None, wanted=None)
        if decoded is not None:
            at_once(checking_spans(text, decoded))
            is_other = not decoded.spans and _is_other(text)
            return RecordedDocument(line, end, (decoded,), sources=(text.decode(),), is_other=is_other)
    if _OTLP.search(text) and (renamed := with_json_names(text)) is not text:
        return _judged(renamed, line, end, log_names)
    try:
        parsed = parse(text)
    except MalformedRequest as error:
        return RecordedDocument(line, end, problems=(error,), is_other=_is_other(text))
    requests = list(_requests(parsed))
    own: list[Any] = []
    foreign: list[Any] = []
    for request in requests:
        keys = request.keys() if isinstance(request, dict) else frozenset[str]()
        if _READ_SIGNALS.isdisjoint(keys) and not _OTHER_SIGNALS.isdisjoint(keys):
            continue
        is_otlp = not _OTLP_KEYS.isdisjoint(keys) and not has_base64_ids
        (foreign if not is_otlp and is_foreign(request) else own).append(request)
    problems: list[MalformedRequest] = []
    found = [each for request in own for each in _decoded(request, log_names, problems)]
    if own and not foreign:
        _note_repeated(text, own, [decoded for decoded, source in found if not isinstance(source, Logs)], problems)
    if foreign:
        body, refused, lost, more = from_foreign(foreign)
        problems += more
        try:
            found.append((decode_protobuf(body, max_spans=None).refusing(refused, lost), body))
        except MalformedRequest as error:
            problems.append(error)
    return RecordedDocument(
        line,
        end,
        [decoded for decoded, _ in found],
        _each_once(problems),
        skipped=len(requests) - len(own) - len(foreign),
        sources=[source for _, source in found],
        is_other=len(requests) == len(own) and _is_other(text),
    )


def _decoded(request: Any, log_names: Sequence[str], problems: list[MalformedRequest]) -> Iterator[tuple[Decoded, Any]]:
    """Yield the decoded parts of a request of OTLP/JSON, and note its problems."""
    for decode in (_logs, _spans):
        try:
            yield from decode(request, log_names)
        except MalformedRequest as error:
            problems.append(error)


def _note_repeated(
    text: bytes, requests: Sequence[Any], decoded: Sequence[Decoded], problems: list[MalformedRequest]
) -> None:
    """Note a list that is twice in an object, so that the last one hides others with spans or log records."""
    spans = sum(len(each.spans) + sum(refused.spans for refused in each.refused) for each in decoded)
    records = 0
    for request in requests if _LOGS_KEY in text else ():
        with suppress(MalformedRequest):  # noted where it is decoded
            records += at_once(counting_records(request))
    try:
        at_once(checking_items(text, spans, SPAN_TIMES))
        if _LOGS_KEY in text:
            at_once(checking_items(text, records, LOG_TIMES))
    except MalformedRequest as error:
        problems.append(error)


def _is_other(text: bytes) -> bool:
    """Return whether a text without spans is whole JSON and has no key of telemetry; comments are no matter."""
    if _TELEMETRY.search(text) or _TELEMETRY.search(_without_escapes(text)):
        return False
    plain = _COMMENT.sub(lambda found: found[1] or b"", text)
    try:
        parse(plain)
    except MalformedRequest:
        return not plain.strip()
    return True


def _each_once(problems: Sequence[MalformedRequest]) -> Sequence[MalformedRequest]:
    """Return the problems of a document; one that many of its members have is one, with their number."""
    counts = Counter((each.what, each.line) for each in problems)
    return [
        MalformedRequest(what if count == 1 else f"{what} ({count} times)", line=line)
        for (what, line), count in counts.items()
    ]


def _requests(parsed: Any) -> Iterator[Any]:
    """Yield the requests of a document: itself, or its members; Zipkin's search returns lists of lists of spans."""
    for each in parsed if isinstance(parsed, list) else [parsed]:
        yield from each if isinstance(each, list) and isinstance(parsed, list) else [each]


def _logs(request: Any, log_names: Sequence[str]) -> Iterator[tuple[Decoded, Any]]:
    if isinstance(request, dict) and LOGS in request:
        body, refused, lost = logs_to_protobuf(request)
        yield decode_logs(body, log_names, max_records=None).refusing(refused, lost), Logs(body)


def _spans(request: Any, _log_names: Sequence[str]) -> Iterator[tuple[Decoded, Any]]:
    if isinstance(request, dict) and LOGS in request and SPANS not in request:
        return
    if isinstance(request, dict) and request and SPANS not in request:
        # A receiver ignores what it does not know, but in a recording it is the wrong file.
        message = (
            f"not of a form that is read, with the keys {shown(request)}: OTLP/JSON ({SPANS!r}, {LOGS!r}), or traces "
            "of Jaeger, Tempo, Zipkin (version 2), Phoenix or the Python SDK"
        )
        raise MalformedRequest(message)
    yield decode_document(request, max_spans=None), request


def _too_large(max_size: int) -> MalformedRequest:
    return MalformedRequest(f"the request is larger than {max_size:,} bytes")
