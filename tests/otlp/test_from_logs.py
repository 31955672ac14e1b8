"""Log records as spans: which are read, and what of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otlp.log_requests import SPAN_ID, TRACE_ID, logs, record
from spanscore.model import LOG_RECORD, NO_SPAN
from spanscore.otlp import from_logs
from spanscore.otlp.findings import Caveat, Decoded, MalformedRequest, Refusal
from spanscore.otlp.from_logs import decode_logs, log_trace_ids, narrowed_logs

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
    assert 16 == len(one)
    others = [run(session_id="s", prompt_id="q"), run(session_id="t", prompt_id="p"), run(conversation_id="s")]
    others.append(run("another", session_id="s", prompt_id="p"))
    assert len({one, *others}) == 5
    assert None is run(prompt_id="p")


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
