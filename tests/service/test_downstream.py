"""While the next receiver takes nothing, its scores and spans wait, and everybody is told."""

from __future__ import annotations

import urllib.error
from pathlib import Path
from typing import cast

import grpc
import pytest

from emitters.reports import PASSED, report
from otlp_capture import Capture, InMemory, capturing, port_of, spans_of
from receivers.otlp_requests import request_of, simple_span, trace_id
from serving import DEADLINE_S, ON_ANY_PORT, Reports, eventually, serving
from spanscore.emitters.otlp.otlp_logs import OtlpLogs
from spanscore.metrics.telemetry import OwnTelemetry
from spanscore.service.downstream import Downstream

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
NOW = "traces: {decision_delay: 0s}"


def stored(directory: Path) -> str:
    """Return a configuration with storage."""
    return f"{ON_ANY_PORT.replace('durability: none', f'directory: {directory}')}\n{NOW}"


def body(number: int) -> bytes:
    """Return a request with the root of a trace."""
    return request_of(simple_span(number)).SerializeToString()


def gone() -> Capture:
    """Return a receiver that has ended."""
    with capturing("http/protobuf") as receiver:
        return receiver


def test_a_receiver_that_comes_back_gets_spans_and_scores(tmp_path: Path) -> None:
    """Meanwhile requests are taken; readiness and a metric say that nothing can be sent, and why."""
    receiver = gone()
    otlp = f'exporters: {{otlp: {{endpoint: "{receiver.endpoint}", signals: [logs, traces]}}, '
    configuration = stored(tmp_path).replace("exporters: {", otlp)
    with serving(configuration) as running:
        running.post(body(1))
        running.reports.wait_for(1)

        def away() -> list[str]:
            status, states = running.readiness()
            assert 200 == status
            return [name for name, state in states.items() if state.startswith("ok, but nothing could be sent for ")]

        eventually(lambda: away() == ["otlp_logs", "forward"])
        assert running.readiness()[1]["forward"].endswith(" s (unreachable), 1 item in the queue")
        assert 'spanscore_export_delay_seconds{spanscore_emitter="forward"}' in running.page("/metrics")[1]
        assert not running.service.troubles
        running.post(body(2))
        with capturing("http/protobuf", receiver, port_of(receiver)):
            running.reports.wait_for(2)
            running.stop()
    sent = {path: [each.body for each in receiver.seen if each.path == path] for path in ("/v1/logs", "/v1/traces")}
    assert {trace_id(1), trace_id(2)} == {span.trace_id for span in spans_of(sent["/v1/traces"])}
    logs = b"".join(sent["/v1/logs"])
    assert 2 == sum(trace_id(number) in logs for number in (1, 2))


@pytest.mark.parametrize("is_stored", [True, False])
def test_what_cannot_be_sent_is_not_taken(*, is_stored: bool, tmp_path: Path) -> None:
    """If events would not fit any more, senders are asked to retry; without storage these events are dropped."""
    client = InMemory()
    client.hold()
    events = cast("Reports", OtlpLogs(client, capacity=2))
    with serving(stored(tmp_path) if is_stored else f"{ON_ANY_PORT}\n{NOW}", events) as it:
        it.post(body(1))
        outbox = cast("OtlpLogs", events).outbox
        eventually(lambda: outbox.size == 1)
        with grpc.insecure_channel(it.grpc) as channel:
            export = channel.unary_unary(EXPORT)
            code = export.future(body(2), timeout=DEADLINE_S).code()
            if is_stored:
                with pytest.raises(urllib.error.HTTPError, match="503"):
                    it.post(body(2))
                assert grpc.StatusCode.UNAVAILABLE is code
                status, states = it.readiness()
                assert (503, "the queue to the next receiver is 50% full") == (status, states["reports"])
                client.go_on()
                eventually(lambda: outbox.size == 0)
                assert grpc.StatusCode.OK is export.future(body(2), timeout=DEADLINE_S).code()
            else:
                it.post(body(3))
                eventually(lambda: outbox.failures == {"queue_full": 1})
                assert (grpc.StatusCode.OK, 200) == (code, it.readiness()[0])
        client.go_on()


@pytest.mark.parametrize("is_kept", [True, False])
def test_events_have_half_of_their_queue_for_open_traces(*, is_kept: bool) -> None:
    """From half on, no requests are taken, if their spans are kept until their events are sent."""
    client = InMemory()
    client.hold()
    emitter = OtlpLogs(client, capacity=4)
    downstream = Downstream({"otlp_logs": emitter}, None, OwnTelemetry(()), is_kept=is_kept)
    emitter.emit(report(PASSED))
    assert downstream.has_room()
    assert {"otlp_logs": "ok"} == downstream.states()
    emitter.emit(report(PASSED))
    assert is_kept is not downstream.has_room()
    client.go_on()
    emitter.close(DEADLINE_S)
