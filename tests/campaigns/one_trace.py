"""Sends `spanscore serve` one trace that is far too large, or the same span again and again.

python tests/campaigns/one_trace.py --spans 1000000
python tests/campaigns/one_trace.py --spans 50000 --kind equal
python tests/campaigns/one_trace.py --spans 50000 --kind differing

The spans are all different, or all have one span id and equal or differing contents. Whatever is kept of them, every
one must be counted, memory must stay small, and the receiver behind must get all of them.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import tempfile
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from conformance.processes import Process, process
from deadline import DEADLINE_S
from receivers.otlp_requests import request_of, simple_span, span_id
from spanscore.emitters.sending.client import Accepted, Client, Delivery, connect

SPANS_PER_REQUEST: Final = 1_000
_CONFIGURATION: Final = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:0"}}
      http: {{endpoint: "127.0.0.1:0"}}
exporters:
  prometheus: {{endpoint: "127.0.0.1:0"}}
  otlp: {{endpoint: "{behind}", signals: [traces]}}
traces: {{decision_delay: 0s, trace_timeout: 1h}}
annotate: none
storage: {{durability: crash, directory: {directory}/state}}
"""

Kind = Callable[[int], Span]

KINDS: Final[Mapping[str, Kind]] = {
    "different": lambda number: simple_span(1, number + 2, parent_span_id=span_id(1)),
    "equal": lambda _: simple_span(1, 2, parent_span_id=span_id(1)),
    "differing": lambda number: simple_span(1, 2, parent_span_id=span_id(1), name=f"span {number}"),
}


@dataclass(kw_only=True)
class Outcome:
    """What came of it."""

    sent: int
    """Spans that were acknowledged."""
    passed_on: int
    counts: Mapping[str, int]
    """What became of the spans, by name and reason, where it is more than 0."""
    peak_rss: int
    """In bytes."""

    @property
    def accounted(self) -> int:
        """Spans of which it is known what became of them."""
        return sum(number for name, number in self.counts.items() if name.split()[0] in _FATES)

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return not self.sent == self.passed_on == self.counts["received"] == self.accounted

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {number:,}" for name, number in self.counts.items())
        return f"sent {self.sent:,} passed on {self.passed_on:,}; {counts}; peak {self.peak_rss / 2**20:.0f} MiB"


_FATES: Final = ("closed", "live", "late", "refused", "dropped")


class Counting:
    """A receiver that counts spans and keeps none."""

    def __init__(self) -> None:
        self._spans = 0
        self._changed: Final = threading.Condition()

    def take(self, body: bytes) -> None:
        """Count the spans of a request."""
        request = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            self._spans += sum(len(scope.spans) for each in request.resource_spans for scope in each.scope_spans)
            self._changed.notify_all()

    def spans(self, expected: int) -> int:
        """Return how many there were, once there are as many, or when it has taken too long."""
        with self._changed:
            self._changed.wait_for(lambda: self._spans >= expected, DEADLINE_S)
            return self._spans


@contextmanager
def counting() -> Iterator[tuple[str, Counting]]:
    """Run a receiver that counts, and give its base URL."""
    counter = Counting()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            counter.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", counter
        finally:
            server.shutdown()
            thread.join()


def run(directory: Path, spans: int, kind: str) -> Outcome:
    """Send so many spans, half of them over gRPC and half over HTTP, then the root."""
    with counting() as (behind, counter):
        configuration = _CONFIGURATION.format(behind=behind, directory=directory)
        with process(directory, configuration) as running, running.peak() as peak:
            clients = [connect(f"http://{running.grpc}", "grpc"), connect(running.http, "http/protobuf")]
            senders = itertools.cycle(clients)
            sent = 0
            for start in range(0, spans, SPANS_PER_REQUEST):
                made = [KINDS[kind](number) for number in range(start, min(spans, start + SPANS_PER_REQUEST))]
                send(next(senders), request_of(*made))
                sent += len(made)
            send(next(senders), request_of(simple_span(1)))
            for client in clients:
                client.close()
            passed_on = counter.spans(sent + 1)
            counts = _counted(running)
    return Outcome(sent=sent + 1, passed_on=passed_on, counts=counts, peak_rss=peak.highest)


def send(client: Client, request: ExportTraceServiceRequest) -> None:
    """Send a request until it is taken."""
    waiting = threading.Event()
    answer = Delivery(client, lambda seconds, _: waiting.wait(seconds)).send("traces", request.SerializeToString())
    assert isinstance(answer, Accepted), answer


def _counted(running: Process) -> Counter[str]:
    host, port = running.pages
    counts: Counter[str] = Counter()
    while not counts or counts["live"]:
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=DEADLINE_S) as answer:
            page = answer.read().decode()
        found = re.findall(
            r'^spanscore_spans_([a-z]+?)(?:_total)?(?:\{.*reason="(\w+)".*\})? (\S+)$', page, re.MULTILINE
        )
        counts = Counter({f"{name} {reason}".strip(): int(float(number)) for name, reason, number in found})
    return +counts


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=KINDS, default="different")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        outcome = run(Path(directory), arguments.spans, arguments.kind)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
