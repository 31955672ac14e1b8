from __future__ import annotations

import asyncio
import logging
import math
import socket
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from own_sockets import listening
from receivers.otlp_requests import decoded_span, request_of, simple_span
from serving import DEADLINE_S, ON_ANY_PORT, Reports, eventually, loop_thread, serving
from spanscore import config
from spanscore.errors import ConfigError
from spanscore.model import CloseReason
from spanscore.otlp.clean_requests import chosen
from spanscore.receivers.sockets.listening import ListenError
from spanscore.scoring import live_engine
from spanscore.service.exposure import GRPC, HTTP, PAGES
from spanscore.service.service import Service

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PROTOBUF = "application/x-protobuf"
TLS = Path(__file__).parents[1] / "tls"
ONE = request_of(simple_span(1)).SerializeToString()


def test_a_trace_is_scored_soon_after_its_root_has_ended() -> None:
    """Without any further request the trace is closed when the decision delay is over."""
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 10ms}}") as running:
        running.post(ONE)

        assert [CloseReason.ROOT_ENDED] == [report.close_reason for report in running.reports.wait_for(1)]


def test_a_trace_without_a_root_is_scored_after_the_timeout() -> None:
    """A trace whose root does not come is closed when the timeout is over, whatever else is due earlier or later."""
    orphan = request_of(simple_span(2, parent_span_id=b"12345678")).SerializeToString()
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 20ms, trace_timeout: 40ms}}") as running:
        running.post(orphan)
        running.post(ONE)

        reasons = [report.close_reason for report in running.reports.wait_for(2)]
        assert {CloseReason.ROOT_ENDED, CloseReason.TIMED_OUT} == set(reasons)


def test_senders_come_again_while_too_much_waits_to_be_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where closed traces pile up, large requests are refused until they are scored; small ones are not, nor lost."""
    assert (65_536, 3 * 65_536) == (live_engine._MUCH, live_engine._MOST)
    monkeypatch.setattr(live_engine, "_MUCH", 800)
    monkeypatch.setattr(live_engine, "_MOST", 2_400)
    large = request_of(*(simple_span(1, span) for span in range(1, 101))).SerializeToString()
    flood = [decoded_span(trace, span) for trace in range(2, 10) for span in range(1, 126)]
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s, num_traces: 1}}") as running:
        engine = running.service.engine
        running.thread.call(lambda: engine.take(flood, [1] * len(flood)))
        with pytest.raises(urllib.error.HTTPError) as refused:
            running.post(large)
        assert (503, True) == (refused.value.code, int(refused.value.headers["Retry-After"]) > 0)
        refused.value.close()
        running.post(ONE)
        running.thread.call(lambda: engine.work(math.inf))
        assert list(range(2, 10)) == [report.trajectory.trace_id[-1] for report in running.reports.wait_for(9)][:8]
        running.post(large)


EXPORTERS = {
    "grpc": lambda running: GrpcExporter(running.grpc, insecure=True),
    "grpc gzip": lambda running: GrpcExporter(running.grpc, insecure=True, compression=grpc.Compression.Gzip),
    "http": lambda running: HttpExporter(f"{running.http}/v1/traces"),
    "http gzip": lambda running: HttpExporter(f"{running.http}/v1/traces", compression=Compression.Gzip),
}


@pytest.mark.parametrize("name", sorted(EXPORTERS))
def test_the_sdks_exporters_are_understood(name: str) -> None:
    """What OpenTelemetry's own exporters send, compressed or not, is received and scored."""
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s}}") as running:
        exporter: SpanExporter = EXPORTERS[name](running)
        tracer = TracerProvider().get_tracer("agent")
        with tracer.start_as_current_span("invoke_agent shop") as root:
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
            with tracer.start_as_current_span("execute_tool search", attributes=attributes) as child:
                pass
        assert exporter.export([child, root]) is SpanExportResult.SUCCESS  # type: ignore[list-item]
        exporter.shutdown()

        (report,) = running.reports.wait_for(1)
        assert ["search"] == [call.name for call in report.trajectory.calls]


def test_the_pages_tell_how_it_is() -> None:
    """It is alive, ready, and shows its metrics in both of Prometheus's formats."""
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s}}") as running:
        running.post(ONE)

        assert (200, "ok\n") == running.page("/livez")
        assert (200, {"otlp": "ok"}) == running.readiness()
        status, text = running.page("/metrics")
        decoder = chosen().split()[0]
        shown = [
            "spanscore_spans_received_total 1.0",
            f'spanscore_requests_decoded_total{{spanscore_decoder="{decoder}"}} 1.0',
        ]
        assert (200, True) == (status, set(shown) <= set(text.splitlines()))
        assert 404 == running.page("/config")[0]


def test_it_is_not_ready_at_the_end() -> None:
    """While requests under way are finished, the page says that no more are taken."""
    with serving() as running:
        with socket.create_connection(running.service.addresses[HTTP][0]) as slow:
            head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {PROTOBUF}\r\n"
            slow.sendall(f"{head}Expect: 100-continue\r\nContent-Length: {len(ONE)}\r\n\r\n".encode())
            assert b"100 Continue" in slow.recv(1000)
            stopping = running.thread.start(running.service.stop(DEADLINE_S))
            eventually(lambda: running.readiness()[0] == 503)
            assert {"otlp": "shutting down"} == running.readiness()[1]
            slow.sendall(ONE)
            assert b"200 OK" in slow.recv(1000)
        stopping.result(DEADLINE_S)

        assert [1] == [report.trajectory.trace_id[-1] for report in running.reports.emitted]


def test_at_the_end_open_traces_are_scored_and_emitters_closed() -> None:
    """Everything that was received is scored; afterwards nothing is emitted, and stopping again changes nothing.

    A trace whose root ended within `decision_delay` is as incomplete as one without a root: more may have been to come.
    """
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 1h}}") as running:
        running.post(ONE)
        running.post(request_of(simple_span(2, parent_span_id=b"12345678")).SerializeToString())
        assert [] == running.reports.emitted
        running.stop()
        running.stop()

        said = [(report.close_reason, report.complete) for report in running.reports.emitted]
        assert ([(CloseReason.SHUTDOWN, False)] * 2, True) == (said, running.reports.closed)
        counts = running.service.engine.counts()
        assert (2, 2, 0) == (counts.received, counts.in_closed, counts.live)


class _Full(Reports):
    """An emitter that cannot send what it holds."""

    def close(self, timeout_s: float) -> bool:
        return super().close(timeout_s) and False


class _FullInOrder(_Full):
    progress = (1, 0)


@pytest.mark.parametrize(
    ("storage", "told"),
    [
        ("{durability: none}", "unsent data of held, full is lost"),
        (
            "{directory: %s}",
            "unsent data of held stays on disk for the next start; unsent data of full is lost",
        ),
    ],
)
def test_what_could_not_be_sent_at_the_end(
    storage: str, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The exporters are named, and what becomes of it is told."""
    written = ON_ANY_PORT.replace("{durability: none}", storage.replace("%s", str(tmp_path)))
    with loop_thread() as thread:
        emitters = {"sent": Reports(), "held": _FullInOrder(), "full": _Full()}
        service = thread.call(lambda: Service(config.loads(written, "", Path()).for_serve(), emitters))
        thread.run(service.stop())

    assert [f"not everything could be scored and sent within 10 s: {told}"] == [
        message for message in caplog.messages if "could be scored and sent" in message
    ]


def test_what_was_never_started_can_be_stopped() -> None:
    """Stopping a service that does not listen closes its emitters."""
    reports = Reports()
    with loop_thread() as thread:
        service = thread.call(lambda: Service(config.loads(ON_ANY_PORT, "", Path()).for_serve(), {"reports": reports}))
        thread.run(service.stop())

    assert reports.closed


@pytest.mark.parametrize("key", [GRPC, HTTP, PAGES])
def test_a_port_in_use_is_named_and_nothing_is_listened_on(key: str) -> None:
    """When one address is in use, the error names it and its key, and nothing is left that listens on the others."""
    with socket.create_server(("127.0.0.1", 0)) as used:
        address = f"127.0.0.1:{used.getsockname()[1]}"
        endpoints = [address if each == key else "127.0.0.1:0" for each in (GRPC, HTTP, PAGES)]
        configuration = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "{}"}}, http: {{endpoint: "{}"}}}}}}}}
exporters: {{prometheus: {{endpoint: "{}"}}}}
""".format(*endpoints)
        before = listening()
        expected = f"^{key}: cannot listen on {address}: address already in use$"
        with pytest.raises(ListenError, match=expected), serving(configuration):
            pass
        eventually(lambda: listening() <= before)


def test_a_reload_scores_by_the_new_evaluators_and_keeps_open_traces(caplog: pytest.LogCaptureFixture) -> None:
    """A trace that was open before is scored by what is configured now; keys that need a restart are named."""
    evaluators = 'evaluators: {calls: {type: tool_call_count, tool_calls_count: {search: [">=", 0]}}}'
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 1h}}") as running, caplog.at_level("INFO"):
        running.post(ONE)
        changed = f"{ON_ANY_PORT}\ntraces: {{decision_delay: 2h, num_traces: 7}}\n{evaluators}"
        loaded = config.loads(changed.replace("127.0.0.1:0", "127.0.0.1:1", 1), "", Path()).for_serve()
        running.thread.call(lambda: running.service.reload(loaded))
        running.stop()

        (report,) = running.reports.emitted
        assert ["calls"] == [evaluation.name for evaluation in report.evaluations]
    keys = "receivers.otlp.protocols.grpc.endpoint, traces.decision_delay, traces.num_traces"
    assert [
        "reloaded the configuration; scoring: calls",
        f"these keys have changed too, but need a restart: {keys}",
    ] == caplog.messages[-2:]


def test_what_is_received_is_sent_on() -> None:
    """Spans, metrics and logs go on to the next receiver; root spans carry their scores there."""
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s}}") as behind:
        configuration = f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}}}
traces: {{decision_delay: 0s}}
exporters: {{otlp: {{endpoint: "{behind.http}", signals: [traces]}}}}
"""
        with serving(configuration) as running:
            for spans in ([simple_span(1, 2, parent_span_id=b"\0\0\0\0\0\0\0\1")], [simple_span(0), simple_span(1)]):
                running.post(request_of(*spans).SerializeToString())
            running.reports.wait_for(1)
        (report,) = behind.reports.wait_for(1)

    assert (1, 2) == (report.trajectory.trace_id[-1], behind.service.engine.counts().received)


def test_tls_and_bearer_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS and a token, on both protocols, who trusts the authority and knows the token can send."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)  # they go before what the exporter is told
    (tmp_path / "tokens.txt").write_text("# agents\nsecret\n\nother\n")
    tls = f"tls: {{cert_file: {TLS}/server.crt, key_file: {TLS}/server.key}}"
    configuration = f"""
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "0.0.0.0:0", {tls}}}
      http: {{endpoint: "0.0.0.0:0", {tls}}}
    auth: {{bearer_token_file: {tmp_path}/tokens.txt}}
exporters: {{prometheus: {{endpoint: "127.0.0.1:0"}}}}
"""
    with serving(configuration) as running:
        grpc_port, http_port = (running.service.addresses[key][0].port for key in (GRPC, HTTP))
        credentials = grpc.ssl_channel_credentials((TLS / "ca.crt").read_bytes())
        for token, expected in (("secret", SpanExportResult.SUCCESS), ("guess", SpanExportResult.FAILURE)):
            headers = {"authorization": f"Bearer {token}"}
            exporters: list[SpanExporter] = [
                GrpcExporter(f"localhost:{grpc_port}", credentials=credentials, headers=headers),
                HttpExporter(
                    f"https://localhost:{http_port}/v1/traces", certificate_file=f"{TLS}/ca.crt", headers=headers
                ),
            ]
            with TracerProvider().get_tracer("agent").start_as_current_span("run") as span:
                pass
            for exporter in exporters:
                assert exporter.export([span]) is expected  # type: ignore[list-item]
                exporter.shutdown()


def test_the_log_holds_nothing_that_was_received(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is received, good or bad, no attribute, name, header or token of it is in the log."""
    canary = "canary-7f3a"
    with serving() as running, caplog.at_level(logging.DEBUG):
        bad = request_of(simple_span(1, name=canary), simple_span(0, name=canary)).SerializeToString()
        running.post(bad)
        for body, headers in (
            (canary.encode(), {"Content-Type": PROTOBUF}),
            (b"{" + canary.encode(), {"Content-Type": "application/json"}),
            (ONE, {"Content-Type": canary, "Authorization": f"Bearer {canary}"}),
            (ONE, {"Content-Type": PROTOBUF, f"X-{canary}": "v" * 20_000}),
        ):
            request = urllib.request.Request(f"{running.http}/v1/traces?{canary}", body, headers)
            with pytest.raises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(request, timeout=DEADLINE_S)
            raised.value.close()
        with socket.create_connection(running.service.addresses[HTTP][0]) as connection:
            connection.sendall(f"{canary} \0 nonsense\r\n\r\n".encode())
            assert b"400" in connection.recv(1000)

    assert "" == "".join(text for text in caplog.text.splitlines() if canary in text)


def test_a_receiver_that_would_send_to_itself_does_not_start() -> None:
    """Where the exporter's endpoint is one of our own, every span would come back for ever: that is refused."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
exporters: {{otlp: {{endpoint: "http://127.0.0.1:{port}", signals: [traces]}}}}
"""

    async def start() -> None:
        await Service(config.loads(text, "test", Path()).for_serve()).start()

    with pytest.raises(
        ConfigError, match=rf"exporters\.otlp\.endpoint: spanscore itself listens on 127\.0\.0\.1:{port} \("
    ):
        asyncio.run(start())
