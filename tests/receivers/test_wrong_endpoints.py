"""A request at the endpoint of another signal: refused as a whole, with the right endpoint, and counted once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Final

import grpc
import pytest
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from otlp.log_requests import logs, record
from receivers.otlp_requests import field, request_of, simple_span
from receivers.receiving import JSON, PROTOBUF, Receiver, over_grpc, over_http
from serving import DEADLINE_S

_GAUGE: Final = {"name": "process.cpu.time", "unit": "s", "gauge": {"data_points": [{"as_int": 1}]}}
_SUM: Final = {"name": "calls", "sum": {"data_points": [{"as_int": 1}], "is_monotonic": True}}


def _metrics(*metrics: object) -> Message:
    return ExportMetricsServiceRequest(resource_metrics=[{"scope_metrics": [{"metrics": metrics}]}])


REQUESTS: Final = {
    "traces": [request_of(simple_span(1), simple_span(2))],
    "logs": [logs([record("codex.a")]), logs([record("codex.a", body={"a": 1}, trace_id=b"", span_id=b"")])],
    "metrics": [_metrics(_GAUGE), _metrics(_GAUGE, _SUM)],
}
SERVICES: Final = {
    "traces": "trace.v1.TraceService",
    "logs": "logs.v1.LogsService",
    "metrics": "metrics.v1.MetricsService",
}
CASES: Final = [
    pytest.param(request, sent, taken, id=f"{sent} {number} to {taken}")
    for sent, taken in permutations(REQUESTS, 2)
    for number, request in enumerate(REQUESTS[sent])
]


@pytest.fixture(scope="module")
def http() -> Iterator[Receiver]:
    """Serve the tests, which leave nothing behind."""
    with over_http(others=True, spans_onward=True) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def over() -> Iterator[Receiver]:
    """Serve the tests, which leave nothing behind."""
    with over_grpc(others=True, spans_onward=True) as receiver:
        yield receiver


@pytest.mark.parametrize(("request_", "sent", "taken"), CASES)
def test_over_http(http: Receiver, request_: Message, sent: str, taken: str) -> None:
    """In both encodings the sender is told what the request has, and where it belongs."""
    replies = [
        http.post(request_.SerializeToString(), PROTOBUF, f"/v1/{taken}"),
        http.post(MessageToJson(request_).encode(), JSON, f"/v1/{taken}"),
    ]

    for reply in replies:
        assert 400 == reply.status
        assert _where(sent) in reply.error[1]
    assert f"the request has no {taken}, but {sent}{_where(sent)}" == replies[0].error[1]
    _nothing_counted(http)


@pytest.mark.parametrize(("request_", "sent", "taken"), CASES)
def test_over_grpc(over: Receiver, request_: Message, sent: str, taken: str) -> None:
    """The message is that of HTTP."""
    with grpc.insecure_channel(over.grpc) as channel:
        export = channel.unary_unary(f"/opentelemetry.proto.collector.{SERVICES[taken]}/Export")
        with pytest.raises(grpc.RpcError) as failed:
            export(request_.SerializeToString(), timeout=DEADLINE_S)

    assert grpc.StatusCode.INVALID_ARGUMENT == failed.value.code()
    assert f"the request has no {taken}, but {sent}{_where(sent)}" == failed.value.details()
    _nothing_counted(over)


@pytest.mark.parametrize("signal", REQUESTS)
def test_each_signal_is_taken_at_its_own_endpoint(signal: str) -> None:
    """Gauges alone have the tags of spans."""
    with over_http(others=True) as receiver:
        assert [200] * len(REQUESTS[signal]) == [
            receiver.post(each.SerializeToString(), PROTOBUF, f"/v1/{signal}").status for each in REQUESTS[signal]
        ]


_BROKEN: Final = field(1, b"bad") + b"\x10\x01"
"""A metric whose description is a number, as only log records have."""
_OLD: Final = field(1, b"old") + field(4, b""), field(1, b"old") + field(6, b"")
"""Metrics of integers, as earlier versions of OTLP have them."""


@pytest.mark.parametrize("others", [[_GAUGE], [_SUM], [_GAUGE, _SUM]])
@pytest.mark.parametrize("odd", [_BROKEN, *_OLD, request_of(simple_span(1)).resource_spans[0].scope_spans[0].spans[0]])
def test_an_odd_metric_costs_no_other(odd: bytes | Message, others: list[object]) -> None:
    """Even if it alone looks like another signal, and stands before them."""
    content = odd if isinstance(odd, bytes) else odd.SerializeToString()
    metrics = [each.SerializeToString() for each in _metrics(*others).resource_metrics[0].scope_metrics[0].metrics]
    for written in (content, *metrics), (*metrics, content):
        body = field(1, field(2, b"".join(field(2, each) for each in written)))
        with over_http(others=True) as receiver:
            assert 200 == receiver.post(body, PROTOBUF, "/v1/metrics").status
            ((_, sent),) = receiver.core.others_sent_on

        assert all(each in sent for each in metrics)


def test_a_refused_span_beside_a_log_record_is_still_known() -> None:
    """The run of it does not pass: a request that has both is not one at the wrong endpoint."""
    broken = simple_span(1).SerializeToString() + field(5, b"\xff")
    log = logs([record("codex.a")]).resource_logs[0].scope_logs[0].log_records[0].SerializeToString()
    with over_http() as receiver:
        receiver.post(field(1, field(2, field(2, log) + field(2, broken))), PROTOBUF)

        assert 2 == sum(receiver.core.refused.values())


def test_a_span_that_has_hardly_anything_is_a_span() -> None:
    """Not even its id is one: its refusal is counted, as it may be of a run."""
    with over_http() as receiver:
        reply = receiver.post(field(1, field(2, field(2, field(1, b"too short") + field(5, b"wrong")))), PROTOBUF)

        assert (400, 1) == (reply.status, sum(receiver.core.refused.values()))


def _where(signal: str) -> str:
    _, service = SERVICES[signal].rsplit(".", 1)
    return f"; by default {signal} go to /v1/{signal} over HTTP, and to {service} over gRPC"


def _nothing_counted(receiver: Receiver) -> None:
    core = receiver.core
    assert ({}, {}, [], []) == (core.refused, core.refused_points, core.sent_on, core.others_sent_on)
