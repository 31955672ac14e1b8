"""Spans and logs in protobuf told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from otlp.log_requests import TRACE_ID, logs, record
from otlp_capture import records_of, spans_of
from receivers.otlp_requests import request_of, simple_span
from spanscore.otlp.signals import Apart, apart, begins_with_logs, has_logs

SPANS = request_of(simple_span(1))
LOGS = logs([record("codex.a")])
EMPTY_SPANS = request_of()
EMPTY_SPANS.resource_spans.append(ResourceSpans(schema_url="s"))
EMPTY_LOGS = logs([])
EMPTY_LOGS.resource_logs.append(ResourceLogs(schema_url="s"))


@pytest.mark.parametrize(
    "written",
    [
        record("codex.a"),
        record("codex.a", time_unix_nano=0, observed_time_unix_nano=1),
        record("codex.a", time_unix_nano=0, trace_id=b"", span_id=b""),
        LogRecord(observed_time_unix_nano=1),
        LogRecord(severity_text="INFO", body=AnyValue(string_value="a text")),
        LogRecord(severity_text="INFO", severity_number=9),
        LogRecord(body=AnyValue(string_value="a text"), trace_id=TRACE_ID),
        LogRecord(dropped_attributes_count=1),
        LogRecord(flags=1),
    ],
)
def test_a_log_record(written: LogRecord) -> None:
    """Whatever it lacks, and whatever it begins with."""
    body = logs([written]).SerializeToString()
    assert has_logs(body)
    assert begins_with_logs(body)
    assert Apart(b"", body) == apart(body)


@pytest.mark.parametrize(
    "span",
    [
        simple_span(1),
        Span(span_id=b"12345678", name="without a trace id"),
        Span(trace_state="a=b", name="work", kind=Span.SPAN_KIND_CLIENT),
        Span(name="work", start_time_unix_nano=1),
        Span(name="work", end_time_unix_nano=1),
        Span(name="work", status=Status(message="no")),
        Span(name="work", events=[Span.Event(name="x")]),
    ],
)
def test_a_span(span: Span) -> None:
    """A broken one, too: it is refused as a span is."""
    body = request_of(span).SerializeToString()
    assert not has_logs(body)
    assert not begins_with_logs(body)
    assert Apart(body, b"") == apart(body)


@pytest.mark.parametrize("body", [b"", b"\xff", b"\x0a\x03\x01", EMPTY_SPANS.SerializeToString()])
def test_what_is_neither(body: bytes) -> None:
    """It is left to those who read spans."""
    assert not has_logs(body)
    assert not begins_with_logs(body)
    assert Apart(body, b"") == apart(body)


@pytest.mark.parametrize("empty", [b"\x0a\x00", b"\x12\x00", b"\x0a\x02\x12\x00"])
def test_the_first_record_is_not_looked_for_for_long(empty: bytes) -> None:
    """It may be behind some empty parts, or parts of other numbers, but not behind thousands."""
    body = LOGS.SerializeToString()
    assert begins_with_logs(empty * 1_000 + body)
    assert not begins_with_logs(empty * 10_000 + body)


@given(st.lists(st.sampled_from([SPANS, LOGS, EMPTY_SPANS, EMPTY_LOGS]), max_size=8))
def test_joined_requests_are_taken_apart(requests: list[object]) -> None:
    """Every record is in the part it belongs to, in its order."""
    joined = b"".join(each.SerializeToString() for each in requests)  # type: ignore[attr-defined] # all are messages
    found = apart(joined)

    assert [simple_span(1)] * sum(each is SPANS for each in requests) == spans_of([found.spans])
    assert [record("codex.a")] * sum(each is LOGS for each in requests) == records_of([found.logs])


def test_a_field_that_nobody_knows_stays() -> None:
    """It goes with the spans."""
    unknown = b"\xc8\x3e\x96\x01"
    assert SPANS.SerializeToString() + unknown == apart(SPANS.SerializeToString() + unknown).spans
    assert apart(LOGS.SerializeToString() + unknown + SPANS.SerializeToString()).spans.endswith(unknown)


@given(st.binary(max_size=200))
def test_any_bytes_are_taken_apart(body: bytes) -> None:
    """Nothing is raised, and nothing lost."""
    assert len(body) == sum(map(len, apart(body)))
