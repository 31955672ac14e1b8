"""Reads recordings behind the Collector's `gen_ai_normalizer`, and says where they are read otherwise than directly.

python tests/campaigns/normalised.py --collector PROGRAM [NAME...]
python tests/campaigns/normalised.py --by-rules [NAME...]

Every recording of the corpus, or those that are named, goes through a Collector that has the processor
(otelcol-contrib from 0.154.0 on), once with `remove_originals: false` and once with `true`; logs pass it by. By rules,
what the processor does is done here instead, as its source says (normalised_rules.py), also with messages gathered as
some versions do. The calls in their order, with arguments, result, error, id and agent, must be the same as without it,
and so must be the runs of agents. A line for each difference is printed, and the exit status is 1 when there is any.

The processor itself destroys the difference between OpenInference's kinds AGENT and CHAIN, as it does between the tasks
and agents of OpenLLMetry: they are told apart by what else is on the span, or by its name. A function that an
application wraps with `traceChain`, and calls an agent's run or a trace's root, is taken for an agent.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from campaigns.load_balanced_cluster import NoCollectorError
from campaigns.normalised_rules import normalised
from deadline import DEADLINE_S
from dialects.spans import as_received, built_in_log_names, built_in_reader
from otlp_capture import Capture, capturing, port_of
from own_sockets import free_ports
from receivers.otlp_requests import CORPUS, CORPUS_NAMES, to_json
from spanscore.model import CloseReason, Span, Trace, Unit
from spanscore.recordings.files import Recording
from spanscore.trajectories.trajectory import trajectories

PROCESSOR: Final = "gen_ai_normalizer"
_SOURCES: Final = ("openinference", "openllmetry")
_NOTHING: Final[tuple[Any, ...]] = ([], [], None)

Pass = Callable[[bytes], Iterable[str]]
"""Turns one trace request in JSON into those that come out."""


def collector_program(given: Path | None, processor: str | None = PROCESSOR) -> Path:
    """Return where a Collector is that has the processor, or another part.

    Raises:
        NoCollectorError: there is none.
    """
    names = ("otelcol-contrib", "otelcol")
    found = [given] if given else [Path(path) for name in names if (path := shutil.which(name))]
    for program in found:
        listed = subprocess.run([program, "components"], capture_output=True, text=True, check=True).stdout
        if processor is None or f"name: {processor}\n" in listed:
            return program.resolve()
    message = f"needs a Collector with {processor} on the PATH: otelcol-contrib from 0.154.0 on has it"
    raise NoCollectorError(message)


@contextmanager
def through(program: Path, directory: Path, processors: dict[str, Any]) -> Iterator[Pass]:
    """Run a Collector with these processors, and give what sends a request through it."""
    with capturing("grpc") as behind:
        (port,) = free_ports(1)
        config = {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
            "processors": processors,
            "exporters": {
                "otlp": {
                    "endpoint": f"127.0.0.1:{port_of(behind)}",
                    "tls": {"insecure": True},
                    "sending_queue": {"enabled": False},  # a request is answered when it was passed on
                }
            },
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"traces": {"receivers": ["otlp"], "processors": [*processors], "exporters": ["otlp"]}},
            },
        }
        with collecting(program, directory, config):
            yield lambda request: _sent(request, port, behind)


@contextmanager
def collecting(program: Path, directory: Path, config: dict[str, Any]) -> Iterator[None]:
    """Run a Collector with a configuration for the time of a block."""
    path = directory / "collector.yaml"
    path.write_text(yaml.safe_dump(config))
    with (directory / "collector.log").open("wb") as log:
        process = subprocess.Popen([program, "--config", path], stdout=log, stderr=log)
    with process:
        try:
            _wait_until_ready(process, directory / "collector.log")
            yield
        finally:
            process.terminate()


def with_processor(*, remove_originals: bool) -> dict[str, Any]:
    """Return the processor's part of the configuration."""
    return {PROCESSOR: {"sources": [{"name": name, "remove_originals": remove_originals} for name in _SOURCES]}}


def by_rules(*, remove_originals: bool, gather_messages: bool) -> Pass:
    """Return what does to a request as the processor's source says."""

    def changed(request: bytes) -> Iterator[str]:
        parsed = json.loads(request)
        yield json.dumps(normalised(parsed, remove_originals=remove_originals, gather_messages=gather_messages))

    return changed


def differences(name: str, directory: Path, passed: Pass) -> list[str]:
    """Return what is read otherwise of a recording when its trace requests have passed something."""
    original = CORPUS / f"{name}.jsonl.gz"
    changed = directory / f"{name}.jsonl"
    with gzip.open(original) as lines, changed.open("w", encoding="utf-8") as file:
        for line in filter(bytes.strip, lines):
            requests = passed(line) if b'"resourceSpans"' in line else [line.decode()]
            file.writelines(f"{request.strip()}\n" for request in requests)
    expected, found = _read(original), _read(changed)
    return [
        f"{name}: {trace_id} {what}: {one!r} became {other!r}"
        for trace_id in expected.keys() | found.keys()
        for what, one, other in _compared(expected.get(trace_id, _NOTHING), found.get(trace_id, _NOTHING))
    ]


def _compared(expected: tuple[Any, ...], found: tuple[Any, ...]) -> Iterator[tuple[str, Any, Any]]:
    for what, one, other in zip(("calls", "runs of agents", "conversation"), expected, found, strict=True):
        if one == other:
            continue
        if isinstance(one, list) and len(one) == len(other):
            yield from ((what, *pair) for pair in zip(one, other, strict=True) if pair[0] != pair[1])
        else:
            yield what, one, other


def _read(path: Path) -> dict[str, tuple[Any, ...]]:
    spans: dict[str, list[Span]] = {}
    for batch in Recording([path], log_names=built_in_log_names()).read():
        for span in batch.spans:
            spans.setdefault(span.trace_id.hex(), []).append(as_received(span))
    return {trace_id: _told(tuple(traced)) for trace_id, traced in spans.items()}


def _told(spans: tuple[Span, ...]) -> tuple[Any, ...]:
    trace = Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    (whole,) = trajectories(trace, built_in_reader())
    runs = trajectories(trace, built_in_reader(), Unit.AGENT)
    return (
        [(each.name, each.arguments, each.result, each.error, each.call_id, each.agent) for each in whole.calls],
        [(run.agent, [each.name for each in run.calls]) for run in runs],
        (whole.agent, whole.conversation_id),
    )


def _sent(request: bytes, port: int, behind: Capture) -> list[str]:
    seen = len(behind.bodies())
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    connection.request("POST", "/v1/traces", request, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == http.client.OK, answer.read()
    connection.close()
    return [to_json(ExportTraceServiceRequest.FromString(body)).decode() for body in behind.bodies()[seen:]]


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while "Everything is ready" not in (text := log.read_text()):
        assert time.monotonic() < deadline, text
        assert process.poll() is None, text
        time.sleep(0.05)


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collector", type=Path, metavar="PROGRAM", help="where it is not on the PATH")
    parser.add_argument("--by-rules", action="store_true", help="without a Collector, as the processor's source says")
    parser.add_argument("names", nargs="*", metavar="NAME", default=CORPUS_NAMES)
    arguments = parser.parse_args()
    found = 0
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)

        def run(setting: str, passed: Pass) -> int:
            told = [line for each in arguments.names for line in differences(each, directory, passed)]
            print(*told, sep="\n", end="\n" if told else "")
            print(f"{setting}: {len(arguments.names)} recordings, {len(told)} differences")
            return len(told)

        for removed in (False, True):
            setting = f"remove_originals {str(removed).lower()}"
            if arguments.by_rules:
                for gathered in (False, True):
                    passed = by_rules(remove_originals=removed, gather_messages=gathered)
                    found += run(f"by rules, {setting}, messages {'gathered' if gathered else 'flat'}", passed)
                continue
            try:
                program = collector_program(arguments.collector)
            except NoCollectorError as missing:
                parser.error(f"{missing}; --by-rules goes without")
            with through(program, directory, with_processor(remove_originals=removed)) as passed:
                found += run(setting, passed)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
