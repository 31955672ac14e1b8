from __future__ import annotations

import gzip
import io
import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from fuzzing.otlp_json import snake_case_of
from receivers.otlp_requests import (
    CORPUS,
    CORPUS_NAMES,
    corpus_lines,
    decoded_span,
    request_of,
    simple_span,
    to_json,
    trace_id,
)
from spanscore.errors import InputError
from spanscore.model import Span
from spanscore.otlp.from_json import decode_json
from spanscore.recordings.files import Recording

Requests = Sequence[ExportTraceServiceRequest]


def json_lines(requests: Requests) -> bytes:
    """Record one request a line."""
    return b"".join(to_json(request) + b"\n" for request in requests)


def indented(requests: Requests) -> bytes:
    """Record documents spread over lines, one behind the other."""
    return b"\n".join(to_json(request, indent=2) for request in requests)


def array(requests: Requests) -> bytes:
    """Record one array in one line."""
    return b"[" + b",".join(to_json(request) for request in requests) + b"]"


def array_of_lines(requests: Requests) -> bytes:
    """Record one array with a request a line."""
    return b"[\n" + b",\n".join(to_json(request) for request in requests) + b"\n]\n"


def one_document(requests: Requests) -> bytes:
    """Record all in one document, as in the message TracesData."""
    merged = ExportTraceServiceRequest()
    for request in requests:
        merged.MergeFrom(request)
    return to_json(merged)


def protobuf(requests: Requests) -> bytes:
    """Record all in one bare request."""
    return b"".join(request.SerializeToString() for request in requests)


def delimited_protobuf(requests: Requests) -> bytes:
    """Record requests as the Collector's file exporter does: each behind its length in four bytes."""
    bodies = [request.SerializeToString() for request in requests]
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


FORMATS = [json_lines, indented, array, array_of_lines, one_document, protobuf, delimited_protobuf]
REQUESTS = [request_of(simple_span(1), simple_span(2)), request_of(), request_of(simple_span(3), simple_span(1, 2))]
SPANS = [decoded_span(1), decoded_span(2), decoded_span(3), decoded_span(1, 2)]


def read(*paths: Path | str, **options: Any) -> tuple[list[Span], list[str]]:
    """Read a recording: its spans, and its problems without the folder."""
    recording = Recording(paths, **options)
    spans = [span for batch in recording.read() for span in batch.spans]
    return spans, [str(problem._replace(file=Path(problem.file).name)) for problem in recording.problems]


def write(path: Path, content: bytes) -> Path:
    """Write a file."""
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, lambda data: gzip.compress(data[:99]) + gzip.compress(data[99:])]
)
@pytest.mark.parametrize("encode", FORMATS)
def test_all_formats_give_the_same_spans(
    tmp_path: Path, encode: Callable[[Requests], bytes], compress: Callable[[bytes], bytes]
) -> None:
    """A recording is read in every format, plain, gzip or several gzip members, whatever its name says."""
    assert (SPANS, []) == read(write(tmp_path / "recording.txt", compress(encode(REQUESTS))))


@pytest.mark.parametrize("encode", FORMATS)
def test_formats_may_be_mixed(tmp_path: Path, encode: Callable[[Requests], bytes]) -> None:
    """The files of one recording may have different formats."""
    files = [write(tmp_path / "1", json_lines(REQUESTS[:2])), write(tmp_path / "2", encode(REQUESTS[2:]))]

    assert (SPANS, []) == read(*files)


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_recordings_of_the_corpus_are_read(name: str) -> None:
    """Each recording of the corpus gives the spans of its lines."""
    expected = [span for line in corpus_lines(name) for span in decode_json(line).spans]

    assert (expected, []) == read(CORPUS / f"{name}.jsonl.gz")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n \n",
        b"{}",
        b"[]",
        b"{}\n{}\n",
        b'{"resourceSpans": null}',
        b"\x00\x00\x00\x00",
        gzip.compress(b"", mtime=0),
    ],
)
def test_a_recording_may_be_empty(tmp_path: Path, content: bytes) -> None:
    """A recording without spans is no problem: nothing was recorded."""
    assert ([], []) == read(write(tmp_path / "empty", content))


def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    """Editors and shells add what JSON Lines does not have."""
    lines = json_lines(REQUESTS).splitlines()

    assert (SPANS, []) == read(write(tmp_path / "windows", b"\xef\xbb\xbf" + b"\r\n\r\n".join(lines) + b"\r\n"))
    assert (SPANS, []) == read(write(tmp_path / "unix", b"\n\n\n\n\n" + b"\n".join(lines)))


def test_other_signals_are_passed_over(tmp_path: Path) -> None:
    """The Collector writes metrics beside the traces; they are counted."""
    lines = [b'{"resourceMetrics": []}', to_json(REQUESTS[0]), b'{"resourceProfiles": [{}]}']
    recording = Recording([write(tmp_path / "all", b"\n".join(lines))])

    assert [SPANS[:2]] == [batch.spans for batch in recording.read()]
    assert (2, []) == (recording.other_signals, recording.problems)


ENDS = "the file ends within this request"


def test_a_broken_line_costs_only_itself(tmp_path: Path) -> None:
    """Lines before and after a broken one are read, and the problem names file, line and what is wrong."""
    good = [to_json(request) for request in REQUESTS]
    lines = [
        good[0][:-1],  # a bracket is missing: might go on in the next line
        good[0],
        b"Traceback (most recent call last):",
        good[0][:60],  # cut off inside a string
        b'{"resourceSpans": {}}',
        b'{"more": 1}',
        b'{"a": NaN}',
        b"\xff\xfe",
        b"7",
        good[2],
        good[2][:-3],
    ]
    spans, problems = read(write(tmp_path / "broken.jsonl", b"\n".join(lines)))

    assert spans == SPANS
    assert problems == [
        f"broken.jsonl:1: not valid JSON: Expecting ',' delimiter (column {len(good[0])})",
        "broken.jsonl:3: not valid JSON: Expecting value (column 1)",
        "broken.jsonl:4: not valid JSON: Unterminated string starting at (column 59)",
        "broken.jsonl:5: resourceSpans must be an array, not an object",
        (
            "broken.jsonl:6: not of a form that is read, with the keys 'more': OTLP/JSON ('resourceSpans', "
            "'resourceLogs'), or traces of Jaeger, Tempo, Zipkin (version 2), Phoenix or the Python SDK"
        ),
        "broken.jsonl:7: not valid JSON: NaN is not JSON; as a double it is written in quotes",
        "broken.jsonl:8: not valid UTF-8 at byte 0",
        "broken.jsonl:9: the request must be an object, not a number",
        f"broken.jsonl:11: not valid JSON: Expecting ',' delimiter (column {len(good[2]) - 2}); {ENDS}",
    ]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ('{"resourceLogs": [{}, {"logRecords": []}]}', "resourceLogs[1] has no 'scopeLogs', but 'logRecords'"),
        ('{"resourceLogs": [{"scope_log": []}]}', "resourceLogs[0] has no 'scopeLogs', but 'scope_log'"),
        (
            '{"resourceLogs": [{"scopeLogs": [{"scope": {}, "records": []}]}]}',
            "resourceLogs[0].scopeLogs[0] has no 'logRecords', but 'records'",
        ),
        ('{"resourceSpans": [{"scopeLogs": []}]}', "resourceSpans[0] has no 'scopeSpans', but 'scopeLogs'"),
        (
            '{"resourceSpans": [{"scopeSpans": [{"spans": []}, {"span": 1}]}]}',
            "resourceSpans[0].scopeSpans[1] has no 'spans', but 'span'",
        ),
    ],
)
def test_what_leads_nowhere_is_a_problem(tmp_path: Path, document: str, problem: str) -> None:
    """A mistyped or missing level is told with its place, and the rest of the document is read."""
    spans, problems = read(write(tmp_path / "file", document.encode() + b"\n" + json_lines(REQUESTS)))

    assert (SPANS, [f"file:1: {problem}"]) == (spans, problems)


@pytest.mark.parametrize(
    "document",
    [
        '{"resourceLogs": [{"resource": {}, "schemaUrl": "x"}]}',
        '{"resourceSpans": [{"scopeSpans": [{"scope": {}}]}], "more": [1]}',
        '{"resourceSpans": [{"scopeSpans": null, "unknown": 1}]}',
        '{"resourceSpans": null, "resourceLogs": null}',
    ],
)
def test_what_is_empty_or_new_is_no_problem(tmp_path: Path, document: str) -> None:
    """A later OTLP may have more beside what is known."""
    assert ([], []) == read(write(tmp_path / "file", document.encode()))


@pytest.mark.parametrize("indent", [None, 1])
def test_both_names_of_fields_are_read(tmp_path: Path, indent: int | None) -> None:
    """Each trace is read as if its fields had the names of OTLP/JSON, and ends where it would end then."""
    lines = json_lines(REQUESTS).splitlines()
    renamed = [json.dumps(snake_case_of(json.loads(line)), indent=indent).encode() for line in lines]
    proper = [json.dumps(json.loads(line), indent=indent).encode() for line in lines]
    written, other = (write(tmp_path / name, b"\n".join(each)) for name, each in (("a", proper), ("b", renamed)))

    assert (SPANS, []) == read(other)
    assert list(Recording([written]).read()) == list(Recording([other]).read())


def test_a_broken_document_over_lines_costs_only_itself(tmp_path: Path) -> None:
    """A problem inside a document of many lines names its own line, and the next request is read."""
    lines = [*to_json(REQUESTS[0], indent=1).splitlines()[:-1], to_json(REQUESTS[2]), b"{", b'"a": 1,', b"oops", b"}"]
    start = len(lines) - 3
    spans, problems = read(write(tmp_path / "broken", b"\n".join(lines)))

    assert spans == SPANS[2:]
    assert problems == [
        f"broken:{start - 2}: not valid JSON: Expecting ',' delimiter (column 3)",
        f"broken:{start + 2}: not valid JSON: Expecting property name enclosed in double quotes (column 1)",
    ]


def test_an_array_may_hold_broken_requests(tmp_path: Path) -> None:
    """What is no trace request in an array costs only itself."""
    content = b"[1, " + to_json(REQUESTS[0]) + b', {"resourceLogs": []}, {"resourceSpans": 1}]'
    spans, problems = read(write(tmp_path / "array", content))

    assert spans == SPANS[:2]
    assert problems == [
        "array:1: the request must be an object, not a number",
        "array:1: resourceSpans must be an array, not a number",
    ]


def test_refused_spans_are_reported(tmp_path: Path) -> None:
    """Spans refused in a line are one problem for each reason, which says how many they are."""
    bad = [simple_span(4, kind=1), simple_span(5)]
    for span in bad:
        span.span_id = b""
    content = json_lines([REQUESTS[0], request_of(*bad, simple_span(3))])
    recording = Recording([write(tmp_path / "refused", content)])

    assert [SPANS[:2], [SPANS[2]]] == [batch.spans for batch in recording.read()]
    (problem,) = recording.problems
    assert 2 == problem.line
    assert problem.what.startswith(
        "2 spans refused (invalid_span_id): resourceSpans[0].scopeSpans[0].spans[0]: span_id '' is not 8 bytes"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x28\xb5\x2f\xfd....", "file: zstd is not supported: decompress the file first"),
        (b"\x00\x00\x00\x09\x28\xb5\x2f\xfd....", "file: zstd is not supported: decompress the file first"),
        ("{}".encode("utf-16"), "file: the text is in UTF-16: OTLP/JSON is in UTF-8"),
        (b"\x7fELF\x02\x01", "file: neither OTLP/JSON nor OTLP in protobuf"),
        (b"\x0a\x03\x01", "file: not an ExportTraceServiceRequest in protobuf: the field at byte 2 is cut off"),
        (
            b"\x1f\x8b\x08",
            "file:1: the rest of the file cannot be read: Compressed file ended before the end-of-stream",
        ),
        (delimited_protobuf(REQUESTS)[:-1], "file:3: the request is cut off at the end of the file"),
        (delimited_protobuf(REQUESTS) + b"\x00\x00", "file:4: the request is cut off at the end of the file"),
        (delimited_protobuf(REQUESTS) + b"\xff" * 9, "file:4: the request is larger than 268,435,456 bytes"),
        (
            delimited_protobuf(REQUESTS) + bytes(50_000),
            "file:10004: 10,000 empty requests in a row, as of zeros; the rest of the file is not read",
        ),
        (
            b"\x00\x00\x00\x01\x0a" + delimited_protobuf(REQUESTS),
            "file:1: not an ExportTraceServiceRequest in protobuf",
        ),
    ],
)
def test_what_cannot_be_read_is_a_problem(tmp_path: Path, content: bytes, problem: str) -> None:
    """A file, or the rest of it, that cannot be read is reported, and the next file is read."""
    files = [write(tmp_path / "file", content), write(tmp_path / "good", json_lines(REQUESTS))]
    spans, problems = read(*files)

    assert SPANS == spans[-4:]
    assert [True] == [text.startswith(problem) for text in problems]


@pytest.mark.parametrize("encode", [json_lines, delimited_protobuf])
def test_a_broken_gzip_costs_only_its_rest(tmp_path: Path, encode: Callable[[Requests], bytes]) -> None:
    """What comes before a gzip stream breaks off is read and its traces finished, and so is the next file."""
    padding = "".join(map(chr, range(0x4E00, 0x9000)))  # does not compress
    content = encode([request_of(simple_span(n, name=padding)) for n in range(1, 40)])
    compressed = gzip.compress(content)
    files = [write(tmp_path / "file", compressed[: len(compressed) // 2]), write(tmp_path / "good", encode(REQUESTS))]
    recording = Recording(files)
    batches = list(recording.read())

    whole = [span.trace_id for batch in batches for span in batch.spans if span.name == padding]
    assert [trace_id(n) for n in range(1, len(whole) + 1)] == whole
    assert len(whole) > 9
    assert SPANS == [span for batch in batches for span in batch.spans if span.name != padding]
    assert set(whole) | {trace_id(n) for n in (1, 2, 3)} <= {id_ for batch in batches for id_ in batch.finished}
    assert 1 == recording.problem_count


def test_documents_have_a_limit(tmp_path: Path) -> None:
    """A line, a document over lines or a request larger than allowed is passed over; what follows is read."""
    large = request_of(simple_span(9, name="x" * 3_000))
    many_lines = request_of(simple_span(9, attributes=[KeyValue(key="k")] * 99))
    for content in (json_lines([large]), indented([large]), indented([many_lines])):
        path = write(tmp_path / "large", content + b"\n" + json_lines(REQUESTS))
        assert (SPANS, ["large:1: the request is larger than 2,000 bytes"]) == read(path, max_request_size=2_000)

    path = write(tmp_path / "large", protobuf([large]))
    problem = "large: the request is larger than 2,000 bytes; the rest of the file is not read"
    assert ([], [problem]) == read(path, max_request_size=2_000)


def test_many_problems_are_counted_but_not_kept(tmp_path: Path) -> None:
    """A file of another kind must not fill the memory with its problems."""
    recording = Recording([write(tmp_path / "log", b"oops\n" * 1_500)])

    assert [] == list(recording.read())
    assert (1_500, 1_000) == (recording.problem_count, len(recording.problems))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    """A file that is not there is refused before anything is read."""
    path = str(tmp_path / "missing")

    with pytest.raises(InputError, match=f"{path}: cannot be read: No such file or directory"):
        Recording([path])


def test_a_file_that_disappears_is_an_error(tmp_path: Path) -> None:
    """A file that is gone when its turn comes is named like one that was never there."""
    path = write(tmp_path / "file", json_lines(REQUESTS))
    recording = Recording([path])
    path.unlink()

    with pytest.raises(InputError, match=f"{path}: cannot be read: No such file or directory"):
        next(recording.read())


def test_a_directory_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    """Directories are read recursively; other files in them are passed over."""
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "1.PB", protobuf(REQUESTS[2:]))
    write(tmp_path / "a.jsonl.gz", gzip.compress(json_lines(REQUESTS[:1])))
    write(tmp_path / "README.md", b"# not a recording")

    assert (SPANS, []) == read(tmp_path)


def test_a_directory_with_nothing_to_read_is_an_error(tmp_path: Path) -> None:
    """A directory without recordings is most likely the wrong one."""
    write(tmp_path / "README.md", b"# not a recording")

    with pytest.raises(InputError, match=r"nothing to read in .*: no file ends in \.json, \.jsonl"):
        Recording([tmp_path])


@pytest.mark.parametrize("encode", FORMATS)
def test_standard_input_is_read(encode: Callable[[Requests], bytes]) -> None:
    """`-` is standard input, in any format, although it can be read only once."""
    assert (SPANS, []) == read("-", stdin=io.BytesIO(gzip.compress(encode(REQUESTS))))


def test_standard_input_is_read_once() -> None:
    """Naming standard input twice would read nothing the second time."""
    with pytest.raises(InputError, match="standard input \\('-'\\) can be read only once"):
        Recording(["-", "-"])


class Endless(io.RawIOBase):
    """A pipe whose writer never ends."""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read zeros."""
        buffer[:] = bytes(len(buffer))
        return len(buffer)


def test_endless_input_is_refused() -> None:
    """Only so much of standard input or of a pipe is copied, and the message says how much and what to do."""
    stdin = io.BufferedReader(io.BytesIO(json_lines(REQUESTS)))
    assert (SPANS, []) == read("-", stdin=stdin, max_copy_size=10_000)
    with pytest.raises(InputError, match=r"^-: cannot be read: it has more than the 10,000 bytes .*: save it"):
        read("-", stdin=io.BufferedReader(Endless()), max_copy_size=10_000)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_is_refused(device: str) -> None:
    """It may have no end."""
    with pytest.raises(InputError, match=f"^{device}: cannot be read: it is a device; a recording is a file"):
        Recording([device])


def test_a_pipe_is_read(tmp_path: Path) -> None:
    """A named pipe, such as a shell's process substitution, is read although it cannot be read twice."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(json_lines(REQUESTS),))
    writer.start()

    assert (SPANS, []) == read(pipe)
    writer.join()
