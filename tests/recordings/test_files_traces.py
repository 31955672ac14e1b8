from __future__ import annotations

import gc
import gzip
import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from receivers.otlp_requests import request_of, simple_span, to_json, trace_id
from spanscore.recordings.files import Recording
from spanscore.recordings.span_batches import SpanBatch


def encode(traces: Iterable[Iterable[int]], form: str) -> bytes:
    """Record one request for each list of trace numbers, with a span for each number."""
    requests = [request_of(*(simple_span(trace) for trace in request)) for request in traces]
    if form == "protobuf":
        bodies = [request.SerializeToString() for request in requests]
        return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
    return b"\n".join(to_json(request, indent=1 if form == "indented" else None) for request in requests)


def numbers(batch: SpanBatch) -> tuple[list[int], set[int]]:
    """Return the traces of a batch's spans, and those it finishes."""
    traces = [int.from_bytes(span.trace_id, "big") for span in batch.spans]
    return traces, {int.from_bytes(finished, "big") for finished in batch.finished}


_FILES = st.lists(
    st.tuples(
        st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=4),
        st.sampled_from(["lines", "indented", "protobuf"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


@given(files=_FILES)
def test_a_trace_is_finished_with_its_last_span(files: list[tuple[list[list[int]], str, bool]]) -> None:
    """Each trace is finished once, with the request that has its last span, in whatever files its spans are."""
    left = [trace for requests, *_ in files for request in requests for trace in request]
    expected = []
    for request in [request for requests, *_ in files for request in requests]:
        del left[: len(request)]
        expected.append((request, set(request) - set(left)))
    with tempfile.TemporaryDirectory() as folder:
        for number, (requests, form, compress) in enumerate(files):
            content = encode(requests, form)
            Path(folder, f"{number}.otlp").write_bytes(gzip.compress(content) if compress else content)

        assert expected == [numbers(batch) for batch in Recording([folder]).read()]


def test_an_id_is_found_across_blocks(tmp_path: Path) -> None:
    """A trace is not finished early because its last id lies across two of the blocks in which a file is read."""
    path = tmp_path / "lines.jsonl"
    traces = range(1, 101)
    first, rest = encode([traces], "lines"), encode([[n] for n in traces], "lines")
    expected = [(list(traces), set()), *(([n], {n}) for n in traces)]

    def is_read_alike(shift: int) -> bool:
        # The second block ends a little behind 1 MiB, somewhere in the rest.
        path.write_bytes(first.ljust(1_040_000 + shift) + b"\n" + rest)
        return [numbers(batch) for batch in Recording([path]).read()] == expected

    assert [] == [shift for shift in range(0, len(rest) // len(traces), 7) if not is_read_alike(shift)]


ABC = trace_id(0xABC).hex().encode()


@pytest.mark.parametrize(
    ("plain", "written"),
    [
        (ABC, ABC.upper()),
        (b'"traceId"', b'"\\u0074race\\u0049d"'),
        (ABC, b"\\u0030" + ABC[1:]),
        (ABC, ABC[:-3] + b"\\u0061\\u0062\\u0043"),
        (b'"traceId"', b'"traceId": "x", "traceId"'),
        (b'"traceId"', b'"a": "\\"traceId\\": \\u0022", "traceId"'),
        (b'"traceId": ', b'"traceId"\t\t\t:   '),
        (b'"traceId": ', b'"traceId":' + b" " * 3_000_000),
    ],
)
def test_an_id_is_found_however_it_is_written(tmp_path: Path, plain: bytes, written: bytes) -> None:
    """A trace is not finished early because its last id is written in another way that means the same."""
    path = tmp_path / "lines.jsonl"
    line = encode([[0xABC]], "lines")
    path.write_bytes(line + b"\n" + line.replace(plain, written))

    assert [([0xABC], set()), ([0xABC], {0xABC})] == [numbers(batch) for batch in Recording([path]).read()]


def test_reading_may_be_left_early(tmp_path: Path) -> None:
    """Who stops in the middle leaves no file open."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(gzip.compress(encode([[1], [2], [3]], "lines")))
    batches = Recording([path]).read()

    assert ([1], {1}) == numbers(next(batches))
    batches.close()
    gc.collect()  # an open file would warn, and warnings are errors


def test_reading_may_be_repeated(tmp_path: Path) -> None:
    """A recording of files gives the same each time."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(encode([[1], [2, 1]], "lines"))
    recording = Recording([path])

    assert list(recording.read()) == list(recording.read())


def test_what_was_found_is_that_of_the_last_reading(tmp_path: Path) -> None:
    """Reading again does not count the problems again."""
    path = tmp_path / "lines.jsonl"
    path.write_bytes(
        b"oops\n" + to_json(request_of(Span(), simple_span(1, parent_span_id=bytes(8)))) + b'\n{"resourceMetrics":[]}'
    )
    recording = Recording([path])
    for _ in range(2):
        assert 1 == sum(len(batch.spans) for batch in recording.read())
        assert (2, 2, 1) == (len(recording.problems), recording.problem_count, recording.other_signals)


@pytest.mark.parametrize("compress", [False, True])
def test_progress_goes_up_to_the_total(tmp_path: Path, *, compress: bool) -> None:
    """Progress counts both passes over all files, never goes back, and ends at the total."""
    path = tmp_path / "lines.jsonl"
    attribute = simple_span(1, name="x" * 700_000)
    content = to_json(request_of(attribute)) + b"\n"
    path.write_bytes(gzip.compress(content * 5) if compress else content * 5)
    (tmp_path / "unknown.bin").write_bytes(b"\x7fELF\x02\x01")
    seen: list[tuple[int, int]] = []
    for _ in Recording(
        [path, path, tmp_path / "unknown.bin"], progress=lambda done, total: seen.append((done, total))
    ).read():
        pass
    total = 4 * path.stat().st_size + 2 * 6

    assert (total, total) == seen[-1]
    assert sorted(seen) == seen
    assert {total} == {of for _, of in seen}
    assert len(seen) >= (4 if compress else 12)


def recording_of(traces: int, folder: Path) -> Path:
    """Record traces of two spans, in requests of five traces."""
    path = folder / f"{traces}.jsonl"
    spans = [to_json(request_of(simple_span(1, 1), simple_span(1, 2)))] * 5
    pattern = json.dumps({"resourceSpans": [json.loads(span)["resourceSpans"][0] for span in spans]})
    parts = pattern.replace("%", "%%").replace(trace_id(1).hex(), "%032x") + "\n"
    with path.open("w") as file:
        for first in range(1, traces, 5):
            file.write(parts % tuple(number for number in range(first, first + 5) for _ in range(2)))
    return path


def peak_of_reading(path: Path) -> tuple[int, int]:
    """Return the traces of a recording, and the most memory that reading takes."""
    traces = 0
    tracemalloc.start()
    for batch in Recording([path]).read():
        traces += len(batch.finished)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return traces, peak


@pytest.mark.parametrize("times", [3, pytest.param(10, marks=pytest.mark.full_size)])
def test_memory_does_not_grow_with_the_traces(tmp_path: Path, times: int) -> None:
    """Many times the traces take more memory only for the table of where each trace ends."""
    few, peak_of_few = peak_of_reading(recording_of(2_000, tmp_path))
    many, peak_of_many = peak_of_reading(recording_of(2_000 * times, tmp_path))

    assert (2_000, 2_000 * times) == (few, many)
    assert peak_of_many - peak_of_few < 250 * (many - few)


def test_a_trace_whose_spans_are_refused_is_finished(tmp_path: Path) -> None:
    """The finished may hold a trace that has no span at all, because all of them were refused."""
    bad = Span(trace_id=trace_id(7))
    path = tmp_path / "lines.jsonl"
    path.write_bytes(to_json(request_of(simple_span(1), bad)))

    assert [([1], {1, 7})] == [numbers(batch) for batch in Recording([path]).read()]


CHANGES: dict[str, Callable[[Path], object]] = {
    "a line before": lambda path: path.write_bytes(encode([[9]], "lines") + b"\n" + path.read_bytes()),
    "a line less": lambda path: path.write_bytes(encode([[2]], "lines")),
    "empty": lambda path: path.write_bytes(b""),
    "larger with the same end": lambda path: path.write_bytes(encode([[4], [3], [5]], "lines") + b"\n"),
    "of the same size with the same end": lambda path: path.write_bytes(encode([[4], [3]], "lines")),
    "of the same size": lambda path: path.write_bytes(encode([[4], [5]], "lines")),
    "another file": lambda path: (
        path.with_name("new").write_bytes(encode([[2]], "lines")),
        path.with_name("new").replace(path),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_both_passes_is_a_problem(change: str, tmp_path: Path) -> None:
    """The first pass knows nothing of what came later: such spans may be in no finished trace, or others be gone."""
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    for file, requests in zip(files, ([[1]], [[2], [3]]), strict=True):
        file.write_bytes(encode(requests, "lines"))
        os.utime(file, (0, 0))
    recording = Recording(files)
    batches = recording.read()
    next(batches)
    CHANGES[change](files[1])
    for _ in batches:
        pass

    assert [f"{files[1]}: it changed while it was read: spans may be missing"] == [*map(str, recording.problems)]


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "lines": lambda content: content,
    "protobuf": lambda content: content,
    "lines, gzip": gzip.compress,
}


@pytest.mark.parametrize("is_cut_off", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_grows_is_read_as_it_was_at_the_start(form: str, *, is_cut_off: bool, tmp_path: Path) -> None:
    """A Collector appends whenever spans come. A request that it has begun to write is no broken one."""
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    files[0].write_bytes(encode([[1]], "lines") + b"\n")
    begin, more = (FORMS[form](_ended(encode([[n]], form.partition(",")[0]))) for n in (2, 3))
    place = len(more) // 2 if is_cut_off else 0
    now, later = more[:place], more[place:]
    files[1].write_bytes(begin + now)
    recording = Recording(files)
    batches = recording.read()
    read = [*next(batches).spans]
    with files[1].open("ab") as file:
        file.write(later)
    read += [span for batch in batches for span in batch.spans]

    assert [1, 2] == [int.from_bytes(span.trace_id, "big") for span in read]
    assert [] == recording.problems
    told = f"1 file grew while being read: {files[1]}; the part that was appended since the start is left out"
    assert [told] == recording.left_out_files()


def test_a_request_that_is_cut_off_for_good_is_a_problem(tmp_path: Path) -> None:
    """So are broken lines before the last one, and one that is wrong although it is whole, of a file that grows."""
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    line = encode([[1]], "lines")
    files[0].write_bytes(line + b"\n")
    files[1].write_bytes(line[:-9] + b"\n" + line + b"\n{]\n")
    recording = Recording(files)
    batches = recording.read()
    next(batches)
    with files[1].open("ab") as file:
        file.write(line)
    assert [1] == [int.from_bytes(span.trace_id, "big") for batch in batches for span in batch.spans]
    assert [(str(files[1]), 1), (str(files[1]), 3)] == [(each.file, each.line) for each in recording.problems]

    files[1].write_bytes(line + b"\n" + line[:-9])
    recording = Recording(files)
    assert [1, 1] == [int.from_bytes(span.trace_id, "big") for batch in recording.read() for span in batch.spans]
    assert [(str(files[1]), 2)] == [(each.file, each.line) for each in recording.problems]


@pytest.mark.parametrize("text", [b'{"resourceSpans": 7}', b'{"resourceSpans": "x"}', b"[%s, 7]"])
def test_a_last_line_that_is_wrong_is_a_problem_if_the_file_grows(text: bytes, tmp_path: Path) -> None:
    """Only a request that is cut off may be completed meanwhile: this one is whole, without the end of its line."""
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    files[0].write_bytes(encode([[1]], "lines") + b"\n")
    files[1].write_bytes(text % encode([[2]], "lines") if b"%" in text else text)
    recording = Recording(files)
    batches = recording.read()
    read = [*next(batches).spans]
    with files[1].open("ab") as file:
        file.write(b"\n" + encode([[3]], "lines"))
    read += [span for batch in batches for span in batch.spans]

    assert [1, 2][: 1 + (b"%" in text)] == [int.from_bytes(span.trace_id, "big") for span in read]
    assert [(str(files[1]), 1)] == [(each.file, each.line) for each in recording.problems]


def _ended(content: bytes) -> bytes:
    return content + b"\n" if content.startswith(b"{") else content
