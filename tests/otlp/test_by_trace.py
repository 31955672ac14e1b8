"""Requests taken apart by trace."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given

from emitters.raw_requests import REQUESTS, taken_apart
from receivers.otlp_requests import request_of, simple_span, trace_id
from spanscore.otlp.by_trace import span_places, span_runs, trace_state
from spanscore.otlp.raw_requests import Envelope, joined


@given(request=REQUESTS)
def test_every_span_is_in_one_run(request: bytes) -> None:
    """Each with what stands around it, byte for byte."""
    spans: list[tuple[Envelope, bytes]] = []
    for run in span_runs(request):
        content = request[slice(*run.place)]
        places = list(span_places(content))
        assert run.spans == len(places)
        spans += [(run.envelope, content[slice(*place)]) for place in places]
    assert taken_apart([request]) == taken_apart([joined((), [each]) for each in spans])


def test_spans_of_one_trace_stay_together() -> None:
    """As long as no other one is between them."""
    request = request_of(*(simple_span(trace, span) for trace, span in ((1, 1), (1, 2), (2, 3), (1, 4))))
    assert [(trace_id(1), 2), (trace_id(2), 1), (trace_id(1), 1)] == [
        (run.trace_id, run.spans) for run in span_runs(request.SerializeToString())
    ]


def test_the_trace_state_is_the_last_one() -> None:
    """As protobuf reads a span that has several."""
    found: defaultdict[str, int] = defaultdict(int)
    for span in (simple_span(1), simple_span(1, 2, trace_state="a=b"), simple_span(1, 3, trace_state="ot=th:8")):
        content = span.SerializeToString() + (b"\x1a\x03x=y" if span.trace_state == "a=b" else b"")
        found[trace_state(content, 0, len(content))] += 1
    assert {"": 1, "x=y": 1, "ot=th:8": 1} == found
