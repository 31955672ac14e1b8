"""Every command of README and documentation is run as it stands, by this file or by one that is named here."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

import test_comparing
import test_documented_runs
import test_say_what
from cli import test_agree, test_watch
from cli.recorded_runs import recorded
from commands import in_group
from deadline import DEADLINE_S
from integration import test_install
from runs import test_golden_recipe
from spanscore.receivers.sockets.bearer import BearerTokens
from tables import test_history_page

ROOT = Path(__file__).parents[1]
# The tutorial needs an agent framework: tests/integration/test_tutorial.py runs it.
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "tutorial.md")]

IN_CI = re.findall(r"^ *(scripts/.*)", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
RUN_ELSEWHERE = {
    **dict.fromkeys(("scripts/test", "scripts/release"), IN_CI),
    "python3 -m venv .venv && .venv/bin/pip install .": [test_install.PRINTED],
    "spanscore score tests/corpus/google-adk-oi.jsonl.gz --format json > golden.jsonl": test_golden_recipe.COMMANDS,
    "spanscore record -o runs.jsonl -- python -m spanscore.cli.demo_agent.agent": test_say_what.COMMANDS,
    "spanscore score runs.jsonl --config spanscore.yaml --key gen_ai.agent.name": test_say_what.COMMANDS,
    "spanscore score runs.jsonl --config spanscore.yaml --junit junit.xml": test_say_what.COMMANDS,
    "spanscore golden runs.jsonl -o golden.jsonl": test_say_what.COMMANDS,
    "spanscore diff base.jsonl new.jsonl --config spanscore.yaml": test_comparing.COMMANDS,
    "spanscore agree runs.jsonl --labels labels.csv": test_agree.COMMANDS,
    "spanscore watch runs.jsonl --config spanscore.yaml --suggest": test_watch.COMMANDS,
    **dict.fromkeys(test_documented_runs.COMMANDS, test_documented_runs.COMMANDS),
    **dict.fromkeys(test_history_page.COMMANDS, test_history_page.COMMANDS),
    "gunzip -c tests/corpus/google-adk-oi.jsonl.gz": test_golden_recipe.COMMANDS,
}
"""What blocks begin with that others run, and what these run."""

AGENT = """
from opentelemetry import trace

tracer = trace.get_tracer("agent")
with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
    pass
"""
"""What documentation calls agent.py: a program of the reader's own."""


def commands(page: Path) -> list[str]:
    """Return the blocks of commands on a page."""
    return [text.strip() for text in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)]


BLOCKS = [
    pytest.param(text, id=f"{page.relative_to(ROOT).with_suffix('')}-{number}")
    for page in PAGES
    for number, text in enumerate(commands(page))
    if not text.startswith(tuple(RUN_ELSEWHERE))
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a directory that has what a checkout has, and takes what commands write."""
    for name in ("config", "deploy", "scripts", "tests", ".venv"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").unlink()
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "spanscore.yaml").write_text("evaluators: {health: {type: tool_call_trajectory}}\n")
    return tmp_path


def started(script: str, directory: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """Have a shell run commands."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    state = {"XDG_STATE_HOME": str(directory / "state"), "OTEL_BSP_SCHEDULE_DELAY": "1"}
    waiting = "trap : TERM"  # a shell that is told to end waits for its command, and ends as that does
    return in_group(["sh", "-ec", f"{waiting}\n{script}"], directory, {**os.environ, "PATH": path, **state})


@contextmanager
def default_ports() -> Iterator[None]:
    """Have the ports that documentation names to ourselves, as far as other runs of these tests go."""
    with (Path(tempfile.gettempdir()) / "spanscore-default-ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for port in (4317, 4318, 9464):
            with socket.socket() as asked:
                asked.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    asked.bind(("127.0.0.1", port))
                except OSError:
                    pytest.skip(f"port {port} of this machine is taken by another program: end that to run this test")
        yield


@contextmanager
def served(script: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a receiver until it is told to end, and see that it is ready, and that it ends well."""
    with started(script, directory) as process:
        assert process.stderr is not None
        assert any("is ready" in line for line in process.stderr)
        yield process
        os.killpg(process.pid, signal.SIGTERM)
        complained = process.communicate(timeout=DEADLINE_S)[1]
        assert 0 == process.returncode, complained


def finished(script: str, directory: Path) -> tuple[int, str, str]:
    """Run commands to their end; return the status and what they wrote."""
    with started(script, directory) as process:
        told, complained = process.communicate(timeout=DEADLINE_S)
        return process.returncode, told, complained


def _serves(script: str, directory: Path) -> None:
    with default_ports(), served(script, directory):
        pass


def _sends(script: str, directory: Path) -> None:
    with default_ports(), served("spanscore serve", directory):
        status, told, complained = finished(script, directory)
    assert (0, "") == (status, complained)
    assert told.startswith("sent ")


def _points_an_agent_there(script: str, directory: Path) -> None:
    with default_ports(), served("spanscore serve", directory) as receiver:
        agent = "OTEL_TRACES_EXPORTER=otlp OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none opentelemetry-instrument"
        assert (0, "", "") == finished(f"{script}\n{agent} python agent.py", directory)
        assert receiver.stdout is not None
        assert "health=1" in receiver.stdout.readline()


def _points_an_agent_there_with_its_own_exporters(script: str, directory: Path) -> None:
    """Any program that goes by the standard variables stands for the one that the text is about."""
    with default_ports(), served("spanscore serve", directory) as receiver:
        agent = "OTEL_METRICS_EXPORTER=none opentelemetry-instrument python agent.py"
        assert (0, "", "") == finished(f"{script}\n{agent}", directory)
        assert receiver.stdout is not None
        assert "health=1" in receiver.stdout.readline()


def _names_a_receiver(script: str, directory: Path) -> None:
    """The variables are another program's own; what they lead to is there."""
    sent = "spanscore send tests/corpus/strands.jsonl.gz --protocol $GEMINI_TELEMETRY_OTLP_PROTOCOL"
    with default_ports(), served("spanscore serve", directory):
        status, told, _ = finished(f"{script}\n{sent} --endpoint $GEMINI_TELEMETRY_OTLP_ENDPOINT", directory)
        assert (0, "sent") == (status, told[:4])


def _sends_a_token(script: str, directory: Path) -> None:
    """The receiver demands the token of the text, and scores nothing without it."""
    (directory / "tokens").write_text("TOKEN\n")
    (directory / "tokens").chmod(0o600)
    (directory / "spanscore.yaml").write_text("receivers: {otlp: {auth: {bearer_token_file: tokens}}}\n")
    there = "export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"
    agent = "OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none opentelemetry-instrument python agent.py"
    with default_ports(), served("spanscore serve --config spanscore.yaml", directory) as receiver:
        assert "401" in finished(f"{there}\n{agent}", directory)[2]
        assert (0, "", "") == finished(f"{there}\n{script}\n{agent}", directory)
        assert receiver.stdout is not None
        assert receiver.stdout.readline()


def _asks_for_runs(script: str, directory: Path) -> None:
    """The answer is that of a receiver that has just started."""
    with default_ports(), served("spanscore serve", directory):
        assert [0, []] == [json.loads(finished(script, directory)[1])[key] for key in ("held", "runs")]


def _scores(script: str, directory: Path) -> None:
    status, told, complained = finished(script, directory)
    assert (1, "") == (status, complained)
    assert "failing" in told.splitlines()[-1]


def _scores_cases(script: str, directory: Path) -> None:
    """The reader's own recording has a test case that the text names."""
    recorded(directory / "runs.jsonl", ("case-1", "lookup_order"), ("case-2", "lookup_order"))
    status, told, complained = finished(script, directory)
    assert (0, "") == (status, complained)
    assert "case-2" in told


def _runs_an_agent(script: str, directory: Path) -> None:
    quiet = "export OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=console\n"
    # The receiver that `otlp` sends to is the reader's own: here spans are printed in its place.
    status, told, complained = finished(quiet + script.replace("spanscore,otlp", "spanscore,console"), directory)
    assert (0, "") == (status, complained)
    if "instrument" in script:
        assert "gen_ai.evaluation.result" in told


def _records(script: str, directory: Path) -> None:
    status, told, complained = finished(script, directory)
    masks = script.count("--mask")  # of an agent without a call, which have no key
    assert (1 if masks else 0, "") == (status, told), complained
    part = ".part" if masks else ""
    assert f"runs.jsonl{part}: 1 trace with 0 tool calls" in complained.splitlines()
    assert masks == complained.count("no run has")


def _explains(script: str, directory: Path) -> None:
    status, told, complained = finished(script, directory)
    assert (0, "") == (status, complained)
    assert ("what evaluators lacked" if "--summary" in script else "call 1: get_weather(") in told


def _makes_tokens(script: str, directory: Path) -> None:
    assert (0, "", "") == finished(script, directory)
    file = directory / "page-tokens.txt"
    token = file.read_text(encoding="utf-8").strip()
    assert (0o600, 64) == (file.stat().st_mode & 0o777, len(token))
    assert BearerTokens(file).accept([f"Bearer {token}"])


def _learns(script: str, directory: Path) -> None:
    status, told, complained = finished(script, directory)
    assert (0, "") == (status, complained)
    assert "expected false alarms: " in told
    assert "  # 1 of 1 runs" in (directory / "learned.yaml").read_text(encoding="utf-8")


def _demonstrates(script: str, directory: Path) -> None:
    status, told, complained = finished(f"cd {ROOT} && {script}", directory)
    assert 0 == status, complained
    assert "12 runs, 38 tool calls, 5 failing runs, 1 conversation, 1 failing conversation" in " ".join(told.split())


RUNS = (
    ("scripts/demo", _demonstrates),
    ("spanscore serve", _serves),
    ("spanscore send", _sends),
    ("spanscore record", _records),
    ("spanscore explain", _explains),
    ("spanscore learn", _learns),
    ("(umask 077", _makes_tokens),
    ("export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", _points_an_agent_there),
    ("export OTEL_EXPORTER_OTLP_HEADERS", _sends_a_token),
    ("curl", _asks_for_runs),
    ("export CLAUDE_CODE_ENABLE_TELEMETRY", _points_an_agent_there_with_its_own_exporters),
    ("export GEMINI_TELEMETRY_ENABLED", _names_a_receiver),
    ("export OTEL_TRACES_EXPORTER", _runs_an_agent),
    ("OTEL_RESOURCE_ATTRIBUTES", _runs_an_agent),
    ("spanscore score runs.jsonl", _scores_cases),
    ("spanscore score", _scores),
)
"""How blocks that begin so are run, and what is seen of them."""


@pytest.mark.processes
@pytest.mark.parametrize("script", BLOCKS)
def test_every_command_does_what_the_text_says(script: str, checkout: Path) -> None:
    """Each block is run as it stands, in a directory that looks like a checkout."""
    run = next(run for beginning, run in RUNS if script.startswith(beginning))
    run(script, checkout)


def test_every_command_is_run() -> None:
    """A block of a new kind is added to RUNS, or its other test to RUN_ELSEWHERE."""
    blocks = [text for page in PAGES for text in commands(page)]
    known = (*RUN_ELSEWHERE, *(beginning for beginning, _ in RUNS))
    assert [] == [text for text in blocks if not text.startswith(known)]


@pytest.mark.parametrize("beginning", RUN_ELSEWHERE)
def test_the_others_are_run_by_another_test(beginning: str) -> None:
    """What is left out here is on a page, and among what is run for it elsewhere."""
    assert [True] == [text.startswith(beginning) for page in PAGES for text in commands(page) if beginning in text]
    assert {True} == {text.startswith(beginning) for text in RUN_ELSEWHERE[beginning] if beginning in text}
