from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import spanscore as package
from commands import SPANSCORE, python, spanscore
from deadline import DEADLINE_S
from fuzzing.foreign import good_line

AGENT = """
import logging, os, sys
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry._logs import LogRecord
if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
spans, logs = TracerProvider(), LoggerProvider()
spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
tracer = spans.get_tracer("agent")
with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
    with tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
        asked = {"type": "tool_call", "id": "1", "name": "fetch", "arguments": {"url": "x"}}
        logs.get_logger("agent").emit(LogRecord(
            event_name="gen_ai.client.inference.operation.details",
            attributes={"gen_ai.output.messages": [{"role": "assistant", "parts": [asked]}]},
        ))
spans.shutdown()
logs.shutdown()
sys.exit(int(sys.argv[1]))
"""


def record(file: Path, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Record a program of Python's."""
    return spanscore("record", "-o", file, "--", sys.executable, *command, **environment)


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.pb.gz"])
def test_the_demo_agent(name: str, tmp_path: Path) -> None:
    """All runs of an agent that exports with the SDK are in the file, which every command reads."""
    ended = record(tmp_path / name, "-m", "spanscore.cli.demo_agent.agent")

    assert (0, "") == (ended.returncode, ended.stdout)
    assert ended.stderr.splitlines() == [
        f"Recording to {tmp_path / name}. Until the end, spans and logs are written to {tmp_path / name}.part.",
        f"{tmp_path / name}: 8 traces with 27 tool calls",
    ]
    assert "8 trajectories, 27 tool calls" in spanscore("score", tmp_path / name).stdout


@pytest.mark.parametrize("status", [0, 3])
def test_logs_and_the_status(status: int, tmp_path: Path) -> None:
    """Content in logs is recorded too, whatever the environment said before, and the program's status is ours."""
    elsewhere = {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://localhost:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    ended = record(tmp_path / "runs.jsonl", "-c", AGENT, status, **elsewhere)

    assert (status, f"{tmp_path / 'runs.jsonl'}: 1 trace with 1 tool call") == (
        ended.returncode,
        ended.stderr.splitlines()[-1],
    )
    (trajectory,) = package.read(tmp_path / "runs.jsonl")
    assert [{"url": "x"}] == [call.arguments for call in trajectory.calls]


def test_appended_to(tmp_path: Path) -> None:
    """The runs of two programs."""
    for _ in range(2):
        spanscore("record", "-o", tmp_path / "runs.jsonl", "--append", "--", sys.executable, "-c", AGENT, "0")

    assert 2 == len(package.read(tmp_path / "runs.jsonl"))


@pytest.mark.parametrize(
    ("environment", "hint"),
    [
        ({}, "opentelemetry-instrument"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "OTEL_TRACES_EXPORTER is 'console'"),
        ({"OTEL_SDK_DISABLED": "true"}, "OTEL_SDK_DISABLED is true"),
    ],
)
def test_nothing_came(environment: dict[str, str], hint: str, tmp_path: Path) -> None:
    """A program that sends nothing is no success, leaves no empty file, and costs no earlier recording."""
    (tmp_path / "old.jsonl").write_text("old")
    for name in ("new.jsonl", "old.jsonl"):
        ended = record(tmp_path / name, "-c", "pass", **environment)
        assert (1, True) == (ended.returncode, "no spans or logs were received" in ended.stderr)
        assert hint in ended.stderr
    assert [tmp_path / "old.jsonl"] == list(tmp_path.iterdir())
    assert "old" == (tmp_path / "old.jsonl").read_text()


def test_other_services_are_recorded_too(tmp_path: Path) -> None:
    """And told apart."""
    ended = record(tmp_path / "runs.jsonl", "-c", AGENT.replace("gen_ai.", "http."), "0")

    assert "0 traces with 0 tool calls\nand 1 trace without a span of a known instrumentation" in ended.stderr


def test_no_such_program(tmp_path: Path) -> None:
    """As a shell has it."""
    ended = spanscore("record", "-o", tmp_path / "runs.jsonl", "--", "no-such-program")

    assert (127, "cannot run 'no-such-program': No such file or directory") == (
        ended.returncode,
        ended.stderr.splitlines()[-1],
    )


def test_a_program_that_a_signal_ends(tmp_path: Path) -> None:
    """Its status is what a shell makes of it."""
    assert 128 + signal.SIGKILL == record(tmp_path / "a.jsonl", "-c", "import os; os.kill(os.getpid(), 9)").returncode


def test_wrong_use(tmp_path: Path) -> None:
    """Without a file, or with one of no known kind."""
    for arguments, told in (((), "-o/--output"), (("-o", tmp_path / "runs.csv"), "its name must end in .json, .jsonl")):
        ended = spanscore("record", *arguments)
        assert (2, True) == (ended.returncode, told in ended.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_until_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    """Without a command it says where to send, and records until it is told to end."""
    command = [*SPANSCORE, "record", "-o", str(tmp_path / "runs.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(3)]
            endpoint = lines[1].split("=")[1].split()[0]
            subprocess.run(
                [sys.executable, "-m", "spanscore.cli.demo_agent.agent"],
                env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint},
                check=True,
                timeout=DEADLINE_S,
            )
            process.send_signal(number)
            _, told = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()

    assert (0, True) == (process.returncode, "8 traces with 27 tool calls" in told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk(tmp_path: Path) -> None:
    """A full disk is reported at once, and only once, and the exit status is 1."""
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    ended = record(
        tmp_path / "full.jsonl", "-c", f"{AGENT.replace('sys.exit', 'print')}\nprint('end', file=sys.stderr)", 0
    )

    assert 1 == ended.returncode
    before, _, _ = ended.stderr.partition("end\n")
    assert 1 == before.count(f"cannot write {tmp_path / 'full.jsonl'}: No space left on device.")
    assert f"cannot write to {tmp_path / 'full.jsonl'}: No space left on device" in ended.stderr


def test_a_full_disk_keeps_the_earlier_recording(tmp_path: Path) -> None:
    """The failure is named, and is no success."""
    path = tmp_path / "runs.jsonl"
    path.write_text(good_line(1))
    limit = "import resource as r, runpy; r.setrlimit(r.RLIMIT_FSIZE, (1_000,) * 2);"
    program = f"{limit} runpy.run_module('spanscore', run_name='__main__', alter_sys=True)"
    ended = python("-c", program, "record", "-o", path, "--", sys.executable, "-c", AGENT, 0)

    assert (1, good_line(1)) == (ended.returncode, path.read_text())
    assert f"cannot write {path}.part: File too large. Requests are refused from now on" in ended.stderr
    assert f"cannot write to {path}: File too large" in ended.stderr


@pytest.mark.processes
def test_a_kill(tmp_path: Path) -> None:
    """The earlier recording is whole, what came is readable beside it, and the next start says so."""
    path = tmp_path / "runs.jsonl"
    path.write_text(good_line(1))
    with subprocess.Popen(
        [*SPANSCORE, "record", "-o", str(path)], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        subprocess.run(
            [sys.executable, "-m", "spanscore.cli.demo_agent.agent"],
            env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": lines[1].split("=")[1].split()[0]},
            check=True,
            timeout=DEADLINE_S,
        )
        process.kill()

    assert (1, 8) == (len(package.read(path)), len(package.read(f"{path}.part")))
    ended = record(path, "-c", AGENT, "0")
    assert f"{path}.part was left by a recording that did not end. It is now {path}.part.1" in ended.stderr
    assert (1, 8) == (len(package.read(path)), len(package.read(f"{path}.part.1")))
