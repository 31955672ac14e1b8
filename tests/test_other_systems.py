"""Agents are written on Windows, too: what is for agents works without the parts of Python that Windows lacks.

mypy checks the names of Windows and of macOS (`.ci/run`); here they are absent.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from commands import python
from deadline import DEADLINE_S
from lacking import LACKING

COMMAND = f"{LACKING}\nimport sys\nfrom spanscore.cli import main\nsys.exit(main())"
EVERY_MODULE = """
import importlib, pkgutil, spanscore
for module in pkgutil.walk_packages(spanscore.__path__, "spanscore."):
    if module.name != "spanscore.__main__":
        importlib.import_module(module.name)
print(module.name)
"""
RUNS = (("one", "look_up", "pay"), ("two", "look_up", "pay"))
SPANS = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from spanscore import ScoringSpanProcessor

provider = TracerProvider()
provider.add_span_processor(ScoringSpanProcessor.from_config("spanscore.yaml"))
tracer = provider.get_tracer("agent")
with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent"}):
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with tracer.start_as_current_span("execute_tool search", attributes=told):
        pass
provider.shutdown()
"""
GOLDEN = """
from opentelemetry import trace
from spanscore import assert_trajectory

def test_agent(spanscore_run):
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with trace.get_tracer("agent").start_as_current_span("execute_tool search", attributes=told):
        pass
    assert_trajectory(spanscore_run)
"""
EXPORTING = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
with provider.get_tracer("agent").start_as_current_span("execute_tool search", attributes=told):
    pass
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return python("-c", COMMAND, *arguments)


@pytest.mark.processes
def test_every_module_can_be_imported() -> None:
    """A name that is missing is missed when it is used, not before."""
    assert "spanscore.watched_files\n" == python("-c", LACKING + EVERY_MODULE).stdout


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("score runs.jsonl", "2 runs, 4 tool calls"),
        ("explain runs.jsonl", "call 1: look_up("),
        ("learn runs.jsonl -o learned.yaml", "learned.yaml"),
        ("golden runs.jsonl -o golden.jsonl", "golden.jsonl"),
        ("diff runs.jsonl runs.jsonl", "not worse: nothing that was scored fell"),
    ],
)
def test_recordings(command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that read files."""
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "runs.jsonl", *RUNS)

    ended = run(*command.split())

    assert (0, True) == (ended.returncode, said in ended.stdout + ended.stderr), ended


def test_in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The span processor of an agent, with a file of scores."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spanscore.yaml").write_text("exporters: {jsonl: {path: scores.jsonl}}\n")

    ended = python("-c", LACKING + SPANS)

    assert '"name":"search"' in (tmp_path / "scores.jsonl").read_text(), ended


@pytest.mark.processes
def test_the_plug_in_of_pytest(tmp_path: Path) -> None:
    """A golden file is written under its lock, and compared with."""
    (tmp_path / "test_agent.py").write_text(GOLDEN)
    code = f"{LACKING}\nimport pytest\nsys.exit(pytest.main(['-pno:cacheprovider', '-pspanscore', *sys.argv[1:]]))"

    written = python("-c", code, tmp_path, "--spanscore-update", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    compared = python("-c", code, tmp_path, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")

    assert (0, 0) == (written.returncode, compared.returncode), written.stdout + compared.stdout
    assert '"search"' in (tmp_path / "test_agent.golden.jsonl").read_text()


@pytest.mark.processes
def test_record(tmp_path: Path) -> None:
    """It runs a program; meanwhile no other process can write to the file."""
    file = tmp_path / "run.jsonl"
    second = f"import sys; from spanscore.recordings.writer import RecordingWriter; RecordingWriter({str(file)!r})"
    while_recording = f"import subprocess\nother = subprocess.run([sys.executable, '-c', {LACKING + second!r}])"

    ended = run("record", "-o", file, "--", sys.executable, "-c", f"import sys\n{while_recording}\n{EXPORTING}")

    assert 0 == ended.returncode, ended
    assert "another process is recording to it" in ended.stderr
    assert "1 trace with 1 tool call" in ended.stderr


@pytest.mark.processes
def test_demo() -> None:
    """An agent, a receiver and its pages."""
    ended = run("demo")

    assert "12 runs, 38 tool calls" in ended.stdout, ended


@pytest.mark.processes
def test_serve(tmp_path: Path) -> None:
    """It keeps nothing on disk, and ends at Ctrl-C."""
    ports = "protocols: {grpc: {endpoint: 'localhost:0'}, http: {endpoint: 'localhost:0'}}"
    config = tmp_path / "spanscore.yaml"
    config.write_text(f"receivers: {{otlp: {{{ports}}}}}\nexporters: {{console: {{}}}}\n")
    command = [sys.executable, "-c", COMMAND, "serve", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        told = [next(line for line in process.stderr if "4317" in line or "localhost:" in line)]
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=DEADLINE_S)[1]

    assert (0, True) == (process.returncode, "ended" in rest), (told, rest)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("storage: {durability: crash, directory: state}", "set storage.durability to none"),
        ("evaluators: {a: {type: tool_call_trajectory, time_limit: 1s}}", "there are no time limits on this system"),
    ],
)
def test_what_cannot_be_had_is_refused_in_words(asked: str, told: str, tmp_path: Path) -> None:
    """Where a configuration asks for it."""
    config = tmp_path / "spanscore.yaml"
    config.write_text(f"{asked}\n")

    ended = run("serve", "--config", config)

    assert (True, True) == (ended.returncode != 0, told in ended.stderr), ended
