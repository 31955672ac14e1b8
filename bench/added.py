"""P12, P13: what sending the received spans on costs beside scoring them, and what keeping them on disk costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from bench import workload
from bench.clients import HttpClient
from bench.decoders import DECODERS
from bench.goals import Row, Run
from bench.serving import (
    DURABLE,
    NOT_DURABLE,
    PROMETHEUS,
    RECEIVER,
    SMALLEST,
    Target,
    cpu_of,
    http_port,
    judged_by_decoder,
    sink,
    spanscore,
    yardstick_port,
)

_FORWARD: Final = """
exporters:
  prometheus: {{endpoint: "127.0.0.1:0"}}
  otlp: {{endpoint: "http://127.0.0.1:{port}", protocol: http/protobuf, signals: [traces]}}
"""


def rows(run: Run) -> Iterator[Row]:
    """Send receivers the same load; one also sends it on, with the scores as events of the roots, and one stores it."""
    traces = 400 if run.quick else 1_000
    with ExitStack() as stack:
        onward = _FORWARD.format(port=yardstick_port(stack.enter_context(sink())))
        configs = {
            "forwarding": RECEIVER + NOT_DURABLE + onward,
            "crash": RECEIVER + PROMETHEUS + DURABLE,
            "scoring alone": SMALLEST,
        }
        targets = {}
        for name, config in configs.items():
            for decoder, asked in DECODERS.items():
                server = stack.enter_context(spanscore(config, asked))
                targets[f"{name}, {decoder}"] = Target(server, HttpClient(http_port(server)))
        samples = cpu_of(targets, workload.requests(traces), rounds=3 if run.quick else 7)
    for goal, more in (("P12", "forwarding"), ("P13", "crash")):
        yield from judged_by_decoder(goal, samples, more, "scoring alone", workload.span_count(traces))
