from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from emitters.raw_requests import REQUESTS, RawSpan, is_root, taken_apart
from emitters.reports import PASSED, ROOT_SPAN_ID, TRACE_ID, report, trajectory
from otlp_capture import DEADLINE_S, InMemory
from receivers.otlp_requests import field
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.otlp.forward_settings import ForwardCounts, ForwardSettings
from spanscore.emitters.sending.backlog import QueueLimits
from spanscore.otlp.wire import WireError

_TRACE_IDS = st.integers(1, 4).map(lambda number: number.to_bytes(16, "big"))
_SPAN_IDS = st.integers(1, 4).map(lambda number: number.to_bytes(8, "big"))

EACH_BY_ITSELF = QueueLimits(batch_bytes=0, linger_s=0)


def forwarded(
    requests: Sequence[bytes],
    roots: Literal["none", "parentless", "remote_parent"],
    scored: Sequence[tuple[bytes, bytes]] = (),
    queue: QueueLimits = EACH_BY_ITSELF,
) -> list[bytes]:
    """Return what comes out when requests go in, these spans are scored, and it is closed."""
    client = InMemory()
    forward = Forward(client, ForwardSettings(roots=roots, queue=queue))
    for request in requests:
        forward.take(request)
    for trace_id, span_id in scored:
        forward.emit(report(PASSED, about=trajectory(trace_id=trace_id, root_span_id=span_id)))
    assert forward.close(DEADLINE_S)
    return client.taken


@given(requests=st.lists(REQUESTS, max_size=3), roots=st.sampled_from(["none", "parentless", "remote_parent"]))
def test_every_span_comes_out_as_it_went_in(
    requests: list[bytes], roots: Literal["none", "parentless", "remote_parent"]
) -> None:
    """Each span is passed on once, byte for byte, with its resource, its scope, their schemas and unknown fields."""
    assert taken_apart(requests) == taken_apart(forwarded(requests, roots))


@given(requests=st.lists(REQUESTS, max_size=3), batch_bytes=st.integers(0, 2_000))
def test_requests_that_are_joined_lose_nothing(requests: list[bytes], batch_bytes: int) -> None:
    """However requests and single roots are joined, the same spans come out, each within what stood around it."""
    queue = QueueLimits(batch_bytes=batch_bytes, linger_s=60)
    sent = forwarded(requests, "parentless", queue=queue)

    assert spans_within(taken_apart(requests)) == spans_within(taken_apart(sent))


@given(
    requests=st.lists(REQUESTS, max_size=3),
    roots=st.sampled_from(["parentless", "remote_parent"]),
    scored=st.dictionaries(_TRACE_IDS, st.sets(_SPAN_IDS, max_size=3)),
)
def test_a_root_that_is_scored_comes_out_with_its_scores(
    requests: list[bytes], roots: Literal["parentless", "remote_parent"], scored: dict[bytes, set[bytes]]
) -> None:
    """The roots that are scored, and no other spans, get an event behind all that they are; nothing else changes."""
    pairs = [(trace_id, span_id) for trace_id, span_ids in scored.items() for span_id in span_ids]
    sent = [stripped(each) for each in taken_apart(forwarded(requests, roots, pairs)).elements()]

    expected = Counter(
        (each, is_root(each.span, remote=roots == "remote_parent") and ids_of(each) in pairs)
        for each in taken_apart(requests).elements()
    )
    assert expected == Counter(sent)


def stripped(sent: RawSpan) -> tuple[RawSpan, bool]:
    """Return a span without the score at its end, and whether it had one."""
    events = Span.FromString(sent.span).events
    if not events or events[-1].name != "gen_ai.evaluation.result":
        return sent, False
    event = events[-1].SerializeToString()
    assert sent.span.endswith(field(11, event))
    return sent._replace(span=sent.span.removesuffix(field(11, event))), True


def ids_of(raw: RawSpan) -> tuple[bytes, bytes]:
    """Return the trace id and the span id."""
    span = Span.FromString(raw.span)
    return span.trace_id, span.span_id


def spans_within(spans: Counter[RawSpan]) -> Counter[RawSpan]:
    """Return the spans without what stands in the request itself, which joined requests share."""
    return Counter(each._replace(request=b"") for each in spans.elements())


def test_spans_written_in_another_order_are_understood() -> None:
    """A root is known by what it says, not by how its fields are ordered, or how often they are written."""
    root = Span(trace_id=TRACE_ID, span_id=ROOT_SPAN_ID, end_time_unix_nano=1).SerializeToString()
    child = root + Span(parent_span_id=b"p" * 8).SerializeToString()
    orphaned = child + field(4, b"")
    requests = [field(1, field(2, field(2, each))) for each in (root, child, orphaned)]

    sent = Counter(each.span for each in taken_apart(forwarded(requests, "parentless", [(TRACE_ID, ROOT_SPAN_ID)])))

    assert 1 == sent[child]
    assert 0 == sent[root] + sent[orphaned]


def test_what_holds_no_span_is_not_forwarded() -> None:
    """Empty envelopes are dropped, and a request of nothing else is no request."""
    span = Span(trace_id=TRACE_ID, span_id=ROOT_SPAN_ID, parent_span_id=b"p" * 8).SerializeToString()
    resource = field(1, Resource().SerializeToString())
    with_span = field(1, resource + field(2, field(2, span)))
    empty = [field(1, resource), field(1, resource + field(2, field(3, b"https://schema.example")))]

    assert [] == forwarded([b"", *empty], "parentless")
    assert [with_span] == forwarded([empty[0] + with_span + empty[1]], "parentless")


def test_equal_envelopes_are_shared() -> None:
    """Roots that are passed on together repeat neither resource nor scope."""
    spans = [Span(trace_id=bytes([1 + n]) * 16, span_id=ROOT_SPAN_ID, end_time_unix_nano=1) for n in range(3)]
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
    scope_spans = [ScopeSpans(scope=InstrumentationScope(name="agent"), spans=[span]) for span in spans]
    requests = [
        ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[each])])
        for each in scope_spans
    ]

    (sent,) = forwarded([each.SerializeToString() for each in requests], "parentless", queue=QueueLimits())

    scope_spans = [ScopeSpans(scope=InstrumentationScope(name="agent"), spans=spans)]
    expected = ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=scope_spans)])
    assert expected == ExportTraceServiceRequest.FromString(sent)


@pytest.mark.parametrize("broken", [b"\x0a\x05", b"\x0a\x02\x12\x01", b"\x07", b"\x0a\x04\x12\x02\x12\x85"])
def test_what_is_no_request_is_not_taken(broken: bytes) -> None:
    """Bytes that are not in the wire format are an error, and nothing of them is counted."""
    forward = Forward(InMemory())

    with pytest.raises(WireError):
        forward.take(broken)

    assert ForwardCounts() == forward.counts()
    forward.close(DEADLINE_S)
