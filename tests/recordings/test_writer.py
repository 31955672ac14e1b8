from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from dialects.spans import built_in_log_names
from receivers.otlp_requests import CORPUS, CORPUS_NAMES, corpus_lines, from_json
from spanscore.errors import InputError
from spanscore.model import Span
from spanscore.recordings.files import Recording
from spanscore.recordings.in_memory import RequestsInMemory
from spanscore.recordings.writer import RecordingWriter, Request

NAMES = [f"runs{suffix}{gz}" for suffix in (".jsonl", ".ndjson", ".json", ".pb", ".binpb") for gz in ("", ".gz")]


def requests() -> list[Request]:
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
    return [Request("traces", traces.SerializeToString()), Request("logs", logs.SerializeToString())]


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
