"""Requests taken apart by trace."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from emitters.raw_requests import REQUESTS, taken_apart
from receivers.otlp_requests import request_of, simple_span, trace_id
from spanscore.otlp.by_trace import by_trace, may_sample, span_prefix, trace_state, within
from spanscore.otlp.field_numbers import SPANS
from spanscore.otlp.raw_requests import joined
from spanscore.otlp.wire import length_prefix


@given(request=REQUESTS)
def test_every_span_is_in_its_trace(request: bytes) -> None:
    """Each with what stands around it, byte for byte."""
    spans = [(found.envelope, span) for found in by_trace(request) for span in found.spans]
    assert taken_apart([request]) == taken_apart([joined((), [each]) for each in spans])
    pieces = [
        b"".join(within(envelope, [span_prefix(len(span)), span], len(span_prefix(len(span)) + span)))
        for envelope, span in spans
    ]
    assert taken_apart([request]) == taken_apart(pieces)


def test_spans_of_one_trace_stay_together() -> None:
    """Also if others are between them."""
    request = request_of(*(simple_span(trace, span) for trace, span in ((1, 1), (1, 2), (2, 3), (1, 4))))
    assert [(trace_id(1), 3), (trace_id(2), 1)] == [
        (found.trace_id, len(found.spans)) for found in by_trace(request.SerializeToString())
    ]


@given(length=st.integers(0, 2**22))
def test_the_prefix_of_a_span(length: int) -> None:
    """As protobuf has it."""
    assert length_prefix(SPANS, length) == span_prefix(length)


def test_the_trace_state_is_the_last_one() -> None:
    """As protobuf reads a span that has several."""
    found: defaultdict[str, int] = defaultdict(int)
    for span in (simple_span(1), simple_span(1, 2, trace_state="a=b"), simple_span(1, 3, trace_state="ot=th:8")):
        content = span.SerializeToString() + (b"\x1a\x03x=y" if span.trace_state == "a=b" else b"")
        found[trace_state(content)] += 1
    assert {"": 1, "x=y": 1, "ot=th:8": 1} == found


@given(content=st.text("ot=x").map(str.encode))
def test_the_member_of_opentelemetry_is_found(content: bytes) -> None:
    """Wherever it is, however many there are of its last character."""
    assert (b"ot=" in content) == may_sample(content)
    assert may_sample(b"=" * 1_000 + b"ot=")
