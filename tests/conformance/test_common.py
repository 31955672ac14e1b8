"""Rules 1 to 20: what holds for OTLP whichever way it comes in."""

from __future__ import annotations

import gzip
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from conformance.doors import (
    EXPORT,
    GRPC,
    HTTP,
    INVALID_ARGUMENT,
    OK,
    RESOURCE_EXHAUSTED,
    UNAVAILABLE,
    Chain,
    Door,
    Told,
    chain,
    numbers,
    over_grpc,
    over_http,
)
from receivers.otlp_requests import request_of, simple_span, span_id, trace_id
from serving import DEADLINE_S
from spanscore import config

UNKNOWN_FIELD = b"\xfa\x3e\x05later"  # field 1007, bytes


def test_001_traces_are_taken_over_grpc_and_http(door: Door) -> None:
    """By default on ports 4317 and 4318."""
    protocols = config.default().for_serve().receivers["otlp"].protocols
    assert ["localhost:4317", "localhost:4318"] == [
        f"{endpoint.host}:{endpoint.port}" for endpoint in (protocols.grpc.endpoint, protocols.http.endpoint)
    ]
    with chain() as running:
        assert Told(OK) == door.send(running.running, request_of(simple_span(1)))


def test_002_gzip_and_no_compression_are_understood(shared: Chain) -> None:
    """Both protocols take both."""
    for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
        number = next(numbers)
        body = request_of(simple_span(number)).SerializeToString()
        assert Told(OK) == over_grpc(shared.running, body, compression=compression)
        assert 1 == len(shared.sent_on(number))
    number = next(numbers)
    body = request_of(simple_span(number)).SerializeToString()
    assert Told(OK) == over_http(shared.running, gzip.compress(body), Content_Encoding="GZIP")
    for span, headers in ((2, {}), (3, {"Content_Encoding": "identity"})):
        assert Told(OK) == over_http(
            shared.running, request_of(simple_span(number, span)).SerializeToString(), **headers
        )
    assert 3 == len(shared.sent_on(number, 3))


def test_003_nothing_is_a_success(shared: Chain, door: Door) -> None:
    """Zero bytes, and a message without spans, are taken without a warning."""
    assert [Told(OK)] * 2 == [
        door.send_encoded(shared.running, b""),
        door.send(shared.running, ExportTraceServiceRequest()),
    ]


def test_004_empty_envelopes_are_a_success(door: Door) -> None:
    """A resource without scopes, and a scope without spans, are taken and not forwarded."""
    empty = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(), ResourceSpans(scope_spans=[ScopeSpans()], resource=Resource())]
    )
    with chain() as running:
        assert Told(OK) == door.send(running.running, empty)
        door.send(running.running, request_of(simple_span(1)))
        running.sent_on(1)
        assert [request_of(simple_span(1)).SerializeToString()] == running.behind.bodies()


def test_005_full_success_is_empty(shared: Chain, door: Door) -> None:
    """Without a partial success: no bytes in protobuf, `{}` in JSON."""
    assert Told(OK) == door.send(shared.running, request_of(simple_span(next(numbers))))


def test_006_rejected_spans_are_counted_exactly(shared: Chain, door: Door) -> None:
    """The response is a success with their number and the reason."""
    number = next(numbers)
    told = door.send(shared.running, request_of(simple_span(number), simple_span(0), simple_span(0, 2)))

    assert (OK, 2) == (told.code, told.rejected)
    assert told.message.startswith("2 of 3 spans refused: 2 for invalid_trace_id")
    assert [span_id(1)] == [span.span_id for span in shared.sent_on(number)]


def test_007_a_warning_rejects_nothing(shared: Chain, door: Door) -> None:
    """A warning is a partial success with a count of 0."""
    told = door.send(shared.running, request_of(simple_span(next(numbers), parent_span_id=bytes(8))))

    assert Told(OK, "all spans accepted, but not as they were sent: zero_parent_span_id (1)", 0) == told


def test_008_a_request_without_a_good_span_is_a_permanent_error(shared: Chain, door: Door) -> None:
    """If every span is refused, clients do not retry."""
    told = door.send(shared.running, request_of(simple_span(0), simple_span(0, 2)))

    assert (INVALID_ARGUMENT, None, None) == (told.code, told.rejected, told.retry_after_s)


def test_009_a_request_to_retry_is_never_a_partial_success(door: Door) -> None:
    """The whole request is refused, with an error that clients retry."""
    with door.run() as receiver:
        receiver.thread.call(receiver.admission.close)
        told = door.send(receiver, request_of(simple_span(1), simple_span(0)))

    assert (UNAVAILABLE, None, True) == (told.code, told.rejected, told.retry_after_s is not None)


def test_010_unknown_fields_are_forwarded_byte_for_byte(shared: Chain) -> None:
    """Fields of a later OTLP change nothing."""
    number = next(numbers)
    request = request_of(simple_span(number))
    for message in (request.resource_spans[0].scope_spans[0].spans[0], request.resource_spans[0]):
        message.MergeFromString(UNKNOWN_FIELD)
    body = request.SerializeToString()

    assert Told(OK) == over_grpc(shared.running, body)
    shared.sent_on(number)
    assert [True] == [UNKNOWN_FIELD in sent for sent in shared.behind.bodies() if trace_id(number) in sent]


def test_011_unknown_enum_numbers_are_forwarded(shared: Chain, door: Door) -> None:
    """A kind or a status code of a later OTLP is taken."""
    number = next(numbers)
    span = simple_span(number, kind=99, status=Status(code=7))  # type: ignore[arg-type]  # what a later OTLP knows

    assert Told(OK) == door.send(shared.running, request_of(span))
    assert [(99, 7)] == [(sent.kind, sent.status.code) for sent in shared.sent_on(number)]


def test_012_all_bits_of_flags_are_forwarded(shared: Chain, door: Door) -> None:
    """Bits without a meaning yet are kept."""
    number = next(numbers)
    assert Told(OK) == door.send(shared.running, request_of(simple_span(number, flags=0xFFFF_FCFF)))
    assert [0xFFFF_FCFF] == [sent.flags for sent in shared.sent_on(number)]


@pytest.mark.skipif(
    "string_value_strindex" not in AnyValue.DESCRIPTOR.fields_by_name, reason="needs a newer opentelemetry-proto"
)
def test_013_references_into_a_profile_are_no_error(shared: Chain, door: Door) -> None:
    """The key or text counts as absent, with a warning; the span is kept."""
    number = next(numbers)
    pairs = [KeyValue(key="k", value=AnyValue(string_value_strindex=1)), KeyValue(key_strindex=2)]
    told = door.send(shared.running, request_of(simple_span(number, attributes=pairs)))

    assert (OK, 0) == (told.code, told.rejected)
    assert "profiling_field" in told.message
    assert 1 == len(shared.sent_on(number))


def test_014_of_equal_keys_the_last_counts_and_all_are_forwarded(shared: Chain, door: Door) -> None:
    """Evaluators read the last value of a repeated attribute."""
    number = next(numbers)
    name = "gen_ai.tool.name"
    pairs = [
        KeyValue(key="gen_ai.operation.name", value=AnyValue(string_value="execute_tool")),
        *(KeyValue(key=name, value=AnyValue(string_value=value)) for value in ("first", "last")),
    ]
    assert Told(OK) == door.send(shared.running, request_of(simple_span(number, attributes=pairs)))

    (sent,) = shared.sent_on(number)
    assert ["first", "last"] == [pair.value.string_value for pair in sent.attributes if pair.key == name]
    shared.running.reports.wait_for(1)
    (report,) = [report for report in shared.running.reports.emitted if report.trajectory.trace_id == trace_id(number)]
    assert ["last"] == [call.name for call in report.trajectory.calls]


def test_015_forwarded_spans_equal_received_ones(shared: Chain, door: Door) -> None:
    """Every field of a span, its links, events, scope, resource and schemas."""
    number = next(numbers)
    pairs = [KeyValue(key="k", value=AnyValue(int_value=-(2**63))), KeyValue(key="b", value=AnyValue(bytes_value=b"x"))]
    event = Span.Event(time_unix_nano=3, name="e", attributes=pairs, dropped_attributes_count=4)
    # No number, for which the request that links there would be taken, depending on the order of the tests.
    link = Span.Link(trace_id=b"linked elsewhere", span_id=span_id(9), trace_state="a=b", attributes=pairs, flags=1)
    span = simple_span(
        number,
        parent_span_id=span_id(7),
        trace_state="vendor=1",
        flags=0x101,
        kind=3,
        attributes=pairs,
        dropped_attributes_count=1,
        events=[event],
        dropped_events_count=2,
        links=[link],
        dropped_links_count=3,
        status=Status(code=2, message="broken"),
    )
    request = request_of(span)
    around = request.resource_spans[0]
    around.resource.CopyFrom(Resource(attributes=pairs, dropped_attributes_count=5))
    around.schema_url = "https://example.com/resource"
    around.scope_spans[0].scope.CopyFrom(InstrumentationScope(name="s", version="1", attributes=pairs))
    around.scope_spans[0].schema_url = "https://example.com/scope"

    assert Told(OK) == door.send(shared.running, request)
    shared.sent_on(number)
    (body,) = [body for body in shared.behind.bodies() if trace_id(number) in body]
    sent = ExportTraceServiceRequest.FromString(body).resource_spans  # what came before may have gone with it
    assert [around] == [other for other in sent if other.scope_spans[0].spans[0].trace_id == trace_id(number)]


def test_016_the_size_is_limited_after_decompression() -> None:
    """64 MiB by default, and not a byte more, compressed or not."""
    protocols = config.default().for_serve().receivers["otlp"].protocols
    assert (64, 64 * 2**20) == (protocols.grpc.max_recv_msg_size_mib, protocols.http.max_request_body_size)

    empty = len(request_of(simple_span(1, name="n" * 2**19)).SerializeToString()) - 2**19
    largest = request_of(simple_span(1, name="n" * (2**20 - empty))).SerializeToString()
    assert 2**20 == len(largest)
    with GRPC.run() as over_h2:
        for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
            codes = [over_grpc(over_h2, body, compression=compression).code for body in (largest, largest + b"x")]
            assert [OK, RESOURCE_EXHAUSTED] == codes
    with HTTP.run() as over_h1:
        for squeeze, headers in ((bytes, {}), (gzip.compress, {"Content_Encoding": "gzip"})):
            codes = [over_http(over_h1, squeeze(body), **headers).code for body in (largest, largest + b"x")]
            assert [OK, RESOURCE_EXHAUSTED] == codes


def test_017_the_response_is_small(shared: Chain, door: Door) -> None:
    """Far below 4 MiB, however many errors a request has."""
    number = next(numbers)
    long_key = "k" * 500_000
    bad = simple_span(0, 1, name=long_key, attributes=[KeyValue(key=long_key, value=AnyValue(string_value="v"))])
    told = door.send(shared.running, request_of(simple_span(number), bad, simple_span(number, 0, name=long_key)))

    assert (OK, 2, True) == (told.code, told.rejected, len(told.message) < 3_000)


def test_018_a_response_means_that_the_request_is_on_disk(door: Door, tmp_path: Path) -> None:
    """If a request cannot be stored, the client is asked to retry."""

    def is_stored(number: int) -> bool:
        written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        return any(trace_id(number) in content or trace_id(number).hex().encode() in content for content in written)

    with chain(storage=f"{{directory: {tmp_path}, max_size: 64KiB}}", traces="{decision_delay: 1h}") as running:
        assert Told(OK) == door.send(running.running, request_of(simple_span(1, name="n" * 30_000)))
        assert is_stored(1)
        told = door.send(running.running, request_of(simple_span(2, name="n" * 40_000)))
        assert (UNAVAILABLE, True) == (told.code, told.retry_after_s is not None)
        assert [False, 1] == [is_stored(2), running.running.service.engine.counts().received]


def test_019_a_request_that_is_sent_again_changes_nothing(door: Door) -> None:
    """A repeated request makes no second trace, score or measurement."""
    with chain(exporters='{prometheus: {endpoint: "127.0.0.1:0"}}') as running:
        service = running.running
        request = request_of(simple_span(1))
        assert [Told(OK)] * 3 == [door.send(service, request) for _ in range(3)]
        door.send(service, request_of(simple_span(2)))
        service.stop()
        assert [trace_id(1), trace_id(2)] == [report.trajectory.trace_id for report in service.reports.emitted]
        counts = service.service.engine.counts()
        assert (4, 2) == (counts.received, counts.dropped["duplicate"])


def test_020_calls_are_served_side_by_side(shared: Chain) -> None:
    """Simultaneous calls on one connection are all taken, in any order."""
    number = next(numbers)
    bodies = [request_of(simple_span(number, span)).SerializeToString() for span in range(1, 65)]
    with grpc.insecure_channel(shared.running.grpc) as channel:
        calls = [channel.unary_unary(EXPORT).future(body, timeout=DEADLINE_S) for body in bodies]
        assert {b""} == {call.result() for call in calls}

    assert {span_id(span) for span in range(1, 65)} == {span.span_id for span in shared.sent_on(number, 64)}
