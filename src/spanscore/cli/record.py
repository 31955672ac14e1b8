"""`spanscore record`: saves the requests of an agent in a file."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from spanscore.cli import FAILED, INTERRUPTED, OK
from spanscore.cli._ending_signals import ENDING, on_signals
from spanscore.cli._recordings import define_mask, tell, tell_of_left_behind, tell_of_masked
from spanscore.messages.plural import plural
from spanscore.recordings.writer import JSON_SUFFIXES, PROTOBUF_SUFFIXES, RecordingWriter

if TYPE_CHECKING:
    from spanscore.service.recorder import Recorder

_WAIT_S: Final = 5.0
_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
_KILLED: Final = 128

_ELSEWHERE: Final = tuple(
    f"OTEL_EXPORTER_OTLP_{signal}_{what}"
    for signal in ("TRACES", "LOGS", "METRICS")
    for what in ("ENDPOINT", "PROTOCOL")
)
"""The variables that would send one signal to another endpoint, or in another form."""
_PROMPT: Final = {"OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_BLRP_SCHEDULE_DELAY": "200"}
"""Milliseconds until batches go out: a program that is killed loses what it has not sent."""


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    endings = ", ".join((*JSON_SUFFIXES, *PROTOBUF_SUFFIXES))
    parser.usage = "spanscore record -o FILE [--append] [--mask KEY]... [-- COMMAND [ARGUMENT...]]"
    parser.description = (
        "Receive OTLP over gRPC and HTTP on free ports of this machine, and save spans and logs as they arrive. "
        "With a command: run it with OTEL_EXPORTER_OTLP_ENDPOINT and _PROTOCOL set, wait for its last spans, "
        "and end with its exit status, or with 1 if that was 0 but no spans or logs came or some were refused. "
        "Without one: until Ctrl-C. "
        "Spans and logs are written to FILE.part, which replaces FILE at the end; if the recording is killed, "
        "FILE.part has the spans and logs received until then."
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help=f"the file to write; its name ends in {endings} for JSON Lines or protobuf, or in one of these and .gz",
    )
    parser.add_argument("--append", action="store_true", help="append to FILE instead of replacing it at the end")
    define_mask(parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="a program and its arguments, behind --")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Record and return the exit status."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from spanscore.config.parts import masked_requests  # noqa: PLC0415 - not before gRPC's variable is set
    from spanscore.service.recorder import Recorder  # noqa: PLC0415 - as above

    masked = masked_requests(arguments.mask)
    with RecordingWriter(arguments.output, append=arguments.append, masked=masked) as writer:
        tell_of_left_behind(writer)
        status = asyncio.run(_record(Recorder, writer, arguments.command))
    is_unmasked = writer.written > 0 and tell_of_masked(masked, writer)
    return status or (FAILED if is_unmasked else OK)


async def _record(recorder_of: type[Recorder], writer: RecordingWriter, command: Sequence[str]) -> int:
    ended = asyncio.Event()
    on_signals(ended.set, *ENDING)  # asyncio would cancel a start half-way
    recorder = recorder_of(writer)
    await recorder.start()
    status = OK
    try:
        if ended.is_set():
            return INTERRUPTED
        if command:
            print(_started(writer), file=sys.stderr)
            status = await _run(command, recorder)
            await recorder.quiet(_WAIT_S)
        else:
            _tell_where_to_send(recorder, writer)
            await ended.wait()
    except OSError as error:
        print(f"cannot run {command[0]!r}: {error.strerror}", file=sys.stderr)
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
    finally:
        await recorder.stop()
    failure = recorder.failure or _failure_of_closing(writer)
    tell(*_told(recorder, writer, failure))
    return status or (FAILED if failure is not None or recorder.lost or not writer.written else OK)


def _started(writer: RecordingWriter) -> str:
    until = "" if writer.part == writer.path else f" Until the end, spans and logs are written to {writer.part}."
    return f"Recording to {writer.path}.{until}"


def _failure_of_closing(writer: RecordingWriter) -> OSError | None:
    """Have the recording take its place, and return why it cannot."""
    try:
        writer.close()
    except OSError as error:
        return error
    return None


async def _run(command: Sequence[str], recorder: Recorder) -> int:
    """Run a program and return its exit status, as a shell has it."""
    environment = {key: value for key, value in os.environ.items() if key not in _ELSEWHERE}
    environment |= {
        "OTEL_EXPORTER_OTLP_ENDPOINT": recorder.address("http"),
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        **_PROMPT,
    }
    on_signals(lambda: None, *ENDING)  # the terminal sends the program its own
    program = await asyncio.create_subprocess_exec(*command, env=environment)
    on_signals(lambda: _terminate(program), signal.SIGTERM)
    status = await program.wait()
    return status if status >= 0 else _KILLED - status


def _terminate(program: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):  # it has ended
        program.terminate()


def _tell_where_to_send(recorder: Recorder, writer: RecordingWriter) -> None:
    print(
        f"{_started(writer)} No command is given: it records until Ctrl-C. Set one of these for your agent:\n"
        f"  export OTEL_EXPORTER_OTLP_ENDPOINT={recorder.address('http')}   (OTLP/HTTP)\n"
        f"  export OTEL_EXPORTER_OTLP_ENDPOINT={recorder.address('grpc')}   (OTLP/gRPC)",
        flush=True,
    )


def _told(recorder: Recorder, writer: RecordingWriter, failure: OSError | None) -> list[str]:
    if failure is not None:
        kept = f"; earlier requests are in {writer.kept}" if writer.kept else ""
        return [f"cannot write to {writer.path}: {failure.strerror}{kept}"]
    reasons = ", ".join(f"{reason} ({count})" for reason, count in recorder.refused.items())
    if not writer.written and reasons:
        return [f"nothing was recorded: all spans and log records were refused: {reasons}"]
    if not writer.written:
        return ["no spans or logs were received: does the program export OTLP?", *_hints()]
    seen = recorder.seen
    lines = [
        f"{writer.kept or writer.path}: {plural(len(seen.calls), 'trace')} with {plural(seen.tool_calls, 'tool call')}"
    ]
    if seen.unrecognised:
        lines.append(f"and {plural(len(seen.unrecognised), 'trace')} without a span of a known instrumentation")
    if reasons:
        lacking = ", and their runs lack them" if recorder.lost else ""
        lines.append(f"spans or log records were refused{lacking}: {reasons}")
    return lines


def _hints() -> list[str]:
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return ["OTEL_SDK_DISABLED is true: the SDK sends nothing"]
    exporter = os.environ.get("OTEL_TRACES_EXPORTER")
    if exporter is not None and "otlp" not in exporter.split(","):
        return [f"OTEL_TRACES_EXPORTER is {exporter!r}: it should hold otlp"]
    return ["a program without OpenTelemetry of its own can be started with: opentelemetry-instrument PROGRAM"]
