"""OTLP/JSON written as protobuf in steps: each is short, and together they write what one step would.

Of metrics, that is what protobuf's own reading of JSON finds.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict, ParseError
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from examples import at_most
from otlp.json_spans import SPAN, request
from otlp.log_requests import TRACE_ID
from receivers.otlp_requests import request_of, simple_span, to_json
from spanscore.otlp import strict_json
from spanscore.otlp.findings import MalformedRequest, Refusal
from spanscore.otlp.from_json import decode_json, decoding_json
from spanscore.otlp.json_names import parse_request
from spanscore.otlp.json_writing import accepting_only_from_json, logs_to_protobuf, writing_logs, writing_metrics
from spanscore.otlp.slices import Steps, at_once

SMALL = 65_000
"""Bytes of a request that is small and full of empty objects."""

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "5", "NaN", "x", "YQ==", "AGGREGATION_TEMPORALITY_DELTA", TRACE_ID.hex()])
)
KEYS = (
    *("timeUnixNano", "eventName", "severityText", "body", "attributes", "key", "value"),
    *("stringValue", "intValue", "bytesValue", "arrayValue", "kvlistValue", "values", "flags", "resource", "scope"),
    *("name", "schemaUrl", "gauge", "sum", "histogram", "dataPoints", "asInt", "asDouble", "bucketCounts", "min"),
    *("exemplars", "positive", "unknown", "unknown_too", "version", "quantileValues"),
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for lists and for objects with names of OTLP."""
    return st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)


VALUES = st.recursive(SCALARS, objects, max_leaves=12)
# Protobuf's own reading has another form for these wherever they are, and refuses a bad one where nobody reads it.
IN_RECORDS = st.fixed_dictionaries({}, optional=dict.fromkeys(["traceId", "spanId", "severityNumber"], SCALARS))
RECORDS = st.builds(lambda more, known: more | known if isinstance(more, dict) else more, VALUES, IN_RECORDS)


def enveloped(outer: str, inner: str, items: str, around: Any, content: Any) -> bytes:
    """Return a request with such things around its items, and others behind."""
    scope = {"scope": around, items: content}
    return json.dumps({outer: [{inner: [scope, {items: []}], "resource": around}, {}]}).encode()


@pytest.fixture(scope="module", params=[1, 1_024])
def values_at_once(request: pytest.FixtureRequest) -> Any:
    """Take apart all that has more than one value, or only what is large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict_json, "VALUES_AT_ONCE", request.param)
        yield request.param


def outcome(write: Callable[[], Any]) -> Any:
    """Return what is written, or that it is malformed."""
    try:
        return write()
    except MalformedRequest:
        return MalformedRequest


def has_none_for_message(document: Any, descriptor: Any) -> bool:
    """Return whether something else stands where a message is: protobuf's own reading takes some for an empty one."""
    if not isinstance(document, dict):
        return document is not None
    fields = {field.json_name: field for field in descriptor.fields if field.message_type is not None}
    return any(
        has_none_for_message(each, fields[name].message_type)
        for name, value in document.items()
        if name in fields
        for each in (value if isinstance(value, list) and is_repeated(fields[name]) else [value])
    )


def is_repeated(field: Any) -> bool:
    """Return whether a field holds a list; protobuf says so by two names."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED)


@pytest.mark.usefixtures("values_at_once")
@at_most(300)
@given(around=VALUES, records=st.lists(RECORDS, max_size=4) | VALUES)
def test_logs_are_written_in_steps_as_at_once(around: Any, records: Any) -> None:
    """The same records, and the same are refused, for the same reasons."""
    body = enveloped("resourceLogs", "scopeLogs", "logRecords", around, records)

    def of(write: Callable[[], Any]) -> Any:
        written = write()
        refused = {each.reason: each.spans for each in written.refused}
        return (
            repr(ExportLogsServiceRequest.FromString(written.body)),
            refused,
            [each.trace_id for each in written.lost],
        )

    expected = outcome(lambda: of(lambda: logs_to_protobuf(parse_request(body))))
    assert expected == outcome(lambda: of(lambda: at_once(writing_logs(body))))


@pytest.mark.usefixtures("values_at_once")
@at_most(300)
@example(around="x", metrics=[{"gauge": {"dataPoints": [{"asInt": "5"}]}}])
@given(around=VALUES, metrics=st.lists(VALUES, max_size=4) | VALUES)
def test_metrics_are_written_in_steps_as_at_once(around: Any, metrics: Any) -> None:
    """The same request, or that it is none; and what protobuf's own reading of JSON finds in it."""
    body = enveloped("resourceMetrics", "scopeMetrics", "metrics", around, metrics)
    in_steps = outcome(lambda: at_once(writing_metrics(body)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict_json, "VALUES_AT_ONCE", 1_000_000)
        assert in_steps == outcome(lambda: at_once(writing_metrics(body)))

    own = ExportMetricsServiceRequest()
    try:
        ParseDict(parse_request(body), own, ignore_unknown_fields=True)
    except (ParseError, AttributeError, TypeError):
        return  # it has no null among items, for one, and refuses what is around no metric
    if not has_none_for_message(json.loads(body), ExportMetricsServiceRequest.DESCRIPTOR):
        assert in_steps is not MalformedRequest
        assert metrics_in(own) == metrics_in(ExportMetricsServiceRequest.FromString(in_steps.body))


def metrics_in(request: ExportMetricsServiceRequest) -> list[str]:
    """Return the metrics of a request, each with what is around it."""
    return [
        repr((outer.resource, outer.schema_url, inner.scope, inner.schema_url, metric))
        for outer in request.resource_metrics
        for inner in outer.scope_metrics
        for metric in inner.metrics
    ]


def full_of(before: str, after: str, item: str = "{}", size: int = SMALL) -> bytes:
    """Return a request of nearly so many bytes with as many of an item as fit."""
    return f"{before}{','.join([item] * (size // (len(item) + 1)))}{after}".encode()


def forwarded(body: bytes) -> Steps[Any]:
    """Send the spans of a request on."""
    return accepting_only_from_json(body, decode_json(body).spans)


LOGS = '{"resourceLogs":[{"scopeLogs":[{"logRecords":['
METRICS = '{"resourceMetrics":[{"scopeMetrics":[{"metrics":['
EVENTS = request(SPAN | {"events": ["x"]}).split('"x"')
FULL: dict[str, tuple[Callable[[bytes], Steps[Any]], bytes]] = {
    "records": (writing_logs, full_of(LOGS, "]}]}]}")),
    "resources": (writing_logs, full_of(f"{LOGS}]}}]}},", "]}")),
    "attributes": (writing_logs, full_of(LOGS + '{"attributes":[', "]}]}]}]}")),
    "metrics": (writing_metrics, full_of(METRICS, "]}]}]}")),
    "points": (writing_metrics, full_of(METRICS + '{"gauge":{"dataPoints":[', "]}}]}]}]}")),
    "buckets": (
        writing_metrics,
        full_of(METRICS + '{"histogram":{"dataPoints":[{"bucketCounts":[', "]}]}}]}]}]}", "1"),
    ),
    "events": (decoding_json, full_of(*EVENTS)),
    "events sent on": (forwarded, full_of(*EVENTS)),
}


@pytest.mark.parametrize("name", FULL)
def test_small_requests_of_many_values_take_many_steps(name: str) -> None:
    """A step ends after some thousand values, in however few bytes they are."""
    write, body = FULL[name]

    assert sum(1 for _ in write(body)) >= body.count(b",") // 1_024


def test_the_points_of_a_refused_resource_are_counted_in_steps() -> None:
    """As many functions are called in the longest step for few metrics as for many."""
    good = '{"name":"a","sum":{"dataPoints":[{"asInt":"1"}]}}'
    refused = ']}],"resource":{"attributes":3}},{"scopeMetrics":[{"metrics":[{"name":"b"}]}]}]}'
    few, many = (longest_step(writing_metrics(full_of(METRICS, refused, good, size))) for size in (10_000, 100_000))
    assert many < few * 2


def longest_step(steps: Steps[Any]) -> int:
    """Return how many functions are called in the longest step."""
    calls = [0]

    def count(_frame: Any, event: str, _argument: Any) -> None:
        calls[-1] += event == "call"

    sys.setprofile(count)
    try:
        while next(steps, "done") is None:
            calls.append(0)
    finally:
        sys.setprofile(None)
    return max(calls)


@pytest.mark.parametrize("write", [writing_logs, writing_metrics])
def test_too_many_values(write: Callable[[bytes], Steps[Any]]) -> None:
    """A request that would take gigabytes when it is parsed is refused as one with spans is."""
    with pytest.raises(MalformedRequest, match="more than 500,000 objects"):
        at_once(write(full_of(LOGS, "]}]}]}", size=6_100_000)))


@pytest.mark.parametrize("size", [100, 100_000])
@pytest.mark.parametrize(
    "value", ['"gauge":{"dataPoints":[%s]},"sum":{}', '"gauge":[%s]', '"unit":[%s]', '"sum":{"dataPoints":{"a":[%s]}}']
)
def test_metrics_that_are_none(value: str, size: int) -> None:
    """A large request is refused for what a small one is."""
    before, after = (METRICS + '{"name":"m",' + value).split("%s")
    body, (refused,), _ = at_once(writing_metrics(full_of(before, after + "}]}]}]}", size=size)))
    assert not body
    assert refused.example.startswith("resourceMetrics[0].scopeMetrics[0].metrics[0]: ")


def test_a_misspelt_key_beside_metrics_is_reported() -> None:
    """Its resource is lost, as one with logs is."""
    body = METRICS + '{"name":"good"}]}]},{"scopeMetric":[{"metrics":[{"name":"lost"}]}]}]}'

    found = at_once(writing_metrics(body.encode()))

    assert b"good" in found.body
    assert [(Refusal.UNKNOWN_FIELD, 0)] == [each[:2] for each in found.refused]


def test_a_large_span_is_copied_in_several_steps() -> None:
    """A step that copies a request again and again takes as long as ten, and as much memory."""
    body = to_json(request_of(simple_span(1, name="n" * 2**22)))
    spans = decode_json(body).spans
    most = []
    steps = accepting_only_from_json(body, spans)
    tracemalloc.start()
    try:
        with suppress(StopIteration):
            while True:
                tracemalloc.reset_peak()
                before, _ = tracemalloc.get_traced_memory()
                try:
                    next(steps)
                finally:
                    most.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()

    assert max(most) < 4 * len(body)
