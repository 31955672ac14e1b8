from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import spanscore
from spanscore.cli import main

CONFIGURATION = """\
receivers:
  otlp:
    auth: {bearer_token_file: tokens.txt}
exporters:
  otlp: {headers: {x-api-key: abc}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a configuration with a secret in it, that everybody can read."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(CONFIGURATION)
    path.chmod(0o644)
    return path


def test_files_that_serving_needs_are_checked(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of tokens that is not there is a mistake, told with its place."""
    assert 2 == main(["check", str(path)])
    told = capsys.readouterr().err
    assert told.startswith(
        f"{path}:3:31 receivers.otlp.auth.bearer_token_file: {path.parent}/tokens.txt: cannot be read"
    )


def test_secrets_that_everybody_can_read_are_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are no mistake, but worth a warning."""
    (path.parent / "tokens.txt").write_text("abc")
    (path.parent / "tokens.txt").chmod(0o600)
    assert 0 == main(["check", str(path)])
    told = capsys.readouterr()
    assert f"{path}: valid, 1 evaluator: health (tool_call_trajectory), exporters: otlp\n" == told.out
    assert told.err.startswith(f"warning: {path} holds exporters.otlp.headers.x-api-key, and can be read by every user")


def test_what_serve_refuses_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the words of `spanscore serve`: other machines could read runs without a token, and send without TLS."""
    path = tmp_path / "open.yaml"
    path.write_text(
        "receivers: {otlp: {protocols: {grpc: {endpoint: '0.0.0.0:0'}}}}\n"
        "exporters: {prometheus: {endpoint: '0.0.0.0:0'}}\npage: {runs: 5}\n"
    )
    assert 0 == main(["check", str(path)])
    told = capsys.readouterr()
    warnings = told.err.splitlines()
    refused = spanscore("serve", "--config", path)
    assert 2 == refused.returncode
    assert warnings[0].removeprefix("warning: `spanscore serve` does not start: ") in refused.stderr

    assert told.out.startswith(f"{path}: valid, ")
    assert ["receivers.otlp.protocols.grpc.endpoint", "page"] == [line.split(": ")[2] for line in warnings]


def test_a_target_that_is_our_own_receiver_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the words of `spanscore serve`. Another machine, whose name is not looked up, can be the target."""
    path, loop = tmp_path / "loop.yaml", "exporters.otlp.endpoint: spanscore itself listens on "
    for protocol, endpoint, target, is_ours in (
        ("http", "localhost", "localhost:4318", True),
        ("http", "localhost", "collector.invalid:4318", False),
        ("http", "localhost", "localhost:4319", False),
        ("http", "0.0.0.0", "localhost:4318", True),
        ("http", "0.0.0.0", "127.0.0.1:4318", True),
        ("http", "0.0.0.0", "[::1]:4318", False),
        ("http", "[::]", "127.0.0.1:4318", False),
        ("grpc", "[::]", "127.0.0.1:4318", True),
        ("http", "127.0.0.1", "0.0.0.0:4318", True),
        ("http", "0.0.0.0", "192.0.2.1:4318", False),
    ):
        receivers = f"{{otlp: {{protocols: {{{protocol}: {{endpoint: '{endpoint}:4318'}}}}}}}}"
        path.write_text(f"receivers: {receivers}\nexporters: {{otlp: {{endpoint: 'http://{target}'}}}}")
        assert 0 == main(["check", str(path)])
        assert is_ours == (loop in capsys.readouterr().err), (protocol, endpoint, target)


def test_no_name_but_localhost_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even that of this machine, which may take long."""
    asked: list[Any] = []
    look_up = socket.getaddrinfo

    def noted(host: Any, *more: Any, **by: Any) -> Any:
        asked.append(host)
        return look_up(host, *more, **by)

    monkeypatch.setattr(socket, "getaddrinfo", noted)
    path = tmp_path / "own.yaml"
    path.write_text(f"exporters: {{otlp: {{endpoint: 'http://{socket.gethostname()}:4318'}}}}")

    assert 0 == main(["check", str(path)])
    assert {"localhost"} == set(asked)


def test_a_missing_package_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the receiver that needs it: an image may be built without."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    path = tmp_path / "kafka.yaml"
    path.write_text("receivers: {kafka: {brokers: ['broker:9092'], topic: spans, group_id: g}}")

    assert 0 == main(["check", str(path)])
    assert "does not start: Kafka needs confluent-kafka" in capsys.readouterr().err


def test_of_many_evaluators_the_first_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line stays readable, and moves no cursor."""
    path = tmp_path / "many.yaml"
    path.write_text("evaluators:\n" + "".join(f'  "a\\e{n}": {{type: tool_call_trajectory}}\n' for n in range(10)))
    assert 0 == main(["check", str(path)])
    told = capsys.readouterr().out
    assert told.startswith(f"{path}: valid, 10 evaluators: a\ufffd0 (tool_call_trajectory), ")
    assert told.endswith("a\ufffd7 (tool_call_trajectory) and 2 more\n")


def test_monitors_keep_and_exporters_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Behind the evaluators: a section that is missing is seen before the start."""
    path = tmp_path / "watching.yaml"
    one = "{of: {verdict: fail}, at_most: 5%, one_false_alarm_per: 30d}"
    path.write_text(
        f"monitors: {{quick: {one}, slow: {one}}}\n"
        "keep: {rules: [{name: all}]}\nexporters: {console: {}, otlp: {}}\n"
    )
    assert 0 == main(["check", str(path)])
    told = capsys.readouterr().out
    assert told.endswith(", 2 monitors: quick, slow, keep: observe, exporters: console, otlp\n")


def test_every_mistake_of_steps_has_a_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with its place in the file."""
    path.write_text(
        "evaluators:\n  s:\n    type: expected_trajectory\n    steps:\n    - {call: a, arg: 1}\n    - {cal: b}\n"
    )
    assert 2 == main(["check", str(path)])

    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"{path}:5:7 evaluators.s.steps[0]: unknown key 'arg' beside 'call'")
    assert second.startswith(f"{path}:6:7 evaluators.s.steps[1]: must have exactly one of the keys")
