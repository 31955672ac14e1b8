"""What comes again is one object: a resource of all requests, a long text of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from receivers.otlp_requests import request_of, simple_span, texts, to_json
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.model import SharedAttributes
from spanscore.otlp.findings import Caveat, Decoded, Findings
from spanscore.otlp.from_json import decode_json
from spanscore.otlp.from_protobuf import decode_protobuf, decoding_any
from spanscore.otlp.protobuf_values import read_resource
from spanscore.otlp.resources import shared
from spanscore.otlp.slices import at_once

DECODERS: dict[str, Callable[[ExportTraceServiceRequest], Decoded]] = {
    "protobuf": lambda request: decode_protobuf(request.SerializeToString()),
    "protobuf, any": lambda request: at_once(decoding_any(request.SerializeToString())),
    "json": lambda request: decode_json(to_json(request)),
}


def sent(span: int, *attributes: KeyValue) -> ExportTraceServiceRequest:
    """Return a request with a span of the one trace, and its resource."""
    request = request_of(simple_span(1, span))
    request.resource_spans[0].resource.attributes.extend(attributes)
    return request


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
def test_a_trace_is_charged_once_for_what_comes_with_each_request(
    decode: Callable[[ExportTraceServiceRequest], Decoded],
) -> None:
    """Else the spans of a trace that come one by one would seem to take many times what they do."""
    service = texts({"service.name": "shop", "k8s.pod.name": "shop-1", "note": "x" * 1_000})
    requests = [decode(sent(number, *service)) for number in range(1, 21)]
    table = TraceTable(TraceSettings(), lambda _: False)
    for request in requests:
        table.add(request.spans, 0.0, request.sizes)
    resource = requests[0].spans[0].resource
    assert isinstance(resource, SharedAttributes)
    assert all(request.spans[0].resource is resource for request in requests)
    assert table.counts().held_bytes == resource.size + sum(sum(request.sizes) for request in requests)


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
def test_what_is_written_otherwise_stays_so(decode: Callable[[ExportTraceServiceRequest], Decoded]) -> None:
    """Values that are equal but of other types are not taken for each other."""
    values = [AnyValue(int_value=1), AnyValue(double_value=1.0), AnyValue(bool_value=True), AnyValue(string_value="1")]
    read = [decode(sent(1, KeyValue(key="a", value=value))).spans[0].resource["a"] for value in values]
    assert [(type(each), each) for each in read] == [(int, 1), (float, 1.0), (bool, True), (str, "1")]


def test_a_resource_that_comes_again_is_judged_again() -> None:
    """Odd attributes in it are counted for each request."""
    request = sent(1)
    request.resource_spans[0].resource.attributes.add(key="k").value.MergeFromString(
        b"\x40\x03"
    )  # string_value_strindex
    is_known = "string_value_strindex" in AnyValue.DESCRIPTOR.fields_by_name  # else it is an unknown field
    decoded = [DECODERS["protobuf, any"](request) for _ in range(3)]
    assert [each.caveats for each in decoded] == [{Caveat.PROFILING_FIELD: 1} if is_known else {}] * 3


def test_values_of_a_resource_that_comes_again_count_again() -> None:
    """A request has so many values, wherever they are."""
    body = sent(1, *texts({"service.name": "shop", "k8s.pod.name": "shop-1"})).SerializeToString()
    found = Findings()
    for count in (1, 2):
        (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
        read_resource(resource.resource, found)
        assert found.values == count * len(resource.resource.attributes)


def test_large_ones_are_not_kept() -> None:
    """Nor more than a few hundred of the others, whatever is sent."""
    large = {"note": "x" * 100_000}
    assert shared(large, 100_000) is not shared(large, 100_000)
    first = shared({"a": 0}, 200)
    assert shared({"a": 0}, 200) is first
    for number in range(1_000):
        shared({"a": number}, 200)
    assert shared({"a": 0}, 200) is not first


def test_none_is_empty() -> None:
    """As before."""
    assert shared({}, 0) == {}


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
def test_a_long_text_that_comes_again_is_one_object(decode: Callable[[ExportTraceServiceRequest], Decoded]) -> None:
    """What a span says, its parent often says again. Each is charged for it: the other may be gone before."""
    said = ["x" * 1_000, "x" * 999 + "y", "x" * 1_000 + "y", "\u00e9" * 1_002]
    spans = [simple_span(1, number, attributes=texts({"said": text})) for number, text in enumerate(said * 2, start=1)]

    decoded = decode(request_of(*spans))

    read = [span.attributes["said"] for span in decoded.spans]
    assert said * 2 == read
    # Of two that take turns and are equally long, one object is known at a time.
    assert [read[place] is read[place + 4] for place in (2, 3)] == [True, True]
    assert decoded.sizes[:4] == decoded.sizes[4:]
    assert min(decoded.sizes) > 1_000
