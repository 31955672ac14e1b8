from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dialects.spans import built_in_log_names
from full_disk import room_for
from receivers.otlp_requests import CORPUS, CORPUS_NAMES, corpus_lines, from_json
from spanscore.errors import InputError
from spanscore.model import Span
from spanscore.recordings.files import Recording
from spanscore.recordings.span_batches import RequestsInMemory
from spanscore.recordings.writer import ProtobufRequest, RecordingWriter

NAMES = [f"runs{suffix}{gz}" for suffix in (".jsonl", ".ndjson", ".json", ".pb", ".binpb") for gz in ("", ".gz")]


def requests() -> list[ProtobufRequest]:
    """Spans with links, events and every kind of value, and a log record."""
    traces, logs = ExportTraceServiceRequest(), ExportLogsServiceRequest()
    span = (
        traces.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=bytes(range(16)), span_id=b"\1" * 8, parent_span_id=b"\2" * 8, name="execute_tool é\u2028", kind=3
        )
    )
    span.start_time_unix_nano, span.end_time_unix_nano = 2**63 - 2, 2**63 - 1
    span.attributes.add(key="bytes").value.bytes_value = b"\xff\0"
    span.attributes.add(key="int").value.int_value = -(2**62)
    span.attributes.add(key="text").value.string_value = '{"a": "\\n"}'
    span.attributes.add(key="list").value.array_value.values.add().double_value = 0.1
    span.links.add(trace_id=b"\3" * 16, span_id=b"\4" * 8)
    span.events.add(name="exception").attributes.add(key="exception.type").value.string_value = "E"
    span.status.code = 2
    record = (
        logs.resource_logs.add()
        .scope_logs.add()
        .log_records.add(trace_id=bytes(range(16)), span_id=b"\1" * 8, event_name="codex.tool_result", time_unix_nano=5)
    )
    record.attributes.add(key="tool_name").value.string_value = "shell"
    return [ProtobufRequest("traces", traces.SerializeToString()), ProtobufRequest("logs", logs.SerializeToString())]


def spans(recording: Recording | RequestsInMemory) -> list[Span]:
    """Return what is read."""
    return [span for batch in recording.read() for span in batch.spans]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_what_is_read(name: str, tmp_path: Path) -> None:
    """In every format spans and logs are as they were, in their order."""
    with RecordingWriter(tmp_path / name) as writer:
        for signal, body in requests():
            writer.write(signal, body)

    recording = Recording([tmp_path / name], log_names=built_in_log_names())
    assert spans(recording) == spans(RequestsInMemory(requests(), built_in_log_names()))
    assert 2 == len(spans(recording))
    assert [] == recording.problems


@pytest.mark.parametrize("name", [name for name in CORPUS_NAMES if not name.endswith("-logs")][::9])
def test_real_requests(name: str, tmp_path: Path) -> None:
    """Spans of real frameworks, from OTLP/JSON to protobuf and back."""
    with RecordingWriter(tmp_path / "runs.jsonl") as writer:
        for line in corpus_lines(name):
            if b'"resourceSpans"' in line:
                writer.write("traces", from_json(line).SerializeToString())

    assert spans(Recording([tmp_path / "runs.jsonl"])) == spans(Recording([CORPUS / f"{name}.jsonl.gz"]))


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz", "runs.pb", "runs.pb.gz"])
def test_replaced_or_appended_to(name: str, tmp_path: Path) -> None:
    """By default the file is replaced, when there is something to write; else it is kept."""
    path = tmp_path / name
    counts = []
    for append, times in ((False, 2), (True, 1), (False, 1), (False, 0)):
        with RecordingWriter(path, append=append) as writer:
            for _ in range(times):
                writer.write(*requests()[0])
        counts.append(len(spans(Recording([path]))))

    assert counts == [2, 3, 1, 1]


def test_a_file_that_got_nothing_is_not_left_behind(tmp_path: Path) -> None:
    """An empty recording would be taken for one."""
    with RecordingWriter(tmp_path / "runs.jsonl"):
        pass

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["runs", "runs.txt", "runs.gz", "runs.jsonl.zip", "missing/runs.jsonl", ".."])
def test_where_nothing_can_be_recorded_to(name: str, tmp_path: Path) -> None:
    """The message names the path, and the endings where that is what is wrong."""
    with pytest.raises(InputError, match="cannot record to") as raised:
        RecordingWriter(tmp_path / name)

    assert (".jsonl" in str(raised.value).partition(": ")[2]) == ("missing" not in name)


def test_a_name_that_is_too_long_for_a_file(tmp_path: Path) -> None:
    """A name that is too long fails when the writer checks whether the file exists."""
    with pytest.raises(InputError, match=r"cannot record to .*: File name too long"):
        RecordingWriter(tmp_path / f"{'x' * 300}.jsonl")


def write(writer: RecordingWriter, count: int, *others: bytes) -> None:
    """Write a request so many times, and then others."""
    with writer:
        for body in (*[requests()[0].body] * count, *others):
            writer.write("traces", body)


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz", "runs.pb"])
def test_the_earlier_one_is_there_until_the_end(name: str, tmp_path: Path) -> None:
    """What is written is a recording from the first request on, beside the earlier one; at the end it gets its mode."""
    path, part = tmp_path / name, tmp_path / f"{name}.part"
    with RecordingWriter(path) as writer:
        writer.write(*requests()[0])
    path.chmod(0o640)
    earlier = path.read_bytes()
    with RecordingWriter(path) as writer:
        for count in (1, 2, 3):
            writer.write(*requests()[0])
            assert count == len(spans(Recording([part])))
        assert earlier == path.read_bytes()
        assert 1 == len(spans(Recording([tmp_path])))

    assert 3 == len(spans(Recording([path])))
    assert (0o640, [path]) == (path.stat().st_mode & 0o777, list(tmp_path.iterdir()))


def test_a_link_stays_one(tmp_path: Path) -> None:
    """The file that it leads to is replaced."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs.jsonl").symlink_to(tmp_path / "disk" / "real.jsonl")
    with RecordingWriter(tmp_path / "runs.jsonl") as writer:
        writer.write(*requests()[0])

    assert [tmp_path / "disk" / "real.jsonl"] == list((tmp_path / "disk").iterdir())
    assert 1 == len(spans(Recording([tmp_path / "runs.jsonl"])))


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz", "runs.pb", "runs.pb.gz"])
@pytest.mark.parametrize("append", [False, True])
def test_a_full_disk_costs_nothing_that_was_there(name: str, append: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Of a request that does not fit nothing is written, and a recording that is not whole replaces none."""
    path = tmp_path / name
    with RecordingWriter(path) as writer:
        writer.write(*requests()[0])
    one = path.stat().st_size
    earlier = path.read_bytes()
    with room_for(3 * one + one // 2), pytest.raises(OSError, match="too large"):
        write(writer := RecordingWriter(path, append=append), 5)
    assert path.read_bytes().startswith(earlier)
    part = tmp_path / f"{name}.part"
    assert (None if append else part) == writer.kept
    assert 3 == len(spans(Recording([path if append else part])))
    assert (3 if append else 1) == len(spans(Recording([path])))
    assert [] == Recording([tmp_path]).problems


def test_what_a_kill_leaves_is_named_and_kept(tmp_path: Path) -> None:
    """It moves out of the way of the next recording, each time under a new name."""
    path = tmp_path / "runs.jsonl"
    program = (
        "import os, sys; from spanscore.recordings.writer import RecordingWriter\n"
        "writer = RecordingWriter(sys.argv[1])\n"
        "if writer.left_behind: print(writer.left_behind)\n"
        "writer.write('traces', bytes.fromhex(sys.argv[2])); os.kill(os.getpid(), 9)"
    )
    arguments = [sys.executable, "-c", program, path, requests()[0].body.hex()]
    found = [subprocess.run(arguments, capture_output=True, text=True, check=False).stdout.strip() for _ in range(3)]

    assert ["", f"{path}.part.1", f"{path}.part.2"] == found
    assert [f"{path}.part", f"{path}.part.1", f"{path}.part.2"] == sorted(map(str, tmp_path.iterdir()))
    for each in tmp_path.iterdir():
        assert 1 == len(spans(Recording([each])))


def test_two_at_a_time(tmp_path: Path) -> None:
    """A recording that is under way is no left one: the second cannot begin, and can when the first has ended."""
    with RecordingWriter(tmp_path / "runs.jsonl") as writer:
        writer.write(*requests()[0])
        with pytest.raises(InputError, match="another process is recording to it"):
            RecordingWriter(tmp_path / "runs.jsonl")
    with RecordingWriter(tmp_path / "runs.jsonl") as writer:
        assert writer.left_behind is None


def test_an_error_inside_replaces_nothing(tmp_path: Path) -> None:
    """What was written until then is kept."""
    (tmp_path / "runs.jsonl").write_text("old")
    with pytest.raises(DecodeError):
        write(RecordingWriter(tmp_path / "runs.jsonl"), 1, b"no request")

    assert "old" == (tmp_path / "runs.jsonl").read_text()
    assert 1 == len(spans(Recording([tmp_path / "runs.jsonl.part"])))


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    """Its reader has each request at once, and it is still a pipe."""
    path = tmp_path / "runs.jsonl"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with RecordingWriter(path) as writer:
            writer.write(*requests()[0])
            assert os.read(reader, 2**16).endswith(b"}\n")
    finally:
        os.close(reader)

    assert (True, [path]) == (path.is_fifo(), list(tmp_path.iterdir()))


def test_appended_behind_a_line_without_an_end(tmp_path: Path) -> None:
    """A document that an editor, or a kill, left without its newline costs nothing of what comes behind it."""
    path = tmp_path / "runs.jsonl"
    for _ in range(2):
        with RecordingWriter(path, append=True) as writer:
            writer.write(*requests()[0])
        path.write_bytes(path.read_bytes().rstrip())

    assert 2 == len(spans(Recording([path])))


def forms(folder: Path) -> dict[str, bytes]:
    """Return the content of a recording in each form that the writer has, and in others."""
    found = {}
    for name in ("runs.jsonl", "runs.jsonl.gz", "runs.pb", "runs.pb.gz"):
        with RecordingWriter(folder / name) as writer:
            writer.write(*requests()[0])
        found[name] = (folder / name).read_bytes()
        (folder / name).unlink()
    bare, text = requests()[0].body, found["runs.jsonl"]
    cut = {f"cut {name}": content[:-1] for name, content in found.items() if name != "runs.jsonl"}
    others = {"bare": bare, "bare in gzip": gzip.compress(bare), "UTF-16": text.decode().encode("utf-16")}
    return found | cut | others | {"zstd": b"\x28\xb5\x2f\xfd....", "Parquet": b"PAR1....", "binary": b"\x7fELF\x02"}


OTHER_FORMS = [
    ("runs.jsonl", "runs.jsonl.gz", "it is gzip"),
    ("runs.jsonl", "runs.pb", "it has protobuf"),
    ("runs.jsonl", "bare", "it has protobuf"),
    ("runs.jsonl", "UTF-16", "the text is in UTF-16: OTLP/JSON is in UTF-8"),
    ("runs.jsonl", "zstd", "zstd is not supported: decompress the file first"),
    ("runs.jsonl", "binary", "neither OTLP/JSON nor OTLP in protobuf"),
    ("runs.jsonl", "Parquet", "a Parquet file"),
    ("runs.jsonl.gz", "runs.jsonl", "it is not gzip"),
    ("runs.jsonl.gz", "runs.pb.gz", "it has protobuf"),
    ("runs.jsonl.gz", "cut runs.jsonl.gz", "the rest of the file cannot be read: "),
    ("runs.pb", "runs.jsonl", "it has JSON or text"),
    ("runs.pb", "runs.pb.gz", "it is gzip"),
    ("runs.pb", "bare", "it has one request, without its length"),
    ("runs.pb", "cut runs.pb", "its last request is cut off"),
    ("runs.pb.gz", "runs.pb", "it is not gzip"),
    ("runs.pb.gz", "runs.jsonl.gz", "it has JSON or text"),
    ("runs.pb.gz", "bare in gzip", "it has one request, without its length"),
    ("runs.pb.gz", "cut runs.pb.gz", "the rest of the file cannot be read: "),
]


@pytest.mark.parametrize(("name", "form", "told"), OTHER_FORMS)
def test_nothing_is_appended_to_another_form(name: str, form: str, told: str, tmp_path: Path) -> None:
    """The requests could not be read there, and would make unreadable what is there."""
    content = forms(tmp_path)[form]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"^cannot append to {str(path)!r}, which must be .*, by its name: {told}"):
        RecordingWriter(path, append=True)

    assert content == path.read_bytes()


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz", "runs.pb", "runs.pb.gz"])
def test_an_empty_file_is_appended_to(name: str, tmp_path: Path) -> None:
    """Such a file has no form yet, or is gzip of nothing."""
    for content in {b"", gzip.compress(b"") if name.endswith(".gz") else b""}:
        (tmp_path / name).write_bytes(content)
        with RecordingWriter(tmp_path / name, append=True) as writer:
            writer.write(*requests()[0])
        assert 1 == len(spans(Recording([tmp_path / name])))
