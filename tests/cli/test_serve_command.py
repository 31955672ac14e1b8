from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from opentelemetry.util.re import parse_env_headers

from commands import serve
from deadline import DEADLINE_S
from receivers.otlp_requests import request_of, simple_span

TLS = Path(__file__).parents[1] / "tls"
ONE = request_of(simple_span(1)).SerializeToString()

CONFIGURATION = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:0"}
      http: {endpoint: "127.0.0.1:0"}
exporters: {console: {}}
traces: {decision_delay: 1h}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a configuration file."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(CONFIGURATION)
    return path


@pytest.mark.parametrize("mode", ["observe", "on"])
def test_it_says_which_traces_it_keeps(path: Path, mode: str) -> None:
    """The mode, and the share of each rule in their order; before it the monitors."""
    path.write_text(f"""{CONFIGURATION.replace("{console: {}}", "{console: {}, otlp: {endpoint: http://127.0.0.1:9}}")}
keep:
  mode: {mode}
  rules:
    - {{name: failing, when: {{verdict: fail}}}}
    - {{name: good, when: {{verdict: pass}}, keep: 5%}}
  default: 0.125
monitors: {{failing: {{of: {{verdict: fail}}, at_most: 5%, one_false_alarm_per: 30d}}}}
storage: {{durability: none}}
""")
    with serve("--config", path) as command:
        assert command.wait_for("^  monitors +(.*)$")[1] == "failing"
        assert command.wait_for("^  keep +(.*)$")[1] == f"{mode}: failing all, good 5 %, default 12.5 %"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_when_all_is_scored(path: Path, number: signal.Signals) -> None:
    """It says where to send, and on a signal scores and prints what is open and not stored, and ends well."""
    path.write_text(f"{CONFIGURATION}storage: {{durability: none}}\n")
    with serve("--config", path) as command:
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)")[1]
        request = urllib.request.Request(url, ONE, {"Content-Type": "application/x-protobuf"})
        urllib.request.urlopen(request, timeout=DEADLINE_S).close()
        command.process.send_signal(number)

        status, output = command.finish()
        assert (0, True) == (status, f"{1:032x}" in output)


def test_a_signal_leaves_what_is_not_due_for_the_next_start(path: Path) -> None:
    """It is not printed, and the log says how many traces wait on disk."""
    path.write_text(f"{CONFIGURATION}storage: {{directory: state}}\ncontent: {{mask: [email]}}\n")
    with serve("--config", path) as command:
        command.wait_for(r"storage +\S*state \(values are not masked there\)$")
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)")[1]
        request = urllib.request.Request(url, ONE, {"Content-Type": "application/x-protobuf"})
        urllib.request.urlopen(request, timeout=DEADLINE_S).close()
        command.process.send_signal(signal.SIGTERM)
        command.wait_for("stay on disk for the next start: 1$")

        status, output = command.finish()
        assert (0, False) == (status, f"{1:032x}" in output)


def test_a_hangup_reads_the_configuration_again(path: Path) -> None:
    """A right file takes effect; a wrong one changes nothing, and the log has every line of what is wrong.

    So does one that is empty, as while an editor writes it, and a pipe that was read at the start.
    """
    with serve("--config", path) as command:
        command.wait_for("TRACES_PROTOCOL")
        path.write_text(CONFIGURATION + "evaluators: {mine: {type: tool_call_trajectory}}")
        command.process.send_signal(signal.SIGHUP)
        command.wait_for("reloaded the configuration; scoring: mine$")
        path.write_text(CONFIGURATION + "evaluatorz: {}\nannotat: none")
        command.process.send_signal(signal.SIGHUP)
        command.wait_for(r"stays as it was: .*spanscore.yaml:\d+:1 evaluatorz: .*'evaluators'")
        command.wait_for(r"stays as it was: .*spanscore.yaml:\d+:1 annotat: .*'annotate'")
        path.write_text("")
        command.process.send_signal(signal.SIGHUP)
        command.wait_for(r"stays as it was: .*spanscore.yaml is empty$")
        path.unlink()
        os.mkfifo(path)
        command.process.send_signal(signal.SIGHUP)
        command.wait_for(r"stays as it was: .*spanscore.yaml is a pipe, which can be read only once$")
        command.process.send_signal(signal.SIGTERM)
        assert 0 == command.finish()[0]


def test_senders_are_told_of_their_token(path: Path) -> None:
    """The line names the header, as OpenTelemetry's SDKs read it, and the file that has the tokens; it has no token."""
    (path.parent / "tokens.txt").write_text("secret-1\n")
    path.write_text(
        CONFIGURATION.replace("    protocols:", "    auth: {bearer_token_file: tokens.txt}\n    protocols:")
    )
    with serve("--config", path) as command:
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)")[1]
        told = command.wait_for('  export OTEL_EXPORTER_OTLP_HEADERS="(.*)"  # with a token of (.*) in place of TOKEN$')
        assert (str(path.parent / "tokens.txt"), False) == (told[2], any("secret-1" in line for line in command.told))
        headers = parse_env_headers(told[1].replace("TOKEN", "secret-1"), liberal=True)
        request = urllib.request.Request(url, ONE, {"Content-Type": "application/x-protobuf", **headers})
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            assert 200 == answer.status


def test_readers_of_the_page_are_told_of_their_token(path: Path) -> None:
    """The line that follows works as it is, with a token of the file."""
    (path.parent / "tokens.txt").write_text("secret-1\n")
    exporters = 'prometheus: {endpoint: "127.0.0.1:0"}'
    path.write_text(f"{CONFIGURATION.replace('console: {}', exporters)}page: {{bearer_token_file: tokens.txt}}\n")
    with serve("--config", path) as command:
        file = command.wait_for("^Read the runs with a token of (.*) in place of TOKEN; browsers get one from a proxy")[
            1
        ]
        told = command.wait_for('^  curl -H "(.*)" (.*)$')
        assert (str(path.parent / "tokens.txt"), False) == (file, any("secret-1" in line for line in command.told))
        name, _, value = told[1].replace("TOKEN", "secret-1").partition(": ")
        with urllib.request.urlopen(urllib.request.Request(told[2], headers={name: value}), timeout=DEADLINE_S) as read:
            assert [] == json.load(read)["runs"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(told[2], timeout=DEADLINE_S)


def test_senders_are_told_of_their_certificates(path: Path) -> None:
    """Over TLS the address is one of https, and each variable that an SDK needs is named; it works with their files."""
    tls = "{cert_file: server.crt, key_file: server.key, client_ca_file: ca.crt}"
    for file in TLS.glob("*.*"):
        shutil.copy(file, path.parent)
    path.write_text(
        CONFIGURATION.replace('http: {endpoint: "127.0.0.1:0"}', f'http: {{endpoint: "127.0.0.1:0", tls: {tls}}}')
    )
    with serve("--config", path) as command:
        url = command.wait_for(r"TRACES_ENDPOINT=(https://\S+)")[1]
        command.wait_for(r"  export OTEL_EXPORTER_OTLP_CERTIFICATE=CA.pem  # the authority of .*/server.crt, if agents")
        command.wait_for(
            r"  export OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=CLIENT.pem OTEL_EXPORTER_OTLP_CLIENT_KEY=CLIENT.key"
            r"  # that .*/ca.crt has signed$"
        )
        trusting = ssl.create_default_context(cafile=str(TLS / "ca.crt"))
        trusting.load_cert_chain(TLS / "client.crt", TLS / "client.key")
        request = urllib.request.Request(url, ONE, {"Content-Type": "application/x-protobuf"})
        with urllib.request.urlopen(request, timeout=DEADLINE_S, context=trusting) as answer:
            assert 200 == answer.status


@pytest.mark.processes
def test_a_port_in_use_is_an_error(path: Path) -> None:
    """The service does not start, and names the address and the key."""
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        path.write_text(CONFIGURATION.replace("127.0.0.1:0", f"127.0.0.1:{port}", 1))
        with serve("--config", path, launcher=("env",)) as command:  # gRPC chose how much it logs at its import
            status, output = command.finish()

    key = "receivers.otlp.protocols.grpc.endpoint"
    expected = f"{key}: cannot listen on 127.0.0.1:{port}: address already in use\n"
    assert (1, "", expected) == (status, output, "".join(command.told))


def test_a_wrong_configuration_is_an_error(path: Path) -> None:
    """It does not start, and exits with the status of a wrong configuration."""
    path.write_text("receivers: {otlp: {protocols: {grpc: {endpoint: 0.0.0.0}}}}")
    with serve("--config", path) as command:
        assert 2 == command.finish()[0]
    assert "must be host:port" in command.told[0]


def test_a_decoder_that_does_not_exist_is_an_error(path: Path) -> None:
    """It is found out before anything is listened on."""
    with serve("--config", path, SPANSCORE_DECODER="rust") as command:
        assert 2 == command.finish()[0]
    assert ["SPANSCORE_DECODER must be fast or python, not 'rust'\n"] == command.told
