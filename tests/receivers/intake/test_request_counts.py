from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otlp.log_requests import logs, record
from receivers.http2 import Call, message
from receivers.otlp_requests import request_of, simple_span
from receivers.receiving import Receiver, over_grpc, over_http
from serving import DEADLINE_S, eventually
from spanscore.otlp.clean_requests import chosen
from spanscore.receivers.intake.requests import Busy, RefusalLog, RequestCounts, Sender, Wrong
from spanscore.receivers.otlp.over_grpc import GrpcLimits

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
ONE = request_of(simple_span(1)).SerializeToString()
NO_VALID_SPAN = request_of(simple_span(0)).SerializeToString()
SOME_VALID = request_of(simple_span(0), simple_span(1)).SerializeToString()


def post(receiver: Receiver, body: bytes) -> object:
    """Send over HTTP."""
    return receiver.post(body, User_Agent="exporter/1")


def call(receiver: Receiver, body: bytes) -> object:
    """Send over gRPC."""
    with grpc.insecure_channel(receiver.grpc) as channel:
        return channel.unary_unary(EXPORT).future(body, timeout=DEADLINE_S).code()


DOORS = pytest.mark.parametrize(("run", "send"), [(over_http, post), (over_grpc, call)], ids=["http", "grpc"])


@DOORS
def test_every_request_is_counted(run: Callable[..., object], send: Callable[[Receiver, bytes], object]) -> None:
    """As accepted or refused; of the accepted ones, the empty ones too, and which decoder has read them."""
    with run(spans_onward=True) as receiver:  # type: ignore[attr-defined]  # it is a context manager
        for body in (ONE, SOME_VALID, b"", b"\x0a\x00", b"\xff", NO_VALID_SPAN):
            send(receiver, body)
        receiver.core.is_full = True
        send(receiver, ONE)
        receiver.core.is_full, receiver.core.fault = False, OSError("a bug")
        send(receiver, ONE)
        receiver.thread.call(receiver.admission.close)
        send(receiver, ONE)

        refused = {
            "malformed": 1,
            "no_valid_span": 1,
            "downstream": 1,
            "internal_error": 1,
            "shutting_down": 1,
        }
        expected = RequestCounts(accepted=4, empty=2)
        expected.refused.update(refused)
        expected.decoded.update({"fast": 3, "python": 1} if chosen().startswith("fast") else {"python": 4})
        assert expected == receiver.admission.requests


@pytest.mark.parametrize(
    ("request_of_logs", "empty"),
    [
        (logs([record("http.request")]), 0),
        (logs([record("codex.tool_result", trace_id=b"", span_id=b"")]), 0),
        (logs([]), 1),
        (ExportLogsServiceRequest(), 1),
    ],
)
def test_requests_with_logs_are_empty_without_records(request_of_logs: ExportLogsServiceRequest, empty: int) -> None:
    """Whether anybody reads these or not."""
    with over_http() as receiver:
        receiver.post(request_of_logs.SerializeToString(), path="/v1/logs")
        assert RequestCounts(accepted=1, empty=empty) == receiver.admission.requests


def test_what_is_wrong_with_http_is_counted() -> None:
    """Each status by its own name."""
    with over_http() as receiver:
        receiver.post(ONE, None)
        receiver.post(ONE, Content_Encoding="br")
        receiver.post(ONE, path="/")
        receiver.request("GET", "/v1/traces")
        receiver.post(bytes(2**20 + 1))
        receiver.post(gzip.compress(ONE)[:-1], Content_Encoding="gzip")

        expected = {"unsupported": 2, "not_found": 1, "method_not_allowed": 1, "too_large": 1, "malformed": 1}
        assert expected == receiver.admission.requests.refused


def test_messages_that_do_not_come_are_counted() -> None:
    """A call that is cut off because its message takes too long."""
    with over_grpc(limits=GrpcLimits(body_s=0.05)) as receiver:
        slow = Call(receiver.port)
        slow.send(message(ONE)[:-1], last=False)
        slow.status()
        slow.close()
        eventually(lambda: receiver.admission.requests.refused == {"timed_out": 1})


def test_refusals_are_logged_every_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """For each door and reason, with the number since the line before and the latest sender; the rest at the end."""
    now = 5.0
    log = RefusalLog(lambda: now, lambda *_: None)
    for number in range(3):
        log.refused("HTTP", Wrong.UNAUTHENTICATED, Sender(f"10.0.0.{number}:80", f"exporter/{number}\x1b" + "!" * 999))
        log.refused("HTTP", Busy.STORAGE, Sender(f"10.0.0.{number}:80"))
        log.refused("HTTP", Busy.FAULT, Sender())
        now += 4.5
    log.refused("gRPC", Wrong.UNAUTHENTICATED, Sender())
    log.close()
    log.close()

    agents = [f"exporter/{number}\N{REPLACEMENT CHARACTER}{'!' * 48}…" for number in range(3)]
    assert [
        f"HTTP: requests refused (unauthenticated): 1, the latest from 10.0.0.0:80 ({agents[0]})",
        "HTTP: requests refused (storage): 1, the latest from 10.0.0.0:80",
        f"HTTP: requests refused (unauthenticated): 2, the latest from 10.0.0.2:80 ({agents[2]})",
        "HTTP: requests refused (storage): 2, the latest from 10.0.0.2:80",
        "gRPC: requests refused (unauthenticated): 1",
    ] == caplog.messages


def test_refusals_are_logged_though_no_further_one_comes(caplog: pytest.LogCaptureFixture) -> None:
    """A timer of the event loop has them logged."""
    timers: list[tuple[float, Callable[[], None]]] = []
    now = 5.0
    log = RefusalLog(lambda: now, lambda *each: timers.append(each))
    for _ in range(5_010):
        log.refused("HTTP", Wrong.MALFORMED, Sender("[::1]:1234"))
    ((delay_s, action),) = timers
    now += delay_s
    action()

    assert 10.0 == delay_s
    assert "HTTP: requests refused (malformed): 5009, the latest from [::1]:1234" == caplog.messages[-1]


@DOORS
def test_refusals_reach_the_log(
    run: Callable[..., Any], send: Callable[[Receiver, bytes], object], caplog: pytest.LogCaptureFixture
) -> None:
    """Refused requests, malformed or without room, are logged with their sender and without their content."""
    with run(spans_onward=True) as receiver:
        for _ in range(2):
            send(receiver, b"canary")
        receiver.core.is_full = True
        send(receiver, ONE)

    lines = [message for message in caplog.messages if "requests refused" in message]
    latest = r"the latest from 127\.0\.0\.1:\d+ \((exporter/1|grpc-python/.*)\)"
    for line, told in zip(lines, ["malformed): 1", "downstream): 1"], strict=True):
        assert re.search(f"{re.escape(told)}, {latest}$", line)
    assert "canary" not in caplog.text
