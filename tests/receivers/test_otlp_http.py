from __future__ import annotations

import asyncio
import gzip
import json
import re
import socket
import zlib
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from receivers.otlp_requests import decoded_span, request_of, simple_span, to_json
from receivers.receiving import JSON, PROTOBUF, Receiver, Reply, answered, busy, is_closed, over_http, violations
from serving import DEADLINE_S, eventually
from spanscore.contracts.settings import Endpoint
from spanscore.receivers.otlp import Cors
from spanscore.receivers.sockets.bearer import BearerTokens
from spanscore.receivers.sockets.http_connection import HttpLimits

ONE = request_of(simple_span(1))
BODIES = {PROTOBUF: ONE.SerializeToString(), JSON: to_json(ONE)}
ENCODINGS = pytest.mark.parametrize("content_type", [PROTOBUF, JSON])

NO_TRACE_ID = request_of(simple_span(0))
SOME_BAD = request_of(simple_span(1), simple_span(0), simple_span(0, 2))


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


def encoded(request: ExportTraceServiceRequest, content_type: str) -> bytes:
    """Write a request in an encoding."""
    return request.SerializeToString() if content_type == PROTOBUF else to_json(request)


def head(length: int | None, content_type: str = PROTOBUF, *more: str) -> bytes:
    """Return the head of a request with a body of that length."""
    lines = ["POST /v1/traces HTTP/1.1", "Host: x", f"Content-Type: {content_type}", *more]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


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


@ENCODINGS
def test_spans_are_taken(receiver: Receiver, content_type: str) -> None:
    """A request is answered with 200 in its own encoding, and without a partial success, once its spans are taken."""
    reply = receiver.post(BODIES[content_type], content_type)

    assert (200, content_type, b"" if content_type == PROTOBUF else b"{}") == (
        reply.status,
        reply.content_type,
        reply.body,
    )
    assert [decoded_span(1)] == receiver.core.spans


@pytest.mark.parametrize(
    "content_type", ["Application/X-Protobuf", "application/x-protobuf; charset=utf-8", "application/x-protobuf;a=b"]
)
def test_the_content_type_is_read_as_a_media_type(receiver: Receiver, content_type: str) -> None:
    """Case and parameters of the content type make no difference."""
    assert 200 == receiver.post(BODIES[PROTOBUF], content_type).status
    assert [decoded_span(1)] == receiver.core.spans


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (PROTOBUF, b""),
        (PROTOBUF, b"\x0a\x00"),
        (PROTOBUF, b"\x0a\x02\x12\x00"),
        (JSON, b""),
        (JSON, b"{}"),
        (JSON, b'{"resourceSpans":null}'),
        (JSON, b'{"resourceSpans":[{"scopeSpans":[{}]}]}'),
    ],
)
def test_an_empty_request_is_fine(receiver: Receiver, content_type: str, body: bytes) -> None:
    """Nothing, and envelopes with nothing in them, are a success."""
    assert 200 == receiver.post(body, content_type).status


@ENCODINGS
def test_gzip_is_taken(receiver: Receiver, content_type: str) -> None:
    """Bodies may be compressed with gzip."""
    assert 200 == receiver.post(gzip.compress(BODIES[content_type]), content_type, Content_Encoding="GZIP").status
    assert [decoded_span(1)] == receiver.core.spans


def test_identity_is_taken(receiver: Receiver) -> None:
    """A body may say that it is not compressed."""
    assert 200 == receiver.post(BODIES[PROTOBUF], Content_Encoding="identity").status


@ENCODINGS
def test_refused_spans_are_counted_in_the_partial_success(receiver: Receiver, content_type: str) -> None:
    """Bad spans cost themselves only: the answer says how many and why, the others are taken."""
    reply = receiver.post(encoded(SOME_BAD, content_type), content_type)

    partial = partial_success(reply)
    assert (200, 2) == (reply.status, partial.rejected_spans)
    assert partial.error_message.startswith("2 of 3 spans refused: 2 for invalid_trace_id (resource")
    assert [decoded_span(1)] == receiver.core.spans
    assert {"invalid_trace_id": 2} == receiver.core.refused


def partial_success(reply: Reply) -> ExportTracePartialSuccess:
    """Read the partial success of an answer in either encoding."""
    if reply.content_type == PROTOBUF:
        return ExportTraceServiceResponse.FromString(reply.body).partial_success
    told = json.loads(reply.body)["partialSuccess"]
    rejected = told.get("rejectedSpans", "0")
    assert isinstance(rejected, str)
    return ExportTracePartialSuccess(rejected_spans=int(rejected), error_message=told["errorMessage"])


@ENCODINGS
def test_a_warning_rejects_nothing(receiver: Receiver, content_type: str) -> None:
    """What was taken but not as it was sent is told with no rejected spans."""
    reply = receiver.post(encoded(request_of(simple_span(1, parent_span_id=bytes(8))), content_type), content_type)

    partial = partial_success(reply)
    assert (200, 0) == (reply.status, partial.rejected_spans)
    assert partial.error_message == "all spans accepted, but not as they were sent: zero_parent_span_id (1)"


@ENCODINGS
def test_a_request_without_a_good_span_is_an_error(receiver: Receiver, content_type: str) -> None:
    """Where every span is refused, the request is refused for good, not partly taken."""
    reply = receiver.post(encoded(NO_TRACE_ID, content_type), content_type)

    assert (400, content_type, 3) == (reply.status, reply.content_type, reply.error[0])
    assert reply.error[1].startswith("1 of 1 spans refused: 1 for invalid_trace_id")
    assert {"invalid_trace_id": 1} == receiver.core.refused


def test_the_answer_stays_small(receiver: Receiver) -> None:
    """However long the keys of bad attributes are, the message about them is short."""
    bad = [simple_span(1, 1), simple_span(1, 2, attributes=[KeyValue(key="k" * 500_000, value=AnyValue())])]
    body = to_json(request_of(*bad)).replace(b'"value": {}', b'"value": {"intValue": "x"}')

    assert len(receiver.post(body, JSON).body) < 3_000


@ENCODINGS
@pytest.mark.parametrize("body", [b"\xff\xff garbage", b'{"resourceSpans":[', b"null"])
def test_what_cannot_be_decoded_is_refused_for_good(receiver: Receiver, content_type: str, body: bytes) -> None:
    """A damaged body is answered with 400 and a Status in the encoding of the request, and the server goes on."""
    reply = receiver.post(body, content_type)

    assert (400, content_type, 3) == (reply.status, reply.content_type, reply.error[0])
    if content_type == PROTOBUF:
        assert [reply.error[1]] == violations(reply.body)
    else:
        fault = {"field": "body", "description": reply.error[1]}
        assert [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [fault]}] == json.loads(
            reply.body
        )["details"]
    assert 200 == receiver.post(BODIES[content_type], content_type).status


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/grpc", ""])
def test_other_content_types_are_refused(receiver: Receiver, content_type: str | None) -> None:
    """Without a content type that is known the answer is 415, with a Status in JSON."""
    reply = receiver.post(BODIES[PROTOBUF], content_type)

    message = "the Content-Type must be application/x-protobuf or application/json"
    assert (415, JSON, (3, message)) == (reply.status, reply.content_type, reply.error)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(receiver: Receiver, method: str) -> None:
    """Only POST is allowed, and the answer says so."""
    reply = receiver.request(method, "/v1/traces")

    assert (405, "POST", 12) == (reply.status, reply.headers["Allow"], reply.error[0])


@pytest.mark.parametrize("path", ["/", "/v1/trace", "/v1/traces/", "/v1/metrics", "/v1development/profiles"])
@ENCODINGS
def test_other_paths_are_not_found(receiver: Receiver, path: str, content_type: str) -> None:
    """Metrics are not taken where they are not sent on, like every other path."""
    reply = receiver.post(b"", content_type, path)

    assert (404, content_type, 5) == (reply.status, reply.content_type, reply.error[0])


def test_metrics_need_an_exporter(receiver: Receiver) -> None:
    """Without it their sender is told so, and where the other signals go."""
    reply = receiver.post(b"", path="/v1/metrics")

    assert 404 == reply.status
    assert (
        "/v1/metrics takes metrics only with exporters.otlp; traces go to /v1/traces; logs go to /v1/logs"
        == reply.error[1]
    )


def test_the_path_can_be_another_one() -> None:
    """Traces go where the settings say, and nowhere else."""
    with over_http(traces_url_path="/otlp") as receiver:
        assert [200, 404] == [receiver.post(BODIES[PROTOBUF], path=path).status for path in ("/otlp", "/v1/traces")]


def test_a_body_may_have_the_largest_size_and_no_more() -> None:
    """The limit holds for the body as it is sent, and says so before the body is sent."""
    body = request_of(simple_span(1, name="n" * 1000)).SerializeToString()
    with over_http(max_request_body_size=len(body)) as receiver:
        assert 200 == receiver.post(body).status
        with receiver.raw(head(len(body) + 1)) as connection:
            reply = answered(connection)
        assert (413, (8, f"the request is larger than {len(body)} bytes")) == (reply.status, reply.error)


def test_a_chunked_body_may_have_the_largest_size_and_no_more() -> None:
    """The limit holds for bodies that do not say how long they are; the rest of them is not waited for."""
    body = request_of(simple_span(1, name="n" * 1000)).SerializeToString()
    with over_http(max_request_body_size=len(body)) as receiver:
        chunk = b"%x\r\n%s\r\n" % (len(body), body)
        start = head(None, PROTOBUF, "Transfer-Encoding: chunked")
        with receiver.raw(start, chunk, b"0\r\n\r\n") as connection:
            assert 200 == answered(connection).status
        with receiver.raw(start, chunk, b"1\r\nx\r\n") as connection:
            assert 413 == answered(connection).status
        assert [decoded_span(1)._replace(name="n" * 1000)] == receiver.core.spans


def test_a_body_may_have_the_largest_size_after_decompression_and_no_more() -> None:
    """The limit holds for what gzip inflates to."""
    body = request_of(simple_span(1, name="n" * 1000)).SerializeToString()
    with over_http(max_request_body_size=len(body)) as receiver:
        assert 200 == receiver.post(gzip.compress(body), Content_Encoding="gzip").status
        assert 413 == receiver.post(gzip.compress(body + b"x"), Content_Encoding="gzip").status


def test_a_bomb_is_not_inflated(receiver: Receiver) -> None:
    """A small body that would inflate to a gigabyte is refused at the limit."""
    inflated = zlib.compressobj(wbits=31)
    first, other = (inflated.compress(bytes(2**20)) + inflated.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    bomb = first + other * 1023  # each is read without looking at those before

    assert 413 == receiver.post(bomb, Content_Encoding="gzip").status


GZIPPED = gzip.compress(BODIES[PROTOBUF])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not gzip",
        GZIPPED[:-1],
        GZIPPED[:-9],
        GZIPPED[:5],
        GZIPPED[:-8] + b"\0\0\0\0" + GZIPPED[-4:],
        GZIPPED + b"x",
        GZIPPED + bytes(512),
        GZIPPED + GZIPPED[:-1],
        zlib.compress(BODIES[PROTOBUF]),
    ],
    ids=[
        "empty",
        "other",
        "cut",
        "no trailer",
        "only header",
        "crc",
        "trailing",
        "padded",
        "second cut",
        "zlib",
    ],
)
def test_damaged_gzip_is_refused_for_good(receiver: Receiver, body: bytes) -> None:
    """A body must be whole members of gzip; nothing of any other is taken."""
    reply = receiver.post(body, Content_Encoding="gzip")

    assert (400, []) == (reply.status, receiver.core.spans)


@pytest.mark.parametrize("content_encoding", ["zstd", "br", "deflate", "gzip, gzip", "snappy"])
def test_other_content_encodings_are_refused(receiver: Receiver, content_encoding: str) -> None:
    """Only gzip is inflated, once."""
    reply = receiver.post(BODIES[PROTOBUF], Content_Encoding=content_encoding)

    assert (415, "gzip, identity", 3) == (reply.status, reply.headers["Accept-Encoding"], reply.error[0])


def test_pipelined_requests_are_answered_in_order(receiver: Receiver) -> None:
    """Requests may be sent before the answers to the earlier ones are read."""
    good, bad = BODIES[PROTOBUF], b"\xff\xff"
    requests = [head(len(body)) + body for body in (good, bad, good)]
    told = b""
    with receiver.raw(b"".join(requests)) as connection:
        while told.count(b"HTTP/1.1") < len(requests):
            told += connection.recv(65536)
    assert [b"200", b"400", b"200"] == re.findall(rb"HTTP/1.1 (\d+)", told)


def test_a_client_may_ask_before_it_sends_the_body(receiver: Receiver) -> None:
    """`Expect: 100-continue` is answered before the body; other expectations are not met."""
    body = BODIES[PROTOBUF]
    with receiver.raw(head(len(body), PROTOBUF, "Expect: 100-continue")) as connection:
        assert b"HTTP/1.1 100 Continue\r\n\r\n" == connection.recv(65536)
        connection.sendall(body)
        assert 200 == answered(connection).status

    assert 417 == receiver.post(body, Expect="a-miracle").status


def test_a_client_that_asks_is_told_of_an_error_at_once(receiver: Receiver) -> None:
    """A body that would be refused is not asked for."""
    with receiver.raw(head(2**30, PROTOBUF, "Expect: 100-continue")) as connection:
        assert 413 == answered(connection).status


@pytest.mark.parametrize(
    "request_head",
    [
        head(5, PROTOBUF, "Transfer-Encoding: chunked"),
        head(5, PROTOBUF, "Content-Length: 6"),
        head(5, PROTOBUF, "Content-Length: 5"),
        head(5, PROTOBUF, "Content-Length: +5"),
        head(5).replace(b"\r\n", b"\n"),
        head(5, PROTOBUF, "X-Folded: a\r\n b"),
        head(5, PROTOBUF, "X Space: a"),
        head(5, PROTOBUF, "X-Nul: \0"),
        head(None, PROTOBUF, "Transfer-Encoding: chunked, identity"),
        head(None, PROTOBUF, "Transfer-Encoding: gzip"),
        head(5).replace(b"HTTP/1.1", b"HTTP/1.1 x"),
        head(5).replace(b"Host: x\r\n", b""),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(receiver: Receiver, request_head: bytes) -> None:
    """Headers that another server could understand otherwise end the connection."""
    with receiver.raw(request_head, b"5\r\nhello\r\n0\r\n\r\n") as connection:
        assert 400 == answered(connection).status
        assert is_closed(connection)


@pytest.mark.parametrize(
    "more",
    [
        [f"X-{index}: {'v' * 1000}" for index in range(70)],
        ["X-Large: " + "v" * 70_000],
        ["X-Large: " + "v" * 10_000],
        [f"X-{index}: v" for index in range(101)],
    ],
    ids=["all too large", "one far too large", "one too large", "too many"],
)
def test_headers_are_bounded(receiver: Receiver, more: list[str]) -> None:
    """More than 64 KiB of headers, more than 8 KiB of one, or more than 100 are refused."""
    with receiver.raw(head(5, PROTOBUF, *more)) as connection:
        assert 431 == answered(connection).status
        assert is_closed(connection)


def test_slow_clients_are_cut_off() -> None:
    """Who sends headers or a body too slowly, or nothing at all, is cut off; others are served meanwhile."""
    limits = HttpLimits(head_s=1, body_s=1, answer_s=1, idle_s=1)
    with over_http(limits=limits) as receiver:
        silent = receiver.raw()
        in_headers = receiver.raw(b"POST /v1/traces HTTP/1.1\r\nHost: ")
        in_body = receiver.raw(head(1_000), request_of(simple_span(2)).SerializeToString())
        idle = receiver.raw(head(0))
        assert 200 == answered(idle).status
        eventually(lambda: receiver.serves(BODIES[PROTOBUF]))
        for connection in (silent, in_headers, in_body, idle):
            assert is_closed(connection)
            connection.close()
        assert [decoded_span(1)] * max(1, len(receiver.core.spans)) == receiver.core.spans


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


@ENCODINGS
def test_at_the_end_requests_are_sent_away(content_type: str) -> None:
    """Once admission is closed the answer is 503 with a delay, in the encoding of the request; nothing is taken."""
    with over_http() as receiver:
        receiver.thread.call(receiver.admission.close)
        reply = receiver.post(BODIES[content_type], content_type)

        assert (503, content_type, (14, "shutting down")) == (reply.status, reply.content_type, reply.error)
        assert 1 <= int(reply.headers["Retry-After"]) <= 30
        assert [] == receiver.core.spans


def test_a_fault_of_ours_is_not_the_senders(caplog: pytest.LogCaptureFixture) -> None:
    """When taking spans fails for a reason of ours, the sender is asked to try again, and the log says why."""
    with over_http() as receiver:
        receiver.core.fault = RuntimeError("a bug")
        reply = receiver.post(BODIES[PROTOBUF])

        assert (503, (14, "internal error")) == (reply.status, reply.error)
        assert ["a request could not be taken"] == [record.message for record in caplog.records]


ORIGIN = "https://app.example.com"


def test_web_pages_cannot_send_by_default(receiver: Receiver) -> None:
    """A browser that asks whether a page may send is told nothing that lets it."""
    preflight = receiver.request(
        "OPTIONS", "/v1/traces", headers={"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    )
    sent = receiver.post(BODIES[JSON], JSON, Origin=ORIGIN)

    assert [] == [name for reply in (preflight, sent) for name in reply.headers if name.startswith("Access-Control")]


def test_named_web_pages_can_send() -> None:
    """Pages of allowed origins can send, other pages cannot; there is no wildcard and no credentials."""
    with over_http(cors=Cors(allowed_origins=(ORIGIN,))) as receiver:
        preflight = receiver.request("OPTIONS", "/v1/traces", headers={"Origin": ORIGIN})
        assert (204, ORIGIN, "POST") == (
            preflight.status,
            preflight.headers["Access-Control-Allow-Origin"],
            preflight.headers["Access-Control-Allow-Methods"],
        )
        sent = receiver.post(BODIES[JSON], JSON, Origin=ORIGIN)
        assert (ORIGIN, "Origin") == (sent.headers["Access-Control-Allow-Origin"], sent.headers["Vary"])
        other = receiver.request("OPTIONS", "/v1/traces", headers={"Origin": "https://evil.example"})
        assert (405, None) == (other.status, other.headers.get("Access-Control-Allow-Origin"))


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
