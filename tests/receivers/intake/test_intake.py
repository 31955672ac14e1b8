"""What becomes of a request before it is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import ScopeMetrics

from otlp_capture import DEADLINE_S, InMemory, spans_of
from receivers.otlp_requests import request_of, simple_span, to_json
from receivers.receiving import Core
from spanscore.emitters.otlp._held_roots import HoldLimits
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.otlp.forward_settings import ForwardSettings
from spanscore.emitters.sending.backlog import QueueLimits
from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import Caveat, MalformedRequest
from spanscore.otlp.protobuf_check import checking
from spanscore.otlp.slices import at_once
from spanscore.receivers.intake import intake as module
from spanscore.receivers.intake.admission import Admission, Unavailable
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.door import Door
from spanscore.receivers.intake.intake import Intake, NoRoom


def refuse(*_: Any) -> Any:
    """Stand for work that must not be done."""
    message = "this was not to be asked for"
    raise AssertionError(message)


@pytest.fixture
def core() -> Core:
    """Return a next receiver that is full."""
    return Core(is_full=True)


def test_nothing_is_written_anew_where_there_is_no_room(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that cannot be sent on is refused before the work of preparing it."""
    monkeypatch.setattr(module, "_forwarding", refuse)
    intake = Intake(refuse, spans_onward=core)

    with pytest.raises(NoRoom):
        asyncio.run(intake.decode(to_json(request_of(simple_span(1))), Encoding.JSON))


def test_metrics_are_not_looked_at_where_there_is_no_room(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """As little as spans are."""
    monkeypatch.setattr(module, "readable_metrics", refuse)
    intake = Intake(refuse, others_onward=core)

    with pytest.raises(NoRoom):
        asyncio.run(intake.decode(METRICS, Encoding.PROTOBUF, "metrics"))


def test_what_is_not_let_in_is_neither_decoded_nor_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large request is refused by its size before it is decoded, and any by its spans before it is written down."""
    asked = []

    def has_room(spans: int) -> bool:
        asked.append(spans)
        return spans <= 1

    intake = Intake(refuse, has_room=has_room)
    small, large = (request_of(*[simple_span(1)] * count).SerializeToString() for count in (3, 1_000))
    request = asyncio.run(intake.decode(small, Encoding.PROTOBUF))
    monkeypatch.setattr(module, "in_slices", refuse)
    with pytest.raises(NoRoom, match="too many requests at once"):
        intake.accept(request)
    with pytest.raises(NoRoom, match="too many requests at once"):
        asyncio.run(intake.decode(large, Encoding.PROTOBUF))
    assert [1, 3, len(large) // 256] == asked


@pytest.mark.parametrize("fields", [{}, {"spanId": "no id"}])
def test_a_sender_is_told_of_a_span_that_is_not_sent_on(fields: dict[str, str]) -> None:
    """Protobuf cannot hold a span in JSON that was taken: beside good ones, and beside one that is refused."""
    document = json.loads(to_json(request_of(simple_span(1), simple_span(2), simple_span(3))))
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[1]["traceState"] = 5
    spans[2] |= fields
    core = Core()
    intake = Intake(lambda taken, sizes: core.accept(taken, sum(sizes)), spans_onward=core)

    decoded = asyncio.run(intake.decode(json.dumps(document).encode(), Encoding.JSON))
    answer = intake.accept(decoded)

    assert {Caveat.NOT_FORWARDED: 1} == decoded.decoded.caveats
    assert len(core.spans) - 1 == len(spans_of(core.sent_on))
    assert (len(fields), "not_forwarded (1)" in answer.message) == (answer.rejected_spans, True)


def test_a_replay_waits_for_room_for_all_roots() -> None:
    """Each root may be sent by itself: a stored request waits until there is room for all, and none is dropped."""
    client = InMemory()
    client.hold()
    settings = ForwardSettings(queue=QueueLimits(capacity=100, linger_s=0), hold=HoldLimits(max_roots=10))

    class WhenFull(Forward):
        def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
            """Return whether there is room, and let the receiver take requests again if there is none."""
            has_room = super().has_room(size, spans)
            if not has_room:
                client.go_on()
            return has_room

    forward = WhenFull(client, settings)
    intake = Intake(refuse, spans_onward=forward)
    try:
        for first, count in ((1, 40), (101, 90)):
            body = request_of(*map(simple_span, range(first, first + count))).SerializeToString()
            asyncio.run(intake.take_again(body, Encoding.PROTOBUF, lambda _: True))
    finally:
        client.go_on()
        forward.close(DEADLINE_S)
    assert ({}, 130) == (forward.outbox.failures, len(spans_of(client.taken)))


def test_roots_are_counted_before_a_request_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with more roots than the queue has room for is refused before it is prepared for it."""
    monkeypatch.setattr(module, "_forwarding", refuse)
    client = InMemory()
    client.hold()
    forward = Forward(client, ForwardSettings(queue=QueueLimits(capacity=100, linger_s=0)))
    intake = Intake(refuse, spans_onward=forward)
    forward.take(request_of(simple_span(1, 2, parent_span_id=b"12345678")).SerializeToString())
    body = request_of(*map(simple_span, range(1, 101))).SerializeToString()
    try:
        with pytest.raises(NoRoom):
            asyncio.run(intake.decode(body, Encoding.PROTOBUF))
    finally:
        client.go_on()
        forward.close(DEADLINE_S)


@pytest.mark.parametrize("signal", [None, "logs", "metrics"])
def test_what_takes_too_long_is_refused_with_a_delay(signal: OtherSignal | None) -> None:
    """Its sender gets an answer before its connection is cut off, and may try again; nothing of it is taken."""
    name = {"logs": "Logs", "metrics": "Metrics"}.get(signal or "", "Spans")
    items = {"Logs": "logRecords", "Metrics": "metrics"}.get(name, "spans")
    body = f'{{"resource{name}": [{{"scope{name}": [{{"{items}": [{", ".join(["{}"] * 50_000)}]}}]}}]}}'.encode()
    admission = Admission()
    door = Door("door", Intake(refuse, others_onward=Core()), admission, take_s=0)

    with pytest.raises(Unavailable, match="too many requests at once"):
        asyncio.run(door.hand_in(signal, body, Encoding.JSON))
    assert 0 == admission.requests.accepted


def metrics() -> ExportMetricsServiceRequest:
    """Return a request with some data points in two metrics, in two scopes."""
    request = ExportMetricsServiceRequest()
    resource = request.resource_metrics.add(schema_url="a schema")
    for scope in ("one", "two"):
        inner: ScopeMetrics = resource.scope_metrics.add()
        inner.scope.name = scope
        for point in range(20):
            inner.metrics.add(name="sums").sum.data_points.add(as_int=point, time_unix_nano=point)
        for point in range(100):
            inner.metrics[0].sum.data_points.add(as_int=point).attributes.add(key="k").value.string_value = "\u20ac"
    return request


METRICS = metrics().SerializeToString()


@given(st.data())
def test_a_message_is_checked_in_steps_as_it_is_parsed(data: st.DataObject) -> None:
    """However little is parsed at once, a changed message is found to be broken where parsing it finds that."""
    body = bytearray(METRICS)
    place = data.draw(st.integers(0, len(body) - 1))
    body[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    changed = bytes(body)
    try:
        ExportMetricsServiceRequest.FromString(changed)
    except DecodeError:
        with pytest.raises(MalformedRequest, match="not an ExportMetricsServiceRequest in protobuf"):
            at_once(checking(changed, ExportMetricsServiceRequest, data.draw(st.sampled_from([1, 16, 200, 1_000]))))
    else:
        at_once(checking(changed, ExportMetricsServiceRequest, data.draw(st.sampled_from([1, 16, 200, 1_000]))))


def test_a_large_request_is_checked_in_many_steps() -> None:
    """Metrics of some megabytes let others run meanwhile."""
    request = ExportMetricsServiceRequest(resource_metrics=[metrics().resource_metrics[0]] * 500)
    body = request.SerializeToString()
    assert len(body) // 2**20 <= sum(1 for _ in checking(body, ExportMetricsServiceRequest))
