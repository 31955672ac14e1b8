"""Log records as spans: which are read, and what of them."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from otlp.log_requests import SPAN_ID, TRACE_ID, logs, record
from receivers.otlp_requests import field, request_of, simple_span
from spanscore.model import LOG_RECORD, NO_SPAN, reported_trace_id, session_key
from spanscore.otlp import from_logs
from spanscore.otlp.findings import Caveat, Decoded, MalformedRequest, Refusal
from spanscore.otlp.from_logs import decode_logs, decoding_logs, log_trace_ids, narrowed_logs
from spanscore.otlp.protobuf_check import checking
from spanscore.otlp.slices import at_once
from spanscore.otlp.wire import length_delimited
from spanscore.trajectories.log_records import run_id

NAMES = ("codex.", "gen_ai.choice")


def decoded(*records: from_logs.LogRecord) -> Decoded:
    """Decode a request with these records."""
    return decode_logs(logs(records).SerializeToString(), NAMES)


def test_a_record_is_a_span() -> None:
    """It has the record's name, time, span and attributes, and the resource and the scope around it."""
    (span,) = decoded(record("codex.tool_result", {"tool_name": "shell", "n": 1, "list": [True]})).spans

    assert (span.trace_id, span.parent_span_id, span.name) == (TRACE_ID, SPAN_ID, "codex.tool_result")
    assert (span.kind, span.start_ns, span.end_ns, span.is_log) == (LOG_RECORD, 7, 7, True)
    assert span.attributes == {"tool_name": "shell", "n": 1, "list": [True]}
    assert (span.scope, span.resource) == ("a scope", {"service.name": "agent"})


@pytest.mark.parametrize(
    "written",
    [
        record("codex.tool_result"),
        record("", {"event.name": "codex.tool_result"}),
        record("", {"otel.event.name": "codex.tool_result"}, body="A tool was called."),
        record("", {"event.name": "tool_result"}, body="codex.tool_result"),
        record("other", {"event.name": "codex.tool_result"}, body="A tool was called."),
    ],
)
def test_the_name_of_an_event(written: from_logs.LogRecord) -> None:
    """It stands in its field, in an attribute, or is the body."""
    assert ["codex.tool_result"] == [span.name for span in decoded(written).spans]


def test_what_nobody_reads_is_not_there() -> None:
    """Neither a record with another name, nor one that only mentions the name somewhere."""
    others = [record("http.request", body="a codex.tool_result was seen"), record("", body=""), record("codexx")]
    request = decoded(*others)

    assert ([], (), {}) == (request.spans, request.refused, request.caveats)
    assert [] == decode_logs(logs([record("codex.tool_result")]).SerializeToString(), ()).spans


def test_a_body() -> None:
    """The entries of a mapping are attributes, where the record has none of that name; another body is one."""
    one = record("gen_ai.choice", {"index": 1}, body={"index": 0, "message": {"role": "assistant"}})
    two = record("gen_ai.choice", body="text")

    assert [{"index": 1, "message": {"role": "assistant"}}, {"body": "text"}] == [
        span.attributes for span in decoded(one, two).spans
    ]


def test_the_time_when_it_was_seen_where_there_is_no_other() -> None:
    """Some emitters leave the time of the event at zero."""
    (span,) = decoded(record("codex.x", time_unix_nano=0, observed_time_unix_nano=9)).spans
    assert 9 == span.start_ns


def test_a_record_outside_of_spans_has_a_parent_that_is_none() -> None:
    """It is not taken for a root."""
    (span,) = decoded(record("codex.x", span_id=b"")).spans
    assert NO_SPAN == span.parent_span_id


def test_records_without_a_trace_are_a_run_by_session_and_prompt() -> None:
    """Those of one prompt in one session of one service are together; without a session there is no telling."""

    def run(service: str = "agent", **attributes: str) -> bytes | None:
        told = {key.replace("_", "."): value for key, value in attributes.items()}
        request = decode_logs(logs([record("codex.x", told, trace_id=b"")], service=service).SerializeToString(), NAMES)
        assert ({} if request.spans else {Caveat.NO_RUN: 1}) == request.caveats
        return request.spans[0].trace_id if request.spans else None

    one = run(session_id="s", prompt_id="p")
    assert one == run(session_id="s", prompt_id="p")
    assert one is not None
    assert 16 == len(reported_trace_id(one))
    others = [run(session_id="s", prompt_id="q"), run(session_id="t", prompt_id="p"), run(conversation_id="s")]
    others.append(run("another", session_id="s", prompt_id="p"))
    assert len({one, *others}) == 5
    assert None is run(prompt_id="p")


def test_a_session_has_a_key_that_no_span_can_name() -> None:
    """It is longer than a trace id; the id that is reported is as long, and stays the same."""
    attributes = {"session.id": "s", "prompt.id": "p"}
    (span,) = decoded(record("codex.x", attributes, trace_id=b"")).spans

    reported = reported_trace_id(span.trace_id)

    assert blake2b(b"agent\0s\0p", digest_size=16).digest() == reported
    assert session_key(reported) == span.trace_id != reported
    with_id = decoded(record("codex.x", attributes, trace_id=reported)).spans
    assert [reported] == [each.trace_id for each in with_id]
    longer = decoded(record("codex.x", trace_id=span.trace_id))
    assert ([], {Caveat.NO_RUN: 1}) == ([each.trace_id for each in longer.spans], longer.caveats)


Parts = tuple[str, str, str]
TEXTS = st.text("ab\0", max_size=4)


@given(st.tuples(TEXTS, TEXTS, TEXTS), st.tuples(TEXTS, TEXTS, TEXTS))
def test_services_and_sessions_are_told_apart_whatever_they_contain(one: Parts, other: Parts) -> None:
    """Each of the three texts may contain what stands between them in the identity."""

    def run(service: str, session: str, prompt: str) -> bytes | None:
        return run_id({"session.id": f"x{session}", "prompt.id": f"y{prompt}"}, {"service.name": service})

    assert (run(*one) == run(*other)) == (one == other)


def test_the_prompts_of_one_session() -> None:
    """Gemini CLI: the only prompt is named as the session, others begin with its id, and sub-agents' turns do not."""

    def run(*prompt: str) -> bytes:
        told = {"session.id": "s1", **dict.fromkeys(["prompt_id"][: len(prompt)], "".join(prompt))}
        return decoded(record("codex.x", told, trace_id=b"")).spans[0].trace_id

    assert run() == run("s1") == run("a-sub-agent#0") == run("a-sub-agent#17")
    assert 3 == len({run(), run("s1########0"), run("s1########1")})
    assert run() != run("another#prompt")


def test_records_that_nobody_reads_are_counted() -> None:
    """Whether another one in the request is read or not; what is refused, or has no run, has a count of its own."""
    read, other = record("codex.a"), record("http.request")
    assert (1, 2) == (len(decoded(read, other, other).spans), decoded(read, other, other).unread)
    assert 2 == decoded(other, other).unread
    assert 0 == decoded(record("codex.a", trace_id=b"")).unread
    assert 0 == decode_logs(b"", NAMES).unread
    assert 1 == decode_logs(logs([read]).SerializeToString(), ()).unread


@given(st.lists(st.sampled_from(["codex.a", "gen_ai.choice", "other", ""]), max_size=6))
def test_every_record_is_read_or_counted(names: list[str]) -> None:
    """None is both, and none is neither."""
    found = decoded(*(record(name, time_unix_nano=place) for place, name in enumerate(names)))
    assert len(names) == len(found.spans) + found.unread


def test_a_record_that_is_sent_again_is_equal() -> None:
    """And another one is not."""
    written = record("codex.x", {"n": 1})
    one, again, other = decoded(written, written, record("codex.x", {"n": 2})).spans

    assert one == again
    assert one.span_id != other.span_id


def test_a_broken_record_costs_itself() -> None:
    """It is refused with its reason, where it would be read."""
    good, bad = record("codex.a"), record("codex.b")
    request = logs([good, bad]).SerializeToString().replace(b"codex.b", b"codex.\xff")

    found = decode_logs(request, NAMES)

    assert ["codex.a"] == [span.name for span in found.spans]
    assert [(Refusal.MALFORMED, 1)] == [(each.reason, each.spans) for each in found.refused]


def test_too_many_records() -> None:
    """Of those that nobody reads there may be more."""
    many = [record("other")] * 3 + [record("codex.a", time_unix_nano=number) for number in range(3)]
    body = logs(many).SerializeToString()

    assert 3 == len(decode_logs(body, NAMES, max_records=3).spans)
    with pytest.raises(MalformedRequest, match="more than 2 log records that are read"):
        decode_logs(body, NAMES, max_records=2)


@pytest.mark.parametrize(
    "other",
    [
        request_of(simple_span(1)),
        ExportMetricsServiceRequest(resource_metrics=[{"scope_metrics": [{"metrics": [{"name": "tokens"}]}]}]),
    ],
)
def test_what_are_no_logs_is_refused_as_malformed(other: Message) -> None:
    """Spans and metrics that were sent as logs are counted as such a request, and not as log records."""
    with pytest.raises(MalformedRequest, match=r"^the request has no log records, but spans or metrics$"):
        decode_logs(other.SerializeToString(), NAMES)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_malformed(body: bytes) -> None:
    """Nothing else is raised."""
    for names in ((), NAMES, ("",)):
        try:
            decode_logs(body, names)
        except MalformedRequest:
            continue


def test_the_records_of_some_traces() -> None:
    """The others are left out of a request that is kept for these only."""
    other = bytes(15) + b"\x01"
    body = logs([record("codex.a"), record("codex.b", trace_id=other), record("codex.c", trace_id=b"")])
    written = body.SerializeToString()

    assert (TRACE_ID, other) == log_trace_ids(written)
    assert ["codex.b"] == [span.name for span in decode_logs(narrowed_logs(written, {other}), NAMES).spans]


def steps_of(body: bytes) -> int:
    """Return in how many steps a request is decoded."""
    return sum(1 for _ in decoding_logs(body, NAMES))


def test_a_large_record_is_searched_in_steps() -> None:
    """A name is found across their ends, and a text without one takes a step for each quarter of a mebibyte."""
    body = "x" * 2**20
    assert steps_of(logs([record("", body=body)]).SerializeToString()) >= 4

    for place in range(2**18 - 20, 2**18 + 20):
        read = record("", {"k": "x" * place, "event.name": "codex.tool_result"})
        assert ["codex.tool_result"] == [span.name for span in decoded(read).spans]


def test_many_small_records_are_counted_in_steps() -> None:
    """However small they are: the number of fields counts, not that of bytes."""
    empty = logs([from_logs.LogRecord()] * 50_000)
    assert steps_of(empty.SerializeToString()) >= 6
    assert 50_000 == decode_logs(empty.SerializeToString(), NAMES).unread


def test_a_record_of_many_attributes_is_looked_at_in_steps() -> None:
    """Its fields are counted in steps, and no more attributes than are kept are looked at for a name."""
    many = record("codex.a")
    many.MergeFromString(field(6, b"") * 600_000)
    late = record("", {str(number): number for number in range(1_024)} | {"event.name": "codex.b"})

    assert steps_of(logs([many]).SerializeToString()) >= 48
    assert [] == decoded(late).spans


def test_a_broken_part_costs_the_request_where_it_has_a_name() -> None:
    """Elsewhere the records up to there are counted, and those in other parts are read."""
    good = logs([record("codex.a")]).SerializeToString()

    def broken(record_: from_logs.LogRecord) -> bytes:
        inner = length_delimited(2, record_.SerializeToString()) + b"\0"
        return length_delimited(1, length_delimited(2, inner))

    found = decode_logs(broken(record("other")) + good, NAMES)
    assert (1, 1) == (len(found.spans), found.unread)
    with pytest.raises(MalformedRequest):
        decode_logs(broken(record("codex.b")) + good, NAMES)


@pytest.mark.full_size
@pytest.mark.parametrize("request_type", [ExportLogsServiceRequest, ExportMetricsServiceRequest])
def test_too_many_parts(request_type: type[Message]) -> None:
    """A request of more records or metrics than an honest one of 64 MiB has is refused before they are decoded."""
    body = length_delimited(1, length_delimited(2, length_delimited(2, b"") * 2_000_001))
    with pytest.raises(MalformedRequest, match="more than 2000000 parts"):
        at_once(checking(body, request_type))
