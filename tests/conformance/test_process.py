"""Rules 94 to 100: how the receiver starts, listens and ends."""

from __future__ import annotations

import http.client
import os
import re
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from commands import really_started
from conformance.doors import GRPC, HTTP, OK, Door, Told, chain, over_http
from conformance.processes import process
from own_sockets import shut
from receivers.h2_client import H2Client
from receivers.otlp_requests import request_of, simple_span, trace_id
from receivers.raw_http import head
from receivers.receiving import Reply, answered, reply, retry_delay_s
from serving import DEADLINE_S, ON_ANY_PORT, eventually, loop_thread, serving
from spanscore import config
from spanscore.cli import main
from spanscore.errors import ConfigError
from spanscore.receivers.otlp import over_grpc
from spanscore.service import listeners
from spanscore.service.service import Service

ONE = request_of(simple_span(1)).SerializeToString()
FAREWELL_S = 3.0
"""For so long a call over gRPC is told when to come again: longer than by default, for those who are slow to ask."""


ELSEWHERE = 'exporters: {prometheus: {endpoint: "127.0.0.1:0"}}\n'  # the port by default may be another program's


def test_094_only_this_machine_can_connect_by_default() -> None:
    """Other addresses need TLS and authentication, or `--insecure`."""
    defaults = config.default().for_serve()
    protocols = defaults.receivers["otlp"].protocols
    endpoints = (protocols.grpc.endpoint, protocols.http.endpoint, defaults.exporters["prometheus"].endpoint)
    assert {"localhost"} == {endpoint.host for endpoint in endpoints}
    for key in ("grpc", "http"):
        exposed = f'{ELSEWHERE}receivers: {{otlp: {{protocols: {{{key}: {{endpoint: "0.0.0.0:0"}}}}}}}}'
        told = f"receivers.otlp.protocols.{key}.endpoint: 0.0.0.0:0 can be reached from other machines: configure 'tls'"
        with pytest.raises(ConfigError, match=re.escape(told)), serving(exposed):
            pass
        with serving(exposed, insecure=True):
            pass


def test_095_at_the_end_refusals_come_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """New connections are refused, open ones are asked to retry later, and running requests end."""
    monkeypatch.setattr(over_grpc, "_FAREWELL_S", FAREWELL_S)
    with serving() as running:
        host, port = running.service.addresses[listeners.HTTP][0]
        live, slow = http.client.HTTPConnection(host, port), socket.create_connection((host, port))
        assert 200 == _posted(live).status
        over_h2, told_farewell = (H2Client(running.service.addresses[listeners.GRPC][0].port) for _ in range(2))
        assert [0, 0] == [over_h2.export(ONE).code, told_farewell.export(ONE).code]
        slow.sendall(head(len(ONE), "application/x-protobuf", "Expect: 100-continue"))
        assert b"100 Continue" in slow.recv(1000)

        stopping = running.thread.start(running.service.stop(DEADLINE_S))
        eventually(lambda: running.readiness()[0] == 503)
        refused = over_h2.export(ONE)
        assert 14 == refused.code
        assert 1 <= (retry_delay_s(refused.details) or 0) <= 30
        unavailable = _posted(live)
        assert (503, True) == (unavailable.status, 1 <= int(unavailable.headers["Retry-After"]) <= 30)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, port)).close()
        with suppress(ConnectionError):  # which is the end that is waited for
            while True:
                told_farewell.receive()
        assert b"Server shutdown" == told_farewell.goaway[0].additional_data
        assert not stopping.done()  # all that came before the slow one, who has until the deadline

        slow.sendall(ONE)
        assert 200 == answered(slow).status
        stopping.result(DEADLINE_S)
        for connection in (live, slow, over_h2, told_farewell):
            connection.close()
        assert [trace_id(1)] == [report.trajectory.trace_id for report in running.reports.emitted]


def _posted(connection: http.client.HTTPConnection) -> Reply:
    connection.request("POST", "/v1/traces", ONE, {"Content-Type": "application/x-protobuf"})
    return reply(connection.getresponse())


@pytest.mark.processes
def test_095_a_signal_ends_it_well(tmp_path: Path) -> None:
    """SIGTERM leads to all that, and to exit status 0."""
    with process(tmp_path) as running:
        assert Told(OK) == over_http(running, ONE)
        assert 0 == running.end()


def test_096_after_the_end_nothing_goes_on(door: Door) -> None:
    """All acknowledged requests are finished, and no work continues."""
    with chain(annotate="root_event") as running:
        taken = threading.Event()
        acknowledged: list[int] = []

        def send_on_and_on() -> None:
            for number in range(1, 10_000):
                try:
                    told = door.send(running.running, request_of(simple_span(number)))
                except OSError:
                    return
                if told.code != OK:
                    return
                acknowledged.append(number)
                taken.set()

        sending = threading.Thread(target=send_on_and_on)
        sending.start()
        assert taken.wait(DEADLINE_S)
        running.running.stop()
        sending.join(DEADLINE_S)
        emitted, sent = len(running.running.reports.emitted), len(running.behind.seen)
        behind = {span.trace_id for span in running.behind.spans()}
        assert {trace_id(number) for number in acknowledged} <= behind
        running.running.stop()
        assert (emitted, sent) == (len(running.running.reports.emitted), len(running.behind.seen))


def test_097_restarts_leave_nothing_behind() -> None:
    """A hundred starts and stops on the same ports, or no start at all, leave no thread and no open file."""
    with serving() as running:
        ports = {key: addresses[0].port for key, addresses in running.service.addresses.items()}
    host = f"127.{os.getpid() // 250 % 250}.{os.getpid() % 250}.1"  # other processes take ports of 127.0.0.1 meanwhile
    configuration = f"""
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "{host}:{ports[listeners.GRPC]}"}},
                                  http: {{endpoint: "{host}:{ports[listeners.HTTP]}"}}}}}}}}
exporters: {{prometheus: {{endpoint: "{host}:{ports[listeners.PAGES]}"}}}}
storage: {{durability: none}}
traces: {{remember_traces: 1000}}
"""
    settings = config.loads(configuration, "", Path()).for_serve()
    with loop_thread() as thread:

        def restart() -> tuple[int, int]:
            service = thread.call(lambda: Service(settings))
            thread.run(service.start())
            thread.run(service.stop())
            thread.run(service.stop())
            return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

        before = max(restart() for _ in range(5))  # the first times open what stays
        for _ in range(95):
            restart()
        eventually(lambda: restart() <= before)  # a connection of gRPC may close a moment later
        never_started = thread.call(lambda: Service(settings))
        thread.run(never_started.stop())


@pytest.mark.processes
def test_098_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    """The error names the address and the key of the configuration."""
    path = tmp_path / "spanscore.yaml"
    with socket.create_server(("127.0.0.1", 0)) as used:
        endpoint = f"127.0.0.1:{used.getsockname()[1]}"
        path.write_text(ON_ANY_PORT.replace("127.0.0.1:0", endpoint, 1))
        ended = really_started("serve", "--config", path)
    key = "receivers.otlp.protocols.grpc.endpoint"
    assert (1, True) == (
        ended.returncode,
        f"{key}: cannot listen on {endpoint}: address already in use\n" in ended.stderr,
    )


def test_099_a_wrong_configuration_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every mistake is reported, and nothing starts."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 7}}\nevaluatorz: {{}}")
    assert 2 == main(["serve", "--config", str(path)])
    told = capsys.readouterr().err
    assert "listening" not in told
    assert all(key in told for key in ("traces.decision_delay", "evaluatorz"))


def test_100_one_listener_may_fail_without_the_others() -> None:
    """If a listening socket is lost, the others serve on, and readiness names it."""
    for lost, served in ((listeners.HTTP, GRPC), (listeners.GRPC, HTTP)):
        with serving() as running:
            assert 200 == running.readiness()[0]
            shut(running.service.addresses[lost][0].port)
            eventually(lambda: running.readiness()[0] == 503)
            assert [lost] == [key for key, state in running.readiness()[1].items() if state != "ok"]
            assert Told(OK) == served.send(running, request_of(simple_span(1)))
            assert 200 == running.page("/livez")[0]
