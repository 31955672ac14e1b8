from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import spanscore as package
from cli.recorded_runs import recorded
from commands import SPANSCORE, python, spanscore, spanscore_after, started
from deadline import DEADLINE_S
from fuzzing.foreign import good_line
from serving import eventually

AGENT = """
import os, sys
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
SENDER = """
import os, sys, urllib.error, urllib.request
url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        request = urllib.request.Request(url, file.read(), {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request)
    except urllib.error.HTTPError:  # refused
        pass
"""
"""Sends requests without an SDK, which takes long to load."""


@pytest.fixture
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a request of one run."""
    return Path(recorded(tmp_path_factory.mktemp("sent") / "run.json", ("a case", "fetch")))


def record(file: Path, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Record a program of Python's."""
    return spanscore("record", "-o", file, "--", sys.executable, *command, **environment)


@pytest.mark.waits
def test_the_demo_agent(tmp_path: Path) -> None:
    """All runs of an agent that exports with the SDK are in the file, which every command reads."""
    path = tmp_path / "runs.jsonl"
    ended = record(path, "-m", "spanscore.cli.demo_agent.agent")

    assert (0, "") == (ended.returncode, ended.stdout)
    assert ended.stderr.splitlines() == [
        f"Recording to {path}. Until the end, spans and logs are written to {path}.part.",
        f"{path}: 8 traces with 27 tool calls",
    ]
    assert "8 runs, 27 tool calls" in spanscore("score", path).stdout


def test_logs_and_the_status(tmp_path: Path) -> None:
    """Content in logs is recorded too, whatever the environment said before, and the program's status is ours."""
    elsewhere = {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://localhost:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    path = tmp_path / "runs.pb.gz"
    ended = record(path, "-c", AGENT, 3, **elsewhere)

    assert (3, f"{path}: 1 trace with 1 tool call") == (ended.returncode, ended.stderr.splitlines()[-1])
    (trajectory,) = package.read(path)
    assert [{"url": "x"}] == [call.arguments for call in trajectory.calls]


def test_appended_to(one_run: Path, tmp_path: Path) -> None:
    """The runs of two programs."""
    for number in (1, 2):
        one_run.write_text(one_run.read_text().replace(f"{1:032x}", f"{number:032x}"))
        spanscore("record", "-o", tmp_path / "runs.jsonl", "--append", "--", sys.executable, "-c", SENDER, one_run)

    assert 2 == len(package.read(tmp_path / "runs.jsonl"))


def test_not_appended_to_another_form(tmp_path: Path) -> None:
    """The file is refused before the command runs."""
    (tmp_path / "runs.pb").write_text("{}")
    run = ("--", sys.executable, "-c", f"open({str(tmp_path / 'ran')!r}, 'w')")
    ended = spanscore("record", "-o", tmp_path / "runs.pb", "--append", *run)

    told = "OTLP in protobuf, each request behind its length, by its name: it has JSON or text"
    assert (2, True) == (ended.returncode, told in ended.stderr)
    assert (["runs.pb"], "{}") == ([each.name for each in tmp_path.iterdir()], (tmp_path / "runs.pb").read_text())


@pytest.mark.parametrize(
    ("environment", "hint"),
    [
        ({}, "opentelemetry-instrument"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "OTEL_TRACES_EXPORTER is 'console'"),
        ({"OTEL_SDK_DISABLED": "true"}, "OTEL_SDK_DISABLED is true"),
    ],
)
def test_nothing_came(environment: dict[str, str], hint: str, tmp_path: Path) -> None:
    """A program that sends nothing is no success, and leaves no empty file; what may be the cause is told."""
    ended = record(tmp_path / "runs.jsonl", "-c", "pass", **environment)

    assert (1, True) == (ended.returncode, "no spans or logs were received" in ended.stderr)
    assert hint in ended.stderr
    assert [] == list(tmp_path.iterdir())


def test_nothing_costs_no_earlier_recording(tmp_path: Path) -> None:
    """The earlier file stays as it was, and nothing is left beside it."""
    path = tmp_path / "runs.jsonl"
    path.write_text("old")

    assert 1 == record(path, "-c", "pass").returncode
    assert ([path], "old") == (list(tmp_path.iterdir()), path.read_text())


def test_other_services_are_recorded_too(one_run: Path, tmp_path: Path) -> None:
    """And told apart."""
    one_run.write_text(re.sub("gen_ai|invoke_agent|execute_tool", "http", one_run.read_text()))
    ended = record(tmp_path / "runs.jsonl", "-c", SENDER, one_run)

    assert "0 traces with 0 tool calls\nand 1 trace without a span of a known instrumentation" in ended.stderr


@pytest.mark.parametrize("beside", ["in its request", "in a later request", "nowhere"])
@pytest.mark.parametrize("ending", ["jsonl", "pb.gz"])
def test_a_refused_span_is_missing_in_the_recording_too(
    one_run: Path, tmp_path: Path, ending: str, beside: str
) -> None:
    """The status is 1, and the run that lacks the span does not pass when it is scored. Alone it is no recording."""
    sent, path = tmp_path / "sent.json", tmp_path / f"runs.{ending}"
    request = json.loads(one_run.read_text())
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans.append(spans[1] | {"endTimeUnixNano": "soon"})
    is_alone = beside == "nowhere"
    if beside != "in its request":
        del spans[:-1]
    sent.write_text(json.dumps(request))
    ended = record(path, "-c", SENDER, sent, *([one_run] if beside == "in a later request" else []))

    told = "spans or log records were refused, and their runs lack them: invalid_time (1)"
    if is_alone:
        told = "nothing was recorded: all spans and log records were refused: invalid_time (1)"
    assert (1, told, is_alone) == (ended.returncode, ended.stderr.splitlines()[-1], not path.exists())
    if is_alone:
        return
    scored = spanscore("score", path)
    assert (1, True) == (scored.returncode, "a span of this run was refused" in scored.stdout)
    assert "1 span refused (invalid_time): " in scored.stderr
    assert "in place of a span or log record that was refused when it was recorded or sent" in scored.stderr


@pytest.mark.parametrize("ending", ["jsonl", "pb"])
def test_refused_spans_of_one_run_are_counted(one_run: Path, tmp_path: Path, ending: str) -> None:
    """Also if they came in several requests, and if one was sent twice."""
    path, request = tmp_path / f"runs.{ending}", json.loads(one_run.read_text())
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    sent = [tmp_path / f"{number}.json" for number in range(2)]
    for file, number in zip(sent, (3, 4), strict=True):
        spans[1:] = [spans[-1] | {"spanId": f"{number:016x}", "endTimeUnixNano": "soon"}]
        file.write_text(json.dumps(request))
    record(path, "-c", SENDER, *sent, sent[1])

    assert "incomplete (2 spans refused)" in spanscore("score", path).stdout


@pytest.mark.parametrize("value", [{"stringValue": "x"}, {"boolValue": "no"}])
def test_a_span_that_cannot_be_written_is_refused(one_run: Path, tmp_path: Path, value: dict[str, str]) -> None:
    """One in JSON may nest deeper than protobuf can, also in parts that scoring does not read."""
    sent, path = tmp_path / "sent.json", tmp_path / "runs.jsonl"
    for _ in range(70 if "stringValue" in value else 0):
        value = {"arrayValue": {"values": [value]}}  # type: ignore[dict-item]
    request = json.loads(one_run.read_text())
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["links"] = [
        {"traceId": "1" * 32, "spanId": "1" * 16, "attributes": [{"key": "k", "value": value}]}
    ]
    sent.write_text(json.dumps(request))
    ended = record(path, "-c", SENDER, sent)
    scored = spanscore("score", path)

    assert (1, True) == (ended.returncode, "were refused, and their runs lack them: " in ended.stderr)
    assert (1, True) == (scored.returncode, "incomplete (1 span refused)" in scored.stdout)


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


def test_interrupted_while_it_starts(tmp_path: Path) -> None:
    """Ctrl-C ends it before a program is run, without a word and without a file."""
    preparation = """
import os, signal
from spanscore.service.recorder import Recorder
start = Recorder.start
async def interrupted(self):
    os.kill(os.getpid(), signal.SIGINT)
    await start(self)
Recorder.start = interrupted
"""
    ended = spanscore_after(preparation, "record", "-o", tmp_path / "runs.jsonl", "--", "no-such-program")

    assert (130, "", "") == (ended.returncode, ended.stdout, ended.stderr)
    assert [] == list(tmp_path.iterdir())


def test_wrong_use(tmp_path: Path) -> None:
    """Without a file, or with one of no known kind."""
    for arguments, told in (((), "-o/--output"), (("-o", tmp_path / "runs.csv"), "its name must end in .json, .jsonl")):
        ended = spanscore("record", *arguments)
        assert (2, True) == (ended.returncode, told in ended.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_until_interrupted(number: signal.Signals, one_run: Path, tmp_path: Path) -> None:
    """Without a command it says where to send, and records until it is told to end."""
    output, errors = tmp_path / "output", tmp_path / "errors"
    with started("record", "-o", tmp_path / "runs.jsonl", output=output, errors=errors) as process:
        eventually(lambda: output.read_text().count("\n") == 3)
        assert "No command is given: it records until Ctrl-C." in output.read_text()
        endpoint = output.read_text().splitlines()[1].split("=")[1].split()[0]
        assert 0 == python("-c", SENDER, one_run, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint).returncode
        process.send_signal(number)

        assert (0, f"{tmp_path / 'runs.jsonl'}: 1 trace with 1 tool call\n") == (process.wait(), errors.read_text())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk(one_run: Path, tmp_path: Path) -> None:
    """A full disk is reported at once, and only once, and the exit status is 1."""
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    ended = record(tmp_path / "full.jsonl", "-c", f"{SENDER}\nprint('end', file=sys.stderr)", one_run)

    assert 1 == ended.returncode
    before, _, _ = ended.stderr.partition("end\n")
    assert "downstream" not in ended.stderr
    assert 1 == before.count(f"cannot write {tmp_path / 'full.jsonl'}: No space left on device.")
    assert f"cannot write to {tmp_path / 'full.jsonl'}: No space left on device" in ended.stderr


def test_a_full_disk_keeps_the_earlier_recording(one_run: Path, tmp_path: Path) -> None:
    """The failure is named, and is no success."""
    path = tmp_path / "runs.jsonl"
    path.write_text(good_line(1))
    limit = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (2_000,) * 2)"  # the log is a file, too
    one_run.write_text(one_run.read_text().replace("fetch", "x" * 2_000))
    ended = spanscore_after(limit, "record", "-o", path, "--", sys.executable, "-c", SENDER, one_run)

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


def test_masked_values_are_not_written(tmp_path: Path) -> None:
    """In their place are marks, and a check that needs the value is skipped."""
    asked = {"email": "jane@example.com", "order": "R-1"}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send_email",
        "gen_ai.tool.call.arguments": json.dumps(asked),
    }
    ids = {"traceId": "1" * 32, "spanId": "1" * 16, "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    told = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    span = {**ids, "name": "execute_tool send_email", "attributes": told}
    sent = tmp_path / "sent.json"
    sent.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}), "utf-8")
    path, config = tmp_path / "runs.jsonl", tmp_path / "spanscore.yaml"
    config.write_text(
        "evaluators:\n"
        "  sent: {type: tool_call_args, tool_calls: [{name: send_email, args: {email: x}}]}\n"
        "  called: {type: tool_call_order, tool_calls_order: [send_email]}\n",
        "utf-8",
    )

    agent = ("--", sys.executable, "-c", SENDER, sent)
    ended = spanscore("record", "-o", path, "--mask", "email", *agent)
    assert (0, "--mask email: 1 value masked") == (ended.returncode, ended.stderr.splitlines()[-1])
    assert "jane" not in path.read_text("utf-8")
    assert "R-1" in path.read_text("utf-8")
    scored = spanscore("score", path, "--config", config, "--format", "json")
    assert scored.stderr == "sent checked nothing: skipped the only run\n"
    (line,) = map(json.loads, scored.stdout.splitlines())
    assert "were masked, or not recorded" in line["outcomes"]["sent"]["reason"]
    assert "score" == line["outcomes"]["called"]["outcome"]
    explained = spanscore("explain", path, "--config", config, "--summary").stdout
    assert explained.splitlines()[-1].endswith("arguments of 1 of 1 call  masked: record without --mask")
    made = spanscore("golden", path, "-o", tmp_path / "golden.jsonl", "--key", "span.name").stdout
    assert "the arguments of 1 of 1 call were masked, or not recorded, and may be any" in made

    kept = path.read_bytes()
    for append in ((), ("--append",)):
        ended = spanscore("record", "-o", path, *append, "--mask", "emial", "--mask", "send_email.email", *agent)
        told = ended.stderr.splitlines()[-3:]
        assert (1, kept) == (ended.returncode, path.read_bytes())
        assert told[:2] == [
            "--mask emial: no run has this key; did you mean 'email'?",
            "--mask send_email.email: no run has these keys; did you mean 'email'? Leave the tool out",
        ]
        assert f"{path} is not written, as a mask matched nothing" in told[2]
        assert bool(append) is not told[2].endswith(f"; the recording is in {path}.part, without this mask")


def test_a_mask_that_cannot_be_used(tmp_path: Path) -> None:
    """It is refused before anything runs."""
    ended = spanscore("record", "-o", tmp_path / "runs.jsonl", "--mask", "name", "--", "false")
    assert 2 >= ended.returncode >= 1
    assert "customer.name" in ended.stderr
