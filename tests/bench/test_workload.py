from __future__ import annotations

from collections import Counter

from bench import recorded, workload
from spanscore.model import Span
from spanscore.otlp.from_protobuf import decode_protobuf

TRACES = 300


def decoded(bodies: list[bytes]) -> list[list[Span]]:
    """Return the spans of each request; none of them is refused."""
    requests = [decode_protobuf(body) for body in bodies]
    assert not any(request.refused or request.caveats for request in requests)
    return [request.spans for request in requests]


def by_trace(requests: list[list[Span]]) -> dict[bytes, list[Span]]:
    """Return the spans by trace, as they come."""
    found: dict[bytes, list[Span]] = {}
    for request in requests:
        for span in request:
            found.setdefault(span.trace_id, []).append(span)
    return found


def kinds(spans: list[Span]) -> Counter[str]:
    """Count the spans by the first word of their names."""
    return Counter(span.name.split()[0] for span in spans)


def test_requests_have_512_spans_of_12_attributes_and_2300_bytes() -> None:
    """Requests are full, spans have twelve attributes each and about 2.3 kB on the average."""
    bodies = workload.requests(TRACES)
    requests = decoded(bodies)
    spans = [span for request in requests for span in request]
    assert [512] * (len(bodies) - 1) == [len(request) for request in requests[:-1]]
    assert {12} == {len(span.attributes) for span in spans}
    assert 2_200 < sum(map(len, bodies)) / len(spans) < 2_400


def test_traces_have_twenty_spans_of_which_six_are_tool_calls() -> None:
    """Every trace has the same kinds of spans, whole, and its root comes last."""
    traces = by_trace(decoded(workload.requests(TRACES)))
    expected = Counter({"invoke_agent": 1, "chat": 6, "POST": 6, "execute_tool": 6, "SELECT": 1})
    assert workload.span_count(TRACES) == sum(map(len, traces.values()))
    assert [expected] * TRACES == [kinds(spans) for spans in traces.values()]
    assert [b""] * TRACES == [spans[-1].parent_span_id for spans in traces.values()]


def test_traces_run_side_by_side() -> None:
    """A full request holds spans of more than a hundred traces; no request holds many roots at once."""
    requests = decoded(workload.requests(TRACES))
    assert all(len({span.trace_id for span in request}) > 100 for request in requests[1:6])
    assert max(sum(not span.parent_span_id for span in request) for request in requests) < 80


def test_the_same_arguments_give_the_same_bytes() -> None:
    """The load is the same each time; another seed gives another one."""
    assert workload.requests(5, seed=1) == workload.requests(5, seed=1)
    assert workload.requests(5, seed=1) != workload.requests(5, seed=2)


def test_renewed_traces_differ_in_their_ids_only() -> None:
    """A renewed load has as many traces with other ids, and is otherwise the same."""
    bodies = workload.requests(20)
    before, after = by_trace(decoded(bodies)), by_trace(decoded(workload.renewed(bodies, 7)))
    assert not before.keys() & after.keys()
    anonymous = [
        [[span._replace(trace_id=b"") for span in spans] for spans in traces.values()] for traces in (before, after)
    ]
    assert anonymous[0] == anonymous[1]


def test_the_knobs_turn() -> None:
    """Traces may have other numbers of calls and no root, and requests other numbers of spans."""
    bodies = workload.requests(2, calls=100, roots=False, spans_per_request=50)
    traces = by_trace(decoded(bodies))
    assert [Counter({"chat": 6, "POST": 6, "execute_tool": 100, "SELECT": 1})] * 2 == [
        kinds(spans) for spans in traces.values()
    ]
    assert [50, 50, 50, 50, 26] == [len(request) for request in decoded(bodies)]


def test_recordings_can_be_joined_and_renewed() -> None:
    """Requests put together hold the same spans; renewed traces differ in their ids only, and are as many."""
    sent = recorded.requests(80)
    spans = [span for request in decoded(sent) for span in request]
    together = decoded(list(recorded.joined(sent, 512)))
    assert spans == [span for request in together for span in request]
    assert all(len(request) >= 512 for request in together[:-1])
    renewed = [span for request in decoded(recorded.renewed(sent, 7)) for span in request]
    assert not {span.trace_id for span in spans} & {span.trace_id for span in renewed}
    assert len(by_trace([spans])) == len(by_trace([renewed]))
    assert [len(span.attributes) for span in spans] == [len(span.attributes) for span in renewed]
