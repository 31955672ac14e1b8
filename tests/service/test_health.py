from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import pytest
from grpc_health.v1 import health_pb2

from otlp_capture import PROTOCOLS, Capture, capturing
from receivers.otlp_requests import request_of, simple_span
from serving import DEADLINE_S, ON_ANY_PORT, Reports, Running, eventually, loop_thread, serving
from spanscore.emitters.sending.client import Protocol
from spanscore.model import Report
from spanscore.receivers.sockets.listening import Address
from spanscore.service.pages import Pages

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
HEALTH = "/grpc.health.v1.Health/Check"


@contextmanager
def before(behind: Capture) -> Iterator[Running]:
    """Run a receiver that sends on."""
    configuration = f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: "127.0.0.1:0"}}}}}}}}
exporters:
  prometheus: {{endpoint: "127.0.0.1:0"}}
  otlp: {{endpoint: "{behind.endpoint}", signals: [traces]}}
traces: {{decision_delay: 0s}}
annotate: none
"""
    with serving(configuration) as running:
        yield running


@pytest.mark.full_size
@pytest.mark.parametrize("protocol", PROTOCOLS[:1])
def test_what_does_not_go_on_is_not_taken(protocol: Protocol) -> None:
    """While the next receiver takes nothing, requests are refused before any is lost, and readiness says why."""
    large = [simple_span(1, number, name="n" * 2**20) for number in range(1, 31)]
    body = request_of(*large).SerializeToString()
    with capturing(protocol) as behind:
        behind.hold()
        with before(behind) as running, grpc.insecure_channel(running.grpc) as channel:
            export = channel.unary_unary(EXPORT)
            check = channel.unary_unary(HEALTH, None, health_pb2.HealthCheckResponse.FromString)
            codes = []
            while not codes or codes[-1] is grpc.StatusCode.OK:
                codes.append(export.future(body, timeout=DEADLINE_S).code())
                assert len(codes) < 20
            assert grpc.StatusCode.UNAVAILABLE is codes[-1]
            eventually(lambda: check(b"", timeout=DEADLINE_S).status == health_pb2.HealthCheckResponse.NOT_SERVING)
            status, states = running.readiness()
            assert (503, "ok") == (status, states["otlp"])
            assert states["forward"].startswith("the queue to the next receiver is 70% full")

            behind.go_on()
            eventually(lambda: check(b"", timeout=DEADLINE_S).status == health_pb2.HealthCheckResponse.SERVING)
            assert 200 == running.readiness()[0]
            assert grpc.StatusCode.OK is export.future(body, timeout=DEADLINE_S).code()
        taken = codes.count(grpc.StatusCode.OK) + 1
        assert taken * len(large) == len(behind.spans())


def test_a_page_that_takes_long_holds_up_nothing() -> None:
    """While metrics are being put together the other pages are served; who asks meanwhile gets the same metrics."""
    may_go_on, asked = threading.Event(), []

    def slow(accept: str | None) -> tuple[str, bytes]:
        asked.append(accept)
        assert may_go_on.wait(DEADLINE_S)
        return "text/x", b"metrics"

    with loop_thread() as thread:
        pages = thread.call(lambda: Pages(slow, lambda: {"otlp": "ok"}))
        (address,) = thread.call(lambda: pages.listen([Address("127.0.0.1", 0)], "key"))
        thread.run(pages.start())
        scrapes = [http.client.HTTPConnection(*address, timeout=DEADLINE_S) for _ in range(3)]
        for scrape in scrapes:
            scrape.request("GET", "/metrics")
        eventually(lambda: bool(asked))
        for path in ("/livez", "/readyz") * 2:
            other = http.client.HTTPConnection(*address, timeout=DEADLINE_S)
            other.request("GET", path)
            assert 200 == other.getresponse().status
            other.close()
        may_go_on.set()
        assert [b"metrics"] * 3 == [scrape.getresponse().read() for scrape in scrapes]
        assert [None] == asked
        for scrape in scrapes:
            scrape.close()
        thread.run(pages.stop(1))


def test_while_open_traces_are_scored_at_the_end_everybody_is_answered() -> None:
    """A drain takes its time; meanwhile the pages are served, and those who are connected are told to come again."""
    began, may_go_on = threading.Event(), threading.Event()

    class Slow(Reports):
        def emit(self, report: Report) -> None:
            began.set()
            assert may_go_on.wait(DEADLINE_S)
            super().emit(report)

    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 1h}}", reports=Slow()) as running:
        connection = http.client.HTTPConnection(running.http.removeprefix("http://"), timeout=DEADLINE_S)
        statuses = []
        for stops in (False, True):
            if stops:
                stopping = running.thread.start(running.service.stop(DEADLINE_S, DEADLINE_S))
                assert began.wait(DEADLINE_S)
            headers = {"Content-Type": "application/x-protobuf"}
            connection.request("POST", "/v1/traces", request_of(simple_span(1)).SerializeToString(), headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        assert ([200, 503], 503) == (statuses, running.readiness()[0])
        connection.close()
        may_go_on.set()
        stopping.result(DEADLINE_S)
        assert 1 == len(running.reports.emitted)
