"""F9: the memory that the spans of open traces take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

from bench import peers, workload
from bench.clients import HttpClient
from bench.decoders import DECODERS
from bench.goals import Cell, Row, Run, judged
from bench.peers.receivers import collector
from bench.process import Process
from bench.servers import GROUPING, SAMPLING, SHIPPED, SMALL
from bench.serving import SMALLEST, as_shipped, at_rest, http_port, sink, spanscore, yardstick_port
from spanscore.otlp.clean_requests import ASKED_BY

MEMORY: Final = "memory at 50,000 open traces"

_MOST_THOUSANDS: Final = 50
_AT_ONCE: Final = 1_000
_KEPT_REQUESTS: Final = 19
"""Of each thousand traces: so many that all of them have begun."""


def rows(run: Run) -> Iterator[Row | Cell]:
    """Measure how much a process grows by many open traces, then servers with more of them."""
    for decoder in DECODERS:
        found = with_open_traces(2_000 if run.quick else 10_000, decoder)
        size, spans = found["bytes a span"], found["open spans"]
        yield judged(
            "F9 load",
            size,
            what=decoder,
            figure=f"{size:.0f} B a span, {spans:,} of {found['open traces']:,} traces",
            yardstick="2,300 B a span as received",
        )
    for decoder in DECODERS:
        found = _measured("bench.held_recordings", 20_000 if run.quick else 100_000, decoder)
        size = found["bytes a span"]
        yield judged(
            "F9 recordings",
            size,
            what=decoder,
            figure=f"{size:.0f} B a span, {found['open spans']:,} spans",
            yardstick=f"{found['as received']:,.0f} B a span as received",
        )
    with sink() as receiver:
        thousands = 10 if run.quick else _MOST_THOUSANDS
        for name, config in ((SHIPPED, as_shipped(yardstick_port(receiver))), (SMALL, SMALLEST)):
            for decoder, asked in DECODERS.items():
                with spanscore(_kept_open(config), asked) as server:
                    yield _whole(f"{name}: {decoder}", server, http_port(server), thousands)
    for processor in (SAMPLING, GROUPING):
        if peers.collector() is not None:
            with collector(processor, wait="1h") as peer:
                yield _whole(peer.name, peer.process, peer.http_port, thousands)


def _kept_open(config: str) -> str:
    """Return a configuration whose traces stay open, and whose limits are above what is sent."""
    limits = "  num_traces: 60000\n  max_bytes: 8GiB\n  trace_timeout: 1h\n"
    if "traces:\n" not in config:
        config += "traces:\n  max_trace_age: 1h\n"
    return config.replace("traces:\n", f"traces:\n{limits}", 1)


def _whole(name: str, server: Process, port: int, thousands: int) -> Cell:
    """Return the memory of a server with so many open traces of which the first spans have come."""
    client = HttpClient(port)
    load = workload.requests(_AT_ONCE, concurrent=_AT_ONCE, roots=False)[:_KEPT_REQUESTS]
    for generation in range(thousands):
        client.send(workload.renewed(load, generation))
    at_rest(server)
    fewer = "" if thousands == _MOST_THOUSANDS else f" at {thousands * _AT_ONCE:,}"
    return Cell(name, MEMORY, f"{server.memory() / 1e6:,.0f} MB{fewer}")


def with_open_traces(traces: int, decoder: str) -> dict[str, Any]:
    """Return what `bench.open_traces` measures."""
    return _measured("bench.open_traces", traces, decoder)


def _measured(module: str, most: int, decoder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", module, str(most)]
    environment = {**os.environ, ASKED_BY: DECODERS[decoder]}
    run = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found
