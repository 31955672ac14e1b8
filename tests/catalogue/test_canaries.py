"""Nothing that was received or is secret comes out of the commands where it should not, whatever goes wrong."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from commands import serve, spanscore
from otlp_capture import FORBIDDEN, UNAVAILABLE, Capture, capturing
from receivers.otlp_requests import request_of, simple_span, texts, to_json
from receivers.receiving import JSON, PROTOBUF
from serving import DEADLINE_S, eventually
from spanscore import config
from spanscore.cli import main

CANARY = "canary-9b2d"
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

CONFIGURATION = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:0"}}
      http: {{endpoint: "127.0.0.1:0"}}
    auth: {{bearer_token_file: tokens.txt}}
traces: {{decision_delay: 0s}}
evaluators:
  health: {{type: tool_call_trajectory, max_failed: 0}}
  schema: {{type: tool_arguments_schema, schemas: {{search: {{properties: {{city: {{enum: [Paris]}}}}}}}}}}
  expected: {{type: trajectory_match, expected_from: {{attribute: expected}}}}
exporters:
  otlp: {{endpoint: "{upstream}", headers: {{x-api-key: "${{env:UPSTREAM_KEY}}", x-inline: {canary}}}}}
  prometheus: {{endpoint: "127.0.0.1:0"}}
  console: {{}}
telemetry: {{log_level: debug}}
"""


def spans(number: int, expected: str) -> list[Span]:
    """Return a trace in which every value is a canary, but no name."""
    root = simple_span(number, 1, name="run", attributes=texts({"expected": expected, "user": CANARY}))
    tool = simple_span(
        number,
        2,
        name="execute_tool search",
        parent_span_id=root.span_id,
        attributes=texts(
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "search",
                "gen_ai.tool.call.arguments": json.dumps({"city": CANARY}),
                "gen_ai.tool.call.result": CANARY,
                "gen_ai.tool.call.id": CANARY,
                "gen_ai.input.messages": CANARY,
            }
        ),
        events=[
            Span.Event(
                name="exception",
                attributes=texts({"exception.type": "ValueError", "exception.message": f"no {CANARY}"}),
            )
        ],
        trace_state=f"a={CANARY}",
    )
    return [tool, root]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a configuration whose secrets are canaries, and that sends on to a receiver which does not want it."""
    (tmp_path / "tokens.txt").write_text(f"token-{CANARY}\n")
    monkeypatch.setenv("UPSTREAM_KEY", f"key-{CANARY}")
    with capturing("http/protobuf", Capture()) as upstream:
        upstream.replies.extend([FORBIDDEN, UNAVAILABLE] * 5)
        path = tmp_path / "spanscore.yaml"
        path.write_text(CONFIGURATION.format(upstream=upstream.endpoint, canary=f"inline-{CANARY}"))
        yield path


def post(url: str, body: bytes, **headers: str) -> int:
    """Send a request with a right token, and return the status."""
    known = {"Content-Type": PROTOBUF, "Authorization": f"Bearer token-{CANARY}", "X-Note": CANARY}
    request = urllib.request.Request(
        url, body, known | {name.replace("_", "-"): text for name, text in headers.items()}
    )
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def provoke(url: str, target: str) -> None:
    """Send good and bad requests, over HTTP and gRPC."""
    expectations = [
        json.dumps([{"name": "search", "arguments": {"city": f"not {CANARY}"}}]),
        f'[{{"name": ["{CANARY}"]}}]',
        CANARY,
    ]
    for number, expected in enumerate(expectations, 1):
        request = request_of(*spans(number, expected))
        assert 200 == post(url, request.SerializeToString())
        assert 200 == post(url, gzip.compress(to_json(request)), Content_Encoding="gzip", Content_Type=JSON)
    bad_ids = request_of(*spans(0, CANARY)).SerializeToString()
    statuses = [
        post(url, bad_ids),
        post(url, b"\xff" + CANARY.encode()),
        post(url, b'{"' + CANARY.encode(), Content_Type=JSON),
        post(url, b'{"resourceSpans": "' + CANARY.encode() + b'"}', Content_Type=JSON),
        post(url, CANARY.encode(), Content_Encoding="gzip"),
        post(url, b"", Content_Encoding=CANARY),
        post(url, b"", Content_Type=CANARY),
        post(url, b"", Authorization=f"Bearer {CANARY}"),
        post(f"{url}/{CANARY}?{CANARY}", b""),
        post(url, b"", Expect=CANARY),
    ]
    assert [400, 400, 400, 400, 400, 415, 415, 401, 404, 417] == statuses
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{CANARY} \0 nonsense\r\n\r\n".encode())
        assert b"400" in connection.recv(1000)
    with grpc.insecure_channel(target) as channel:
        for body in (bad_ids, CANARY.encode(), request_of(*spans(9, CANARY)).SerializeToString()):
            for token in (f"token-{CANARY}", CANARY):
                with contextlib.suppress(grpc.RpcError):
                    metadata = (("authorization", f"Bearer {token}"), ("x-note", CANARY))
                    channel.unary_unary(EXPORT)(body, timeout=DEADLINE_S, metadata=metadata)


def page(url: str) -> str:
    """Return a page."""
    try:
        with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()


def test_a_receiver_that_everything_goes_wrong_with(path: Path) -> None:
    """At log level debug, no attribute, header, token or secret is in its output, its log or its pages."""
    with serve("--config", str(path)) as command:
        grpc_url = command.wait_for(r"gRPC +http://(\S+)")[1]
        metrics = command.wait_for(r"metrics +(http://\S+)/metrics")[1]
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)")[1]
        command.wait_for("TRACES_PROTOCOL")
        provoke(url, grpc_url)
        pages = [page(f"{metrics}/{name}") for name in ("metrics", "livez", "readyz", CANARY, "")]
        eventually(lambda: '"held":4' in page(f"{metrics}/runs.json"))
        runs = page(f"{metrics}/runs.json")
        path.write_text(path.read_text() + "'${env:UPSTREAM_KEY}': 1\nannotate: '${env:UPSTREAM_KEY}'\n")
        command.process.send_signal(signal.SIGHUP)
        command.wait_for("stays as it was: .*annotate")
        command.process.send_signal(signal.SIGTERM)
        status, output = command.finish()

    assert 0 == status
    assert "spanscore_spans_received" in pages[0]
    assert 4 == len(re.findall(r"^\S+ ✗ ", output, re.MULTILINE))
    assert f'"call_id":"{CANARY}"' in runs  # ids and names are no content
    for told in (*command.told, output, *pages, runs.replace(f'"call_id":"{CANARY}"', "")):
        assert CANARY not in told


WRONG = """
exporters: {otlp: {endpoint: 'KEY', headers: [INLINE], protocol: 'KEY'}}
traces: {num_traces: 'KEY', unit: 'KEY', trace_timeout: 'KEY'}
evaluators:
  a: {type: 'KEY'}
  b: {type: tool_call_count, tool_calls_count: 'KEY'}
receivers: {otlp: {auth: {bearer_token_file: tokens.txt, token: 'KEY'}}}
"""


def test_a_configuration_in_which_everything_is_wrong(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What `check` says of the wrong values shows no secret and nothing from the environment."""
    path.write_text(WRONG.replace("KEY", "${env:UPSTREAM_KEY}").replace("INLINE", f"inline-{CANARY}"))
    assert 2 == main(["check", str(path)])
    told = capsys.readouterr()
    assert len(told.err.splitlines()) > 7
    assert CANARY not in told.out + told.err


def test_recordings_that_cannot_be_read(path: Path, tmp_path: Path) -> None:
    """What `score` says of good and bad recordings, but for its reports, quotes nothing of them."""
    good = to_json(request_of(*spans(1, CANARY)))
    for name, content in {
        "good.json": good,
        "cut.json": good[:-20],
        "none.json": CANARY.encode(),
        "bad.pb": b"\xff" + CANARY.encode(),
        "bad.json.gz": b"\x1f\x8b" + CANARY.encode(),
        "ids.json": to_json(request_of(*spans(0, CANARY))),
    }.items():
        (tmp_path / name).write_bytes(content)
    recordings = sorted(each for each in tmp_path.iterdir() if each.suffix not in {".yaml", ".txt"})
    told = spanscore("score", *recordings, "--config", path)
    assert 1 == told.returncode
    assert CANARY not in told.stderr


@pytest.mark.parametrize("arguments", [("demo", "--help"), ("describe", "trajectory_match"), ("schema",), ("list",)])
def test_commands_that_only_tell(path: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """The environment is not shown by what only explains."""
    with pytest.raises(SystemExit) if "--help" in arguments else contextlib.nullcontext():
        assert 0 == main(list(arguments))
    told = capsys.readouterr()
    assert (True, False) == (bool(told.out), CANARY in told.out + told.err)


def test_a_configuration_shown(path: Path) -> None:
    """A loaded configuration, and all that is in it, can be printed without its secrets."""
    loaded = config.load(path).for_serve()
    for shown in (repr(loaded), str(loaded), repr(loaded.exporters), str(loaded.exporters)):
        assert CANARY not in shown
