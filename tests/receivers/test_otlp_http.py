from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from receivers.otlp_requests import decoded_span, field, request_of, simple_span, to_json
from receivers.raw_http import head
from receivers.receiving import JSON, PROTOBUF, Receiver, answered, busy, is_closed, over_http
from serving import DEADLINE_S, eventually
from spanscore.contracts.settings import Endpoint
from spanscore.receivers.otlp import Cors
from spanscore.receivers.sockets.bearer import BearerTokens
from spanscore.receivers.sockets.http_limits import HttpLimits

ONE = request_of(simple_span(1))
BODIES = {PROTOBUF: ONE.SerializeToString(), JSON: to_json(ONE)}
ENCODINGS = pytest.mark.parametrize("content_type", [PROTOBUF, JSON])


@pytest.fixture(scope="module")
def shared() -> Any:
    """Serve all tests that leave no trace."""
    with over_http() as receiver:
        yield receiver


@pytest.fixture
def receiver(shared: Receiver) -> Receiver:
    """Serve a test that looks only at what it sends itself."""
    shared.core.spans.clear()
    shared.core.refused.clear()
    return shared


@ENCODINGS
def test_the_answer_is_the_same_to_who_ends_the_connection(receiver: Receiver, content_type: str) -> None:
    """A client that keeps its connection, and one that does not, get one answer but for the header that says so."""
    body = BODIES[content_type]
    with (
        receiver.raw(head(len(body), content_type) + body) as kept,
        receiver.raw(head(len(body), content_type, "Connection: close") + body) as closed,
    ):
        first, last = answered(kept), answered(closed)
        assert is_closed(closed)
    assert "close" == last.headers["Connection"]
    names = {"Content-Type", "Content-Length", "Server", "Date"}
    assert (names, names | {"Connection"}) == (set(first.headers), set(last.headers))
    same = names - {"Date"}
    assert [first.headers[name] for name in same] == [last.headers[name] for name in same]
    assert (first.status, first.body) == (last.status, last.body)


def test_metrics_need_an_exporter(receiver: Receiver) -> None:
    """Without it their sender is told so, and where the other signals go."""
    reply = receiver.post(b"", path="/v1/metrics")

    assert 404 == reply.status
    assert (
        "/v1/metrics takes metrics only with exporters.otlp; traces go to /v1/traces; logs go to /v1/logs"
        == reply.error[1]
    )


@ENCODINGS
def test_an_empty_body_is_an_empty_request(content_type: str) -> None:
    """Of each signal."""
    with over_http(others=True, spans_onward=True) as receiver:
        replies = [receiver.post(b"", content_type, f"/v1/{signal}") for signal in ("traces", "logs", "metrics")]

    assert [200, 200, 200] == [reply.status for reply in replies]


def test_a_body_that_is_cut_off_is_not_taken(receiver: Receiver) -> None:
    """When the client goes away in the middle of a body, nothing of it is taken."""
    receiver.raw(head(10 * len(BODIES[PROTOBUF])), BODIES[PROTOBUF]).close()

    assert 200 == receiver.post(b"").status
    assert [] == receiver.core.spans


def test_there_are_not_too_many_connections() -> None:
    """A client too many is told to come again while all others are at work; who asks for nothing makes room."""
    with over_http(limits=HttpLimits(connections=2, patience_s=60)) as receiver:
        idle, working = receiver.raw(head(0)), receiver.raw(head(1_000), b"part")
        assert 200 == answered(idle).status
        with receiver.raw(head(1_000), b"part") as newcomer:
            assert is_closed(idle)
            eventually(lambda: receiver.post(b"").status == 503)
            with receiver.raw() as another:
                reply = answered(another)
            assert (503, "5") == (reply.status, reply.headers["Retry-After"])
            newcomer.shutdown(socket.SHUT_RDWR)
            working.shutdown(socket.SHUT_RDWR)
            eventually(lambda: receiver.post(b"").status == 200)
        idle.close()
        working.close()


def test_requests_wait_and_are_sent_away_when_there_are_too_many() -> None:
    """A request that finds no room waits a short time, and then is told when to come again."""
    with over_http(admission={"max_requests": 1, "wait_s": 0.05}) as receiver:
        with busy(receiver):
            reply = receiver.post(BODIES[PROTOBUF])
            assert (503, 14) == (reply.status, reply.error[0])
            assert 1 <= int(reply.headers["Retry-After"]) <= 30
        assert 200 == receiver.post(BODIES[PROTOBUF]).status


def test_who_sends_slowly_takes_nobodys_turn() -> None:
    """A body of which the rest never comes leaves its turn to others."""
    with over_http(admission={"max_requests": 1}) as receiver:
        slow = receiver.raw(head(1_000, PROTOBUF, "Expect: 100-continue"))
        assert b"100" in slow.recv(65536)
        assert 200 == receiver.post(BODIES[PROTOBUF]).status
        slow.close()


def test_a_slow_client_gives_way_where_there_are_too_many() -> None:
    """Where all connections are taken, who has been sending for long goes; who waits for an answer does not."""
    with over_http(limits=HttpLimits(connections=2, patience_s=0), admission={"max_requests": 1}) as receiver:
        with busy(receiver):
            waiting, slow = receiver.raw(head(0)), receiver.raw(head(1_000, PROTOBUF, "Expect: 100-continue"))
            assert b"100" in slow.recv(65536)
            newcomer = receiver.raw(head(0))
            assert is_closed(slow)
        assert [200, 200] == [answered(connection).status for connection in (waiting, newcomer)]
        for connection in (waiting, slow, newcomer):
            connection.close()


def test_the_memory_of_requests_is_bounded() -> None:
    """A body for which there is no memory is to be sent again later."""
    with over_http(admission={"max_bytes": 2_000}) as receiver:
        assert 503 == receiver.post(bytes(2_100)).status
        assert 200 == receiver.post(BODIES[PROTOBUF]).status


def test_who_holds_most_of_the_memory_gives_way() -> None:
    """A body that never comes to its end is to be sent again later as soon as others need its memory."""
    with over_http(admission={"max_bytes": 200}) as receiver:
        slow = receiver.raw(head(1_000, PROTOBUF, "Expect: 100-continue"))
        assert b"100" in slow.recv(65536)
        slow.sendall(bytes(200))
        eventually(lambda: receiver.thread.call(lambda: receiver.admission.memory.free_bytes) == 0)
        assert 200 == receiver.post(BODIES[PROTOBUF]).status
        assert 503 == answered(slow).status
        slow.close()


def test_a_fault_of_ours_is_not_the_senders(caplog: pytest.LogCaptureFixture) -> None:
    """When taking spans fails for a reason of ours, the sender is asked to try again, and the log says why."""
    with over_http() as receiver:
        receiver.core.fault = RuntimeError("a bug")
        reply = receiver.post(BODIES[PROTOBUF])

        assert (503, (14, "internal error")) == (reply.status, reply.error)
        assert ["a request could not be taken"] == [record.message for record in caplog.records]


ORIGIN = "https://app.example.com"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("evil.example:4318", 421),
        ("localhost.evil.example", 421),
        ("192.0.2.1", 421),
        ("", 421),
        ("localhost:4318", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1", 200),
        ("[::1]:4318", 200),
        ("otel.example:4318", 200),
    ],
)
def test_a_web_page_that_leads_its_name_here_cannot_send(host: str, status: int) -> None:
    """Its browser takes us for its own server; other web pages, which are asked for first, and programs can."""
    with over_http(endpoint=Endpoint("otel.example", 4318)) as receiver:
        answer = receiver.post(BODIES[JSON], JSON, Origin="http://evil.example", Host=host)
        assert status == answer.status
        assert status == 200 or ("the Host must be localhost" in answer.error[1] and not receiver.core.spans)
        assert 200 == receiver.post(BODIES[JSON], JSON, Host=host).status
        assert {421: {"misdirected": 1}}.get(status, {}) == receiver.admission.requests.refused


def test_who_has_a_token_may_lead_any_name_here(tmp_path: Path) -> None:
    """A web page that was given a token, or whose origin is allowed, is no stranger."""
    foreign = {"Origin": ORIGIN, "Host": "otel.example"}
    with over_http(cors=Cors(allowed_origins=(ORIGIN,))) as receiver:
        assert 200 == receiver.post(BODIES[JSON], JSON, **foreign).status
    file = tmp_path / "tokens"
    file.write_text("a-token")
    with over_http(tokens=BearerTokens(file)) as receiver:
        assert 200 == receiver.post(BODIES[JSON], JSON, Authorization="Bearer a-token", **foreign).status


def test_requests_under_way_are_finished() -> None:
    """At the end connections are refused at once, but a request that has begun is read, taken and answered."""
    with over_http() as receiver:
        body = BODIES[PROTOBUF]
        connection = receiver.raw(head(len(body), PROTOBUF, "Expect: 100-continue"))
        assert b"100" in connection.recv(65536)
        receiver.thread.call(receiver.admission.close)
        stopping = receiver.thread.start(receiver.server.stop(DEADLINE_S))
        receiver.thread.run(asyncio.sleep(0))  # begun later, ended earlier: by then it is stopping
        with pytest.raises(ConnectionRefusedError):
            receiver.raw()
        connection.sendall(body)
        assert 200 == answered(connection).status
        assert is_closed(connection)
        connection.close()
        stopping.result(DEADLINE_S)
        assert [decoded_span(1)] == receiver.core.spans


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_a_bad_metric_costs_itself(content_type: str) -> None:
    """The others are sent on; the sender is told how many data points are not."""
    good, bad = field(2, field(1, b"good")), field(2, field(1, b"\xff") + field(5, field(1, b"") * 2))
    body = field(1, field(2, good + bad))
    if content_type == JSON:
        points = '{"name": 5, "gauge": {"dataPoints": [{}, {}]}}'
        body = b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "good"}, %s]}]}]}' % points.encode()
    with over_http(others=True) as receiver:
        reply = receiver.post(body, content_type, "/v1/metrics")

        assert (200, [("metrics", field(1, field(2, good)))]) == (reply.status, receiver.core.others_sent_on)
    response = ExportMetricsServiceResponse()
    if content_type == JSON:
        Parse(reply.body, response)
    else:
        response.ParseFromString(reply.body)
    assert 2 == response.partial_success.rejected_data_points
    assert "metrics[1]: " in response.partial_success.error_message
    assert 2 == receiver.core.refused_points.total()


def test_a_flaw_is_new_in_each_signal(caplog: pytest.LogCaptureFixture) -> None:
    """A warning about spans says nothing about metrics."""
    span = simple_span(1).SerializeToString() + b"\x0a\x05"
    metric = field(2, field(1, b"good")) + field(2, b"\x0a\x05")
    with over_http(others=True) as receiver:
        for _ in range(2):
            receiver.post(field(1, field(2, field(2, span))))
            receiver.post(field(1, field(2, metric)), path="/v1/metrics")

    assert ["1 of 1 spans refused", "1 data point refused"] == [
        message.split(":")[0] for message in caplog.messages if "malformed" in message
    ]


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_bad_metrics_alone_are_counted_and_named(content_type: str) -> None:
    """As bad spans and log records are."""
    body = field(1, field(2, field(2, field(1, b"\xff") + field(5, field(1, b"") * 2))))
    if content_type == JSON:
        metric = b'{"name": 5, "gauge": {"dataPoints": [{}, {}]}}'
        body = b'{"resourceMetrics": [{"scopeMetrics": [{"metrics": [%s]}]}]}' % metric
    with over_http(others=True) as receiver:
        reply = receiver.post(body, content_type, "/v1/metrics")

        assert (400, []) == (reply.status, receiver.core.others_sent_on)
    assert b"2 data points refused: 2 for " in reply.body
    assert b"metrics[0]: " in reply.body
    assert 2 == receiver.core.refused_points.total()
    assert {"no_valid_span": 1} == receiver.admission.requests.refused
