"""P12: what sending the received spans on costs beside scoring them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from bench import workload
from bench.clients import HttpClient
from bench.decoders import DECODERS
from bench.goals import Row, Run
from bench.process import python
from bench.serving import NOT_DURABLE, RECEIVER, Target, cpu_of, http_port, judged_by_decoder, spanscore, yardstick_port

_FORWARD: Final = """
exporters:
  prometheus: {{endpoint: "127.0.0.1:0"}}
  otlp: {{endpoint: "http://127.0.0.1:{port}", protocol: http/protobuf, signals: [traces]}}
"""
_ALONE: Final = """
exporters: {prometheus: {endpoint: "127.0.0.1:0"}}
annotate: none
"""


def rows(run: Run) -> Iterator[Row]:
    """Send two receivers the same load; one of them sends it on, with the scores as events of the root spans."""
    traces = 400 if run.quick else 1_000
    with ExitStack() as stack:
        sink = stack.enter_context(python("bench.yardsticks.http", ready=r"http \d+\n"))
        forward = RECEIVER + NOT_DURABLE + _FORWARD.format(port=yardstick_port(sink))
        configs = {"forwarding": forward, "scoring alone": RECEIVER + NOT_DURABLE + _ALONE}
        targets = {}
        for name, config in configs.items():
            for decoder, asked in DECODERS.items():
                server = stack.enter_context(spanscore(config, asked))
                targets[f"{name}, {decoder}"] = Target(server, HttpClient(http_port(server)))
        samples = cpu_of(targets, workload.requests(traces), rounds=3 if run.quick else 7)
    yield from judged_by_decoder("P12", samples, "forwarding", "scoring alone", workload.span_count(traces))
