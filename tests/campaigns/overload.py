"""Lets OpenTelemetry's own exporters send `spanscore serve` three times what it has time for.

python tests/campaigns/overload.py --seconds 30

First the exporters send as fast as they can, and the processor time that the receiver takes for it is measured. Then it
is given a third of that time, while they go on as before: they retry as they do, and what they give up is exported
again. In the end every trace that was sent must have been scored once and whole.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from campaigns.load import hold_back, wait_for_scores
from conformance.processes import Process, process
from deadline import DEADLINE_S

CALLS: Final = 7
TRACES_PER_EXPORT: Final = 16
"""Of eight spans."""
TIMES: Final = 3
_LEAST_SHARE: Final = 0.02

_CONFIGURATION: Final = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:0"}}
      http: {{endpoint: "127.0.0.1:0"}}
exporters: {{jsonl: {{path: {directory}/scores.jsonl}}, prometheus: {{endpoint: "127.0.0.1:0"}}}}
traces: {{decision_delay: 0s}}
storage: {{durability: crash, directory: {directory}/state}}
"""


@dataclass(kw_only=True)
class Outcome:
    """What came of it."""

    sent: int = 0
    """Traces."""
    served_per_s: float = 0.0
    """Traces acknowledged while the receiver had all the time it needed."""
    overloaded_per_s: float = 0.0
    """And while it had a third of it."""
    share: float = 0.0
    """Of the time, in which it was let run then."""
    refused: int = 0
    """Requests that were told to come again."""
    given_up: int = 0
    """Exports that the exporters gave up, and that were made again."""
    lost: int = 0
    """Traces without a score."""
    incomplete: int = 0
    """Traces scored without some of their calls."""
    repeated: int = 0
    """Traces scored more than once."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.lost or self.incomplete or self.repeated)


class _Sender:
    """Exports batches of traces, each until it is taken, for as long as it is told to."""

    def __init__(self, exporter: SpanExporter) -> None:
        self.sent: Final[list[int]] = []
        """Ids of the traces that were acknowledged."""
        self.given_up = 0
        self._exporter: Final = exporter
        self._tracer: Final = TracerProvider(shutdown_on_exit=False).get_tracer("agent")

    def run(self, until: float) -> None:
        """Export one batch after the other."""
        while time.monotonic() < until:
            traces = [self._trace() for _ in range(TRACES_PER_EXPORT)]
            spans = [span for trace in traces for span in trace]
            while self._exporter.export(spans) is not SpanExportResult.SUCCESS:
                self.given_up += 1
            self.sent.extend(trace[-1].context.trace_id for trace in traces)

    def close(self) -> None:
        """Let go of the connection."""
        self._exporter.shutdown()

    def _trace(self) -> Sequence[ReadableSpan]:
        spans = []
        with self._tracer.start_as_current_span("invoke_agent") as root:
            for number in range(CALLS):
                attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool{number}"}
                with self._tracer.start_as_current_span("execute_tool", attributes=attributes) as span:
                    spans.append(span)
        return [*spans, root]  # type: ignore[list-item]  # spans of the SDK are readable


def run(directory: Path, seconds: float, exporters: int = 4) -> Outcome:
    """Send for so many seconds with all the time that the receiver needs, and for as many with a third of it."""
    outcome = Outcome()
    with process(directory, _CONFIGURATION.format(directory=directory)) as running:
        makers: Sequence[Callable[[], SpanExporter]] = (
            lambda: GrpcExporter(running.grpc, insecure=True),
            lambda: HttpExporter(f"{running.http}/v1/traces"),
        )
        senders = [_Sender(makers[number % 2]()) for number in range(exporters)]
        cpu, began = running.cpu_s(), time.monotonic()
        outcome.served_per_s = _rate(senders, seconds)
        needed = (running.cpu_s() - cpu) / (time.monotonic() - began)
        outcome.share = max(_LEAST_SHARE, needed / TIMES)
        outcome.overloaded_per_s = _rate(
            senders, seconds, lambda until: hold_back(running.process.pid, until, outcome.share)
        )
        outcome.refused = _refused(running)
        for sender in senders:
            sender.close()
        wait_for_scores(directory / "scores.jsonl", sum(len(sender.sent) for sender in senders))
        assert running.end() == 0
    outcome.given_up = sum(sender.given_up for sender in senders)
    _account(directory / "scores.jsonl", [trace for sender in senders for trace in sender.sent], outcome)
    return outcome


def _rate(senders: Sequence[_Sender], seconds: float, meanwhile: Callable[[float], None] = lambda _: None) -> float:
    before = sum(len(sender.sent) for sender in senders)
    began = time.monotonic()
    until = began + seconds
    threads = [threading.Thread(target=sender.run, args=(until,)) for sender in senders]
    for thread in threads:
        thread.start()
    meanwhile(until)
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    return (sum(len(sender.sent) for sender in senders) - before) / (time.monotonic() - began)


def _refused(running: Process) -> int:
    host, port = running.pages
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=DEADLINE_S) as answer:
        page = answer.read().decode()
    numbers = re.findall(r"^spanscore_requests_refused_total(?:\{.*\})? (\S+)$", page, re.MULTILINE)
    return sum(int(float(number)) for number in numbers)


def _account(scores: Path, sent: Sequence[int], outcome: Outcome) -> None:
    calls = Counter[int]()
    for line in scores.read_text().splitlines():
        score = json.loads(line)
        trace = int(score["trace_id"], 16)
        outcome.repeated += trace in calls
        calls[trace] = len(score["tool_calls"])
    outcome.sent = len(sent)
    outcome.lost = len(set(sent) - calls.keys())
    outcome.incomplete = sum(calls[trace] != CALLS for trace in sent if trace in calls)


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each part")
    parser.add_argument("--exporters", type=int, default=96, help="half of them over gRPC, half over HTTP")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # what the exporters say about it
    with tempfile.TemporaryDirectory() as directory:
        outcome = run(Path(directory), arguments.seconds, arguments.exporters)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
