"""What is fuzzed: functions that take bytes from strangers, and what has to hold whatever the bytes are."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fuzzing.decoders import decoders, request_forms
from fuzzing.foreign import recorded_documents
from fuzzing.otlp_json import WANTED, answers, answers_in_parts, odd_request
from receivers.otlp_requests import CORPUS_NAMES, corpus_lines, from_json, request_of, simple_span
from spanscore import config
from spanscore.compare.json_schema import Schema, SchemaWork, UncheckableError
from spanscore.compare.matching import json_equal, json_key
from spanscore.dialects import _content as content
from spanscore.dialects._literals import literal, parsed_text, printed
from spanscore.errors import ConfigError
from spanscore.model import NOT_RECORDED
from spanscore.otlp import clean_requests
from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.otlp.forwardable import accepting_only
from spanscore.otlp.from_json import decode_json
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.slices import at_once
from spanscore.receivers.intake.inflate import BadEncoding, GzipBody, TooLarge
from spanscore.storage.records import (
    Entry,
    FileHeader,
    Kind,
    UnknownVersion,
    file_header,
    record_header,
    scan,
)

CONFIGURATIONS = Path(__file__).parents[2] / "config"

_LARGEST_BODY = 64 * 1024
_LONGEST_MESSAGE = 1024 * 1024
_PART_SIZES = (1, 100)
_RUN = 0x1122334455667788


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing to fuzz."""

    check: Callable[[bytes], object]
    """Raises when something does not hold."""
    corpus: Callable[[], Sequence[bytes]]
    """Inputs to start from."""
    tokens: Sequence[bytes] = ()
    """What means something in such inputs."""
    slow_s: float = 0.5
    """Longer than this, in processor time, no input may take."""


def protobuf(body: bytes) -> None:
    """A request is decoded as protobuf's own reading of it has it, or taken apart span by span; nothing else raises."""
    try:
        whole = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        whole = None
    try:
        decoded = decode_protobuf(body)
    except MalformedRequest:
        assert whole is None
        return
    again = ExportTraceServiceRequest.FromString(at_once(accepting_only(body, decoded.spans)))
    assert len(decoded.spans) <= _span_count(again)
    if whole is None:
        return
    assert _span_count(whole) == len(decoded.spans) + decoded.refused_spans
    _compare(whole, decoded)


def _span_count(request: ExportTraceServiceRequest) -> int:
    return sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)


def _compare(request: ExportTraceServiceRequest, decoded: Decoded) -> None:
    left = iter(decoded.spans)
    for resource in request.resource_spans:
        service = {pair.key: pair.value.string_value for pair in resource.resource.attributes}.get("service.name")
        for scope in resource.scope_spans:
            for message in scope.spans:
                if not _has_ids(message):
                    continue
                span = next(left)
                assert (span.trace_id, span.span_id) == (message.trace_id, message.span_id)
                assert span.name == (message.name or "unknown")
                assert (span.start_ns, span.end_ns) == (message.start_time_unix_nano, message.end_time_unix_nano)
                assert (span.status_code, span.status_message) == (message.status.code, message.status.message)
                assert span.scope == scope.scope.name
                if isinstance(service, str) and service:
                    assert span.resource["service.name"] == service
                texts = {pair.key: pair.value.string_value for pair in message.attributes if pair.value.string_value}
                last = {pair.key: pair.value.WhichOneof("value") for pair in message.attributes}
                for key, text in texts.items():
                    if last[key] == "string_value":
                        assert span.attributes[key] == text
    assert next(left, None) is None


def _has_ids(message: ExportTraceServiceRequest) -> bool:
    return (
        len(message.trace_id) == 16
        and any(message.trace_id)
        and len(message.span_id) == 8
        and any(message.span_id)
        and len(message.parent_span_id) in {0, 8}
        and all(len(link.trace_id) in {0, 16} and len(link.span_id) in {0, 8} for link in message.links)
    )


def otlp_json(body: bytes) -> None:
    """A request in JSON is decoded or refused as a whole; each span that is kept has ids, a name and clean text.

    Decoding it by type, where that goes, makes no difference, and neither does taking it apart.
    """
    for wanted in (None, WANTED):
        actual, expected = answers(body, wanted)
        assert expected == actual
        actual, expected = answers_in_parts(body, wanted, _PART_SIZES[len(body) % len(_PART_SIZES)], expected)
        assert expected == actual
    try:
        decoded = decode_json(body)
    except MalformedRequest:
        return
    for span in decoded.spans:
        assert (len(span.trace_id), len(span.span_id), len(span.parent_span_id) in {0, 8}) == (16, 8, True)
        assert span.name
        repr(span).encode("utf-8")


def json_forms(body: bytes) -> None:
    """The same holds for requests that the bytes are only the seed of: they are deeper than mutations come."""
    otlp_json(odd_request(random.Random(body)))


def gunzip(body: bytes) -> None:
    """A body is inflated to what zlib makes of it, in whatever pieces it comes, and never beyond the limit."""
    expected = _reference(body)
    for size in (len(body) or 1, 1 + len(body) // 3, 7):
        assert _inflated(body, size) == expected


def _inflated(body: bytes, size: int) -> bytes | None:
    gzipped = GzipBody(_LARGEST_BODY)
    grown = 0
    try:
        for start in range(0, len(body), size):
            grown += sum(gzipped.feed(body[start : start + size]))
            assert grown <= _LARGEST_BODY
        return gzipped.finish()
    except (TooLarge, BadEncoding):
        return None


def _reference(body: bytes) -> bytes | None:
    plain = b""
    while True:
        inflate = zlib.decompressobj(31)
        try:
            plain += inflate.decompress(body, _LARGEST_BODY + 1)
        except zlib.error:
            return None
        if not inflate.eof or len(plain) > _LARGEST_BODY:
            return None
        body = inflate.unused_data
        if not body:
            return plain


def segment(body: bytes) -> None:
    """Reading a segment ends; what it finds lies in the file, in order, and has the checksum it says."""
    try:
        found = scan(body)
    except UnknownVersion:
        return
    end = 0  # of a file that was cut at the front, the header may be what is missing
    for record in found.records:
        assert end <= record.offset < record.start <= record.end <= len(body)
        assert found.header is not None
        header = record_header(found.header.run, record.entry, body[record.start : record.end])
        assert body[record.offset : record.start] == header or header[:44] == body[record.offset : record.offset + 44]
        end = record.end
    assert 0 <= found.torn <= len(body) - end or not found.records


def arguments(body: bytes) -> None:
    """What is read out of an attribute is JSON that can be written, compared and hashed; nothing raises."""
    text = (
        body.decode("utf-8", "surrogatepass" if b"\xed" in body else "replace")
        if _is_text(body)
        else body.decode("latin-1")
    )
    for read in (
        content.arguments,
        content.decoded,
        literal,
        parsed_text,
        printed,
        content.sole_argument,
    ):
        value = read(text)
        if value is NOT_RECORDED:
            continue
        if read is not content.sole_argument and read is not parsed_text:
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        hash(json_key(value))
        assert json_equal(value, value)
    content.short(text)
    content.unquoted(text)
    content.identifier(text)


def _is_text(body: bytes) -> bool:
    try:
        body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def schema(body: bytes) -> None:
    """A JSON Schema from a trace is usable or not, and checking with it ends; nothing but that is raised."""
    with suppress(ValueError, RecursionError):
        document = json.loads(body)
        try:
            made = Schema(document)
        except ValueError:
            return
        for value in ({}, {"city": "x" * 100, "days": [1, 2.5, None]}, document):
            with suppress(UncheckableError):
                made.problems(value, SchemaWork())


def configuration(body: bytes) -> None:
    """A configuration is right, or refused with a line for every error, each of which fits into a terminal."""
    text = body.decode("utf-8", "replace")
    told = ""
    try:
        config.loads(text, "c.yaml", Path("/nonexistent"), {"NAME": "value"}).for_serve()
    except ConfigError as error:
        told = str(error)
    assert len(told) <= _LONGEST_MESSAGE
    told.encode()


def _protobuf_corpus() -> Sequence[bytes]:
    recorded = [from_json(line) for name in CORPUS_NAMES[::3] for line in corpus_lines(name)[:1]]
    small = [request_of(simple_span(1, 1), simple_span(1, 2, parent_span_id=b"parent--"))]
    return [request.SerializeToString()[:8_192] for request in (*small, *recorded)]


def _json_corpus() -> Sequence[bytes]:
    lines = [line for name in CORPUS_NAMES[::3] for line in corpus_lines(name)[:1]]
    small = b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","name":"a"}]}]}]}' % (1, 1)
    return [small, *(line for line in lines if len(line) < 16_384)]


def _gzip_corpus() -> Sequence[bytes]:
    bodies = [b"", b"a", b"spans " * 100, bytes(200_000), *_protobuf_corpus()[:3]]
    whole = [gzip.compress(body, level) for body in bodies for level in (1, 9)]
    return [*whole, whole[2] + whole[2], whole[4][:-4], gzip.compress(whole[4])]


def _segment_corpus() -> Sequence[bytes]:
    def written(bodies: Sequence[bytes]) -> bytes:
        parts = [file_header(FileHeader(_RUN))]
        for number, body in enumerate(bodies, 1):
            entry = Entry(Kind.PROTOBUF, number, 10**18, 10**9)
            parts += [record_header(_RUN, entry, body), body]
        return b"".join(parts)

    return [written([]), written([b"one"]), written([b"one", b"", b"three" * 50]), written([bytes(9)] * 20)]


def _argument_corpus() -> Sequence[bytes]:
    return [
        b'{"city": "Paris", "days": 3, "deep": [{"a": [null, true, 1.5e3]}]}',
        b'"{\\"city\\": \\"Paris\\"}"',
        b"{'city': 'Paris', 'when': (1, 2), 'what': {3}, 'raw': b'x'}",
        b"ToolCall(name='x', arguments={'a': 1}, kind=<Kind.A: 'a'>)",
        b'{"a": "\\ud83d\\ude00", "b": "\\ud800", "a": 2}',
        b'{"kwargs": {"a": 1}, "args": []}',
        b"plain text, and more of it",
        b'{"cut": "of',
    ]


def _schema_corpus() -> Sequence[bytes]:
    schemas: list[object] = [
        {"type": "object", "required": ["city"], "properties": {"city": {"type": "string", "pattern": "^[a-z]+$"}}},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {}]}, "b": {"enum": [1, "x", None]}}, "$ref": "#/$defs/a"},
        {"patternProperties": {"^x": {"minimum": 1}}, "additionalProperties": {"items": {"multipleOf": 0.1}}},
        {"if": {"const": 1}, "then": {"not": {}}, "dependentSchemas": {"a": {}}, "unevaluatedProperties": False},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"maxLength": 3}], "uniqueItems": True},
    ]
    return [json.dumps(each).encode() for each in schemas]


def _configuration_corpus() -> Sequence[bytes]:
    files = [path.read_bytes() for path in sorted(CONFIGURATIONS.glob("*.yaml")) if path.name != "reference.yaml"]
    return [*files, b"exporters: {otlp: {headers: {k: '${env:NAME:-x}'}}}\ntraces: {decision_delay: 1m30s}\n"]


_JSON_TOKENS = tuple(b'{ } [ ] , : " \\ \\u0000 \\ud800 null true false {"":0}'.split())

TARGETS: dict[str, Target] = {
    "protobuf": Target(
        check=protobuf, corpus=_protobuf_corpus, tokens=(b"\x0a\x00", b"\x12\x02\x0a\x00", b"\x2a\x02\x0a\x00")
    ),
    "json": Target(
        check=otlp_json,
        corpus=_json_corpus,
        tokens=(*_JSON_TOKENS, b'"spans":[', b'"attributes":[{"key":"a","value":{"intValue":"1"}}]', b'"traceId":""'),
    ),
    "json-forms": Target(check=json_forms, corpus=lambda: [b"seed"], tokens=(b"\0",)),
    "documents": Target(
        check=recorded_documents,
        slow_s=5.0,  # some are read three times, by whole commands
        corpus=lambda: [b"seed"],
        tokens=(b"\0",),
    ),
    "gunzip": Target(check=gunzip, corpus=_gzip_corpus, tokens=(b"\x1f\x8b\x08\x00", bytes(8))),
    "segment": Target(
        check=segment, corpus=_segment_corpus, tokens=(b"\x88\x77\x66\x55\x44\x33\x22\x11", b"\x89SPNLOG\n")
    ),
    "arguments": Target(
        check=arguments, corpus=_argument_corpus, tokens=(*_JSON_TOKENS, b"'", b"(", b")", b"b'", b"1j", b"#")
    ),
    "schema": Target(
        check=schema,
        corpus=_schema_corpus,
        tokens=(*_JSON_TOKENS, b'"$ref":"#"', b'"pattern":"(a+)+$"', b'"allOf":[{}]', b'"$defs":', b'"items":'),
    ),
    "configuration": Target(
        check=configuration,
        slow_s=2.0,  # written by whoever runs us; YAML is read by Python
        corpus=_configuration_corpus,
        tokens=(
            b"&a ",
            b"*a",
            b"<<: ",
            b"!!python/object ",
            b"${env:",
            b"}",
            b"\n---\n",
            b"\n  ",
            b"[",
            b"{",
            b"|\n",
            b"? ",
            b"#",
            b"\t",
        ),
    ),
}
if clean_requests.COMPILED is not None:
    TARGETS["decoders"] = Target(
        check=decoders, corpus=_protobuf_corpus, tokens=(*TARGETS["protobuf"].tokens, b"\x4a\x05\x0a\x01k\x12\x00")
    )
    TARGETS["request-forms"] = Target(check=request_forms, corpus=lambda: [b"seed"], tokens=(b"\0",))
