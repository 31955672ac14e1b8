"""Sends `spanscore serve` traces in which every name is new: each has a tool, an agent and a service of its own.

python tests/campaigns/cardinality.py --traces 1000000

No metric may have more series than 2,000, and the sums over all series must be exact.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from campaigns.one_trace import send
from conformance.processes import Process, process
from deadline import DEADLINE_S
from receivers.otlp_requests import simple_span, span_id
from spanscore.emitters.sending.client import connect

MAX_SERIES: Final = 2_000
_TRACES_PER_REQUEST: Final = 200
_CONFIGURATION: Final = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
exporters: {prometheus: {endpoint: "127.0.0.1:0"}}
traces: {decision_delay: 0s}
storage: {durability: none}
telemetry: {log_level: info}
"""
_EVALUATIONS: Final = "spanscore_evaluations_total"
_CALLS: Final = "gen_ai_execute_tool_duration_seconds_count"
_SCORES: Final = "gen_ai_evaluation_score_count"
_SUMMED: Final = (_EVALUATIONS, _CALLS, _SCORES)


@dataclass(kw_only=True)
class Outcome:
    """What came of it."""

    traces: int
    sums: dict[str, int]
    """Over all series of a metric."""
    most_series: int
    """Of any metric, without the buckets of histograms."""
    page_bytes: int
    peak_rss: int
    """In bytes."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.most_series > MAX_SERIES or set(self.sums.values()) != {self.traces}

    def __str__(self) -> str:
        sums = ", ".join(f"{name} {number:,}" for name, number in self.sums.items())
        sizes = f"page {self.page_bytes / 2**20:.1f} MiB, peak {self.peak_rss / 2**20:.0f} MiB"
        return f"{self.traces:,} traces; {sums}; at most {self.most_series:,} series; {sizes}"


def run(directory: Path, traces: int) -> Outcome:
    """Send so many traces, each with names of its own."""
    with process(directory, _CONFIGURATION) as running, running.peak() as peak:
        client = connect(running.http)
        for start in range(1, traces + 1, _TRACES_PER_REQUEST):
            numbers = range(start, min(traces + 1, start + _TRACES_PER_REQUEST))
            send(client, ExportTraceServiceRequest(resource_spans=map(_trace, numbers)))
        client.close()
        until = time.monotonic() + DEADLINE_S
        # Closed traces are scored in slices, and a page may be put together meanwhile.
        while True:
            sums = _sums(page := _page(running))
            if min(sums[name] for name in _SUMMED) >= traces or time.monotonic() > until:
                break
    series = _series(page)
    return Outcome(
        traces=traces,
        sums={name: sums[name] for name in _SUMMED},
        most_series=max(series.values()),
        page_bytes=len(page),
        peak_rss=peak.highest,
    )


def _trace(number: int) -> ResourceSpans:
    agent = _attributes(**{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent {number}"})
    called = _attributes(**{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool {number}"})
    spans = [simple_span(number, 2, parent_span_id=span_id(1), attributes=called)]
    spans.append(simple_span(number, attributes=agent))
    resource = Resource(attributes=_attributes(**{"service.name": f"service {number}"}))
    return ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=spans)])


def _attributes(**pairs: str) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in pairs.items()]


def _page(running: Process) -> str:
    host, port = running.pages
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=DEADLINE_S) as answer:
        text: str = answer.read().decode()
        return text


def _samples(page: str) -> list[tuple[str, float]]:
    return [
        (name, float(number)) for name, number in re.findall(r"^(\w+)(?:\{.*?\})? ([0-9.e+-]+)", page, re.MULTILINE)
    ]


def _sums(page: str) -> Counter[str]:
    sums: Counter[str] = Counter()
    for name, number in _samples(page):
        sums[name] += int(number)
    return sums


def _series(page: str) -> Counter[str]:
    return Counter(name for name, _ in _samples(page) if not name.endswith("_bucket"))


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        outcome = run(Path(directory), arguments.traces)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
