"""Rules 43 to 60: OTLP over HTTP."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator

import pytest

from conformance.doors import HTTP, INVALID_ARGUMENT
from receivers.otlp_requests import decoded_span, request_of, simple_span, to_json
from receivers.raw_http import head
from receivers.receiving import JSON, PROTOBUF, Receiver, Reply, answered, violations

ONE = request_of(simple_span(1))
BODIES = {PROTOBUF: ONE.SerializeToString(), JSON: to_json(ONE)}
ENCODINGS = pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
RETRYABLE = {429, 502, 503, 504}


@pytest.fixture(scope="module")
def shared() -> Iterator[Receiver]:
    """Serve all tests that leave no trace."""
    with HTTP.run() as receiver:
        yield receiver


def told_status(reply: Reply) -> tuple[int, str | None, int]:
    """Return the status, the encoding of the Status in the body, and its code."""
    return reply.status, reply.content_type, reply.error[0]


def test_043_traces_have_their_path() -> None:
    """POST /v1/traces, or only the configured path."""
    for path, other in (("/v1/traces", "/otlp"), ("/otlp", "/v1/traces")):
        with HTTP.run(traces_url_path=path) as receiver:
            body = BODIES[PROTOBUF]
            assert [200, 404] == [receiver.post(body, path=where).status for where in (path, other)]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_044_other_methods_are_not_allowed(receiver: Receiver, method: str) -> None:
    """The response is 405, names POST, and has a Status."""
    reply = receiver.request(method, "/v1/traces")
    assert (405, "POST") == (reply.status, reply.headers["Allow"])
    if method != "HEAD":
        assert 12 == reply.error[0]


@ENCODINGS
def test_045_other_paths_are_not_found(receiver: Receiver, content_type: str) -> None:
    """The response is 404, with a Status."""
    for path in ("/", "/v1/trace", "/v1/traces/", "//v1/traces", "/v1development/profiles"):
        assert (404, content_type, 5) == told_status(receiver.post(b"", content_type, path))


@pytest.mark.parametrize("path", ["/v1/metrics", "/v1/logs"])
def test_046_metrics_and_logs_are_forwarded_if_possible(path: str) -> None:
    """Else metrics are 404, which is not retried, and logs are only read."""
    with HTTP.run() as alone:
        assert (404 if "metrics" in path else 200) == alone.post(b"", path=path).status
    with HTTP.run(others=True) as before_another:
        assert 200 == before_another.post(b"\x0a\x00", path=path).status
        assert [b"\x0a\x00"] == [body for _, body in before_another.core.others_sent_on]


def test_047_both_encodings_are_taken_on_one_port(receiver: Receiver) -> None:
    """The content type distinguishes protobuf and JSON."""
    assert [200, 200] == [receiver.post(body, content_type).status for content_type, body in BODIES.items()]
    assert [decoded_span(1)] * 2 == receiver.core.spans


@pytest.mark.parametrize(
    "content_type", ["Application/JSON; charset=utf-8", "APPLICATION/X-PROTOBUF", "application/x-protobuf;a=b"]
)
def test_048_the_content_type_is_a_media_type(receiver: Receiver, content_type: str) -> None:
    """Case and parameters make no difference."""
    body = BODIES[JSON if "json" in content_type.lower() else PROTOBUF]
    assert 200 == receiver.post(body, content_type).status
    assert [decoded_span(1)] == receiver.core.spans


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/grpc", "application/jsonl"])
def test_049_other_content_types_are_not_supported(receiver: Receiver, content_type: str | None) -> None:
    """The response is 415, with a Status in JSON."""
    reply = receiver.post(BODIES[PROTOBUF], content_type)
    assert (415, JSON, INVALID_ARGUMENT) == told_status(reply)
    assert "the Content-Type must be application/x-protobuf or application/json" == reply.error[1]


@ENCODINGS
def test_050_the_response_has_the_encoding_of_the_request(receiver: Receiver, content_type: str) -> None:
    """Successes and errors alike."""
    receiver_answers = [
        receiver.post(BODIES[content_type], content_type),
        receiver.post(b"\xff", content_type),
        receiver.post(b"", content_type, "/nowhere"),
        receiver.post(b"", content_type, Content_Encoding="br"),
        receiver.post(bytes(2**20 + 1), content_type),
    ]
    assert [200, 400, 404, 415, 413] == [reply.status for reply in receiver_answers]
    assert {content_type} == {reply.content_type for reply in receiver_answers}


@ENCODINGS
def test_051_success_is_200(receiver: Receiver, content_type: str) -> None:
    """No other status is a success."""
    some_bad = request_of(simple_span(1), simple_span(0))
    bodies = (b"", BODIES[content_type], to_json(some_bad) if content_type == JSON else some_bad.SerializeToString())
    assert [200, 200, 200] == [receiver.post(body, content_type).status for body in bodies]


@ENCODINGS
def test_052_a_body_that_cannot_be_decoded_is_a_bad_request(receiver: Receiver, content_type: str) -> None:
    """The response is 400; a BadRequest in its Status names the mistake."""
    reply = receiver.post(b"\xff\xff garbage", content_type)
    assert (400, content_type, INVALID_ARGUMENT) == told_status(reply)
    if content_type == PROTOBUF:
        assert [reply.error[1]] == violations(reply.body)
    else:
        (detail,) = json.loads(reply.body)["details"]
        assert "type.googleapis.com/google.rpc.BadRequest" == detail["@type"]
        assert [{"field": "body", "description": reply.error[1]}] == detail["fieldViolations"]


def test_053_a_body_that_is_too_large_is_refused_early(receiver: Receiver) -> None:
    """By its announced length, by the sum of its chunks, or when it inflates too far."""
    limit = 2**20
    for more in ((), ("Expect: 100-continue",)):
        with receiver.raw(head(limit + 1, PROTOBUF, *more)) as announced:
            reply = answered(announced)
            assert (413, f"the request is larger than {limit} bytes") == (reply.status, reply.error[1])
    largest = b"%x\r\n%s\r\n" % (limit, bytes(limit))
    for end, status in ((b"0\r\n\r\n", 400), (b"1\r\nx\r\n", 413)):  # the end of the second one does not come
        with receiver.raw(head(None, PROTOBUF, "Transfer-Encoding: chunked"), largest, end) as chunked:
            assert status == answered(chunked).status
    assert 413 == receiver.post(gzip.compress(bytes(limit + 1)), Content_Encoding="gzip").status


@ENCODINGS
def test_054_a_request_to_retry_has_a_retry_after(content_type: str) -> None:
    """Overload, internal errors and the end of the process are 503, with 1 to 30 whole seconds."""
    with HTTP.run(admission={"max_bytes": 1_000}) as receiver:
        replies = [receiver.post(bytes(1_001), content_type)]
        receiver.core.fault = OSError("no space left on device")
        replies.append(receiver.post(BODIES[content_type], content_type))
        receiver.thread.call(receiver.admission.close)
        replies.append(receiver.post(b"", content_type))
    assert [(503, content_type, 14)] * 3 == [told_status(reply) for reply in replies]
    assert "shutting down" == replies[-1].error[1]
    for reply in replies:
        assert re.fullmatch("[0-9]+", reply.headers["Retry-After"])
        assert 1 <= int(reply.headers["Retry-After"]) <= 30


def test_055_only_requests_that_may_be_retried_have_such_a_status(receiver: Receiver) -> None:
    """A wrong request has a status that clients do not retry, and never 500."""
    body = BODIES[PROTOBUF]
    refused = [
        receiver.post(b"\xff"),
        receiver.post(body, None),
        receiver.post(body, path="/"),
        receiver.request("GET", "/v1/traces"),
        receiver.post(bytes(2**20 + 1)),
        receiver.post(body, Content_Encoding="br"),
        receiver.post(body, Expect="a-miracle"),
        receiver.post(request_of(simple_span(0)).SerializeToString()),
    ]
    assert not RETRYABLE & {reply.status for reply in refused}
    assert {True} == {400 <= reply.status < 500 for reply in refused}


@pytest.mark.parametrize("damage", ["cut", "other", "checksum", "trailing", "nothing"])
def test_057_damaged_gzip_is_a_bad_request(receiver: Receiver, damage: str) -> None:
    """Nothing is taken of a body that is not exactly what its encoding defines."""
    whole = gzip.compress(BODIES[PROTOBUF])
    bodies = {
        "cut": whole[:-1],
        "other": b"not gzip",
        "checksum": whole[:-8] + bytes(4) + whole[-4:],
        "trailing": whole + b"x",
        "nothing": b"",
    }
    reply = receiver.post(bodies[damage], Content_Encoding="gzip")
    assert (400, []) == (reply.status, receiver.core.spans)


@pytest.mark.parametrize("content_encoding", ["zstd", "br", "deflate", "gzip, gzip", "gzip,identity"])
def test_058_other_encodings_are_not_supported(receiver: Receiver, content_encoding: str) -> None:
    """The response is 415 and names the supported ones: gzip, once, or none."""
    reply = receiver.post(BODIES[PROTOBUF], Content_Encoding=content_encoding)
    assert (415, PROTOBUF, INVALID_ARGUMENT) == told_status(reply)
    assert "gzip, identity" == reply.headers["Accept-Encoding"]


def test_058_several_headers_are_a_list_of_encodings(receiver: Receiver) -> None:
    """The second one is not passed over: a body that was compressed twice is not read as if once."""
    body = gzip.compress(gzip.compress(BODIES[PROTOBUF]))
    with receiver.raw(head(len(body), PROTOBUF, *["Content-Encoding: gzip"] * 2) + body) as connection:
        assert 415 == answered(connection).status


@pytest.mark.parametrize("content_encoding", ["gzip", "x-gzip", "X-GZip"])
def test_059_gzip_may_have_members(receiver: Receiver, content_encoding: str) -> None:
    """Together they are one body with one limit; `x-gzip` is another name of gzip."""
    body, nothing = BODIES[PROTOBUF], gzip.compress(b"")
    two = gzip.compress(body[:9]) + nothing * 10_000 + gzip.compress(body[9:])
    assert 200 == receiver.post(two, Content_Encoding=content_encoding).status
    assert 1 == len(receiver.core.spans)
    receiver.core.spans.clear()
    half = gzip.compress(bytes(2**19 + 1))
    assert 413 == receiver.post(half + half, Content_Encoding=content_encoding).status
    for damaged in (two + b"\0", two + two[:9]):
        assert 400 == receiver.post(damaged, Content_Encoding=content_encoding).status
    assert [] == receiver.core.spans


def test_060_responses_are_not_compressed(receiver: Receiver) -> None:
    """Whatever a client would accept."""
    reply = receiver.post(b"\xff", Accept_Encoding="gzip")
    assert (None, True) == (reply.headers.get("Content-Encoding"), bool(reply.error[1]))
