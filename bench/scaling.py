"""What a second process on the same machine brings, and how many replicas loads need.

python -m bench.scaling            # measure, and print
python -m bench.scaling --write    # and put the tables into docs/scaling.md

Measures one `spanscore serve`, then two with half of the traces each, sent by a third process; the memory of open
spans; and, where it is there, what the Collector takes that spreads spans over replicas. From that it works out what
loads need and what comes to its limit first.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import yaml

from bench import peers, scoring, workload
from bench.clients import GrpcClient
from bench.decoders import DECODERS, PLAIN
from bench.measure import collect_rarely, interleaved, typical
from bench.process import Process, python
from bench.scaling_model import Figures, limits_table, need, needs_table
from bench.serving import DURABLE, PROMETHEUS, RECEIVER, SMALLEST, at_rest, grpc_port, spanscore, yardstick_port
from bench.table import machine

PAGE: Final = Path(__file__).parents[1] / "docs" / "scaling.md"
BEGIN: Final = "<!-- figures: written by `python -m bench.scaling --write` -->"
END: Final = "<!-- end of figures -->"

_BALANCER: Final = Path(__file__).parents[1] / "deploy" / "kubernetes" / "gateway" / "collector-config.yaml"
_HELD_OPEN: Final = "traces: {trace_timeout: 1h, max_trace_age: 2h, max_bytes: 8GiB}\n"
_LOADS: Final = ((10_000, 30), (100_000, 30), (1_000_000, 10), (1_000_000, 30), (1_000_000, 300))
_DURATIONS_S: Final = (5, 30, 120, 600)
_SMALL: Final = (1, 5)
_SETTLE_S: Final = 2.5
"""How long traces wait for late spans, and a little more."""
_generations: Final = count(1)


class Speed(NamedTuple):
    """How fast one process is, and two."""

    us_per_span: float
    """CPU time of one that has all traces."""
    us_per_span_of_two: float
    """CPU time of two together."""
    wall_ratio: float
    """Spans answered each second by two, for each one that one process answers."""

    @property
    def ratio(self) -> float:
        """What two cores can do with two processes, for what one core can do with one."""
        return 2 * self.us_per_span / self.us_per_span_of_two


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="less load and fewer rounds: figures swing more")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scaling.md")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are stopped
    text = "\n".join(_report(quick=given.quick))
    print(text)
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0


def _report(*, quick: bool) -> Iterator[str]:
    traces, rounds = (200, 3) if quick else (500, 7)
    speed = _speed(traces, rounds)
    base, span = _memory(2 if quick else 8)
    collector = _collector(traces, rounds)
    figures = Figures(
        us_per_span=speed.us_per_span,
        us_per_span_of_collector=collector,
        base_bytes=base,
        bytes_per_open_span=span,
        counted_per_open_span=_counted(),
    )
    yield f"{machine()}{'; with --quick' if quick else ''}"
    yield ""
    yield "| measured | |"
    yield "| --- | --- |"
    per_core = 1e6 / speed.us_per_span
    yield f"| CPU of one process, a span | {speed.us_per_span:.1f} µs, so {per_core:,.0f} spans/s a core |"
    yield f"| two processes on two cores, for one on one | {speed.ratio:.2f}x by CPU time |"
    yield f"| the same, spans answered each second, senders on the same cores | {speed.wall_ratio:.2f}x |"
    spreading = "not measured: no Collector" if collector is None else f"{collector:.1f} µs of CPU a span"
    yield f"| the Collector that spreads spans over replicas | {spreading} |"
    for size, cost in _by_request(traces, rounds).items():
        yield f"| decoding, grouping and scoring alone, spans a request: {size} | {cost:.1f} µs of CPU a span |"
    yield f"| memory of a process | {base / 1e6:.0f} MB, and {span:,.0f} B an open span |"
    yield f"| counted for `max_bytes` | {figures.counted_per_open_span:,.0f} B an open span |"
    yield ""
    yield from needs_table([need(figures, rate, trace_s) for rate, trace_s in _LOADS])
    yield ""
    yield from limits_table(figures, _DURATIONS_S)


def _speed(traces: int, rounds: int) -> Speed:
    """Send one process all traces, and two of them half each, in turn."""
    halves = [workload.requests(traces, seed=seed) for seed in (1, 2)]
    spans = 2 * workload.span_count(traces)
    one_s, two_s, walls = [], [], []
    with ExitStack() as stack:
        alone, *pair = (stack.enter_context(_replica()) for _ in range(3))
        clients = {server.pid: GrpcClient(grpc_port(server)) for server in (alone, *pair)}
        for number in range(rounds + 1):
            first, second = (workload.renewed(half, next(_generations)) for half in halves)
            together = [body for both in zip(first, second, strict=True) for body in both]
            one = _sent({alone: together}, clients)
            two = _sent(dict(zip(pair, (first, second), strict=True)), clients)
            if number:
                one_s.append(one.cpu_s)
                two_s.append(two.cpu_s)
                walls.append(one.wall_s / two.wall_s)
    return Speed(median(one_s) / spans * 1e6, median(two_s) / spans * 1e6, median(walls))


class _Sent(NamedTuple):
    cpu_s: float
    wall_s: float
    """Until the last answer."""


def _sent(loads: dict[Process, list[bytes]], clients: dict[int, GrpcClient]) -> _Sent:
    before = sum(server.cpu_s() for server in loads)
    threads = [
        threading.Thread(target=clients[server.pid].send, args=(bodies,), daemon=True)
        for server, bodies in loads.items()
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall_s = time.perf_counter() - began
    time.sleep(_SETTLE_S)
    return _Sent(sum(map(at_rest, loads)) - before, wall_s)


def _by_request(traces: int, rounds: int) -> dict[int, float]:
    """Return the CPU time a span for requests of different size, in microseconds; in the small ones is one trace each.

    Records of Kafka are small: there is one for each trace in a batch of the Collector.
    """
    collect_rarely()
    config = scoring.loaded(scoring.AT_ONCE)
    pipeline, wanted = scoring.receiving(config)

    def taken(bodies: Sequence[bytes]) -> None:
        engine = scoring.engine(config, pipeline, time.monotonic)
        for body in bodies:
            request = scoring.decoded(body, wanted)
            engine.add(request.spans, request.sizes)

    loads = {size: partial(taken, workload.requests(traces, spans_per_request=size, concurrent=1)) for size in _SMALL}
    loads[workload.SPANS_PER_REQUEST] = partial(taken, workload.requests(traces))
    samples = interleaved({str(size): function for size, function in loads.items()}, rounds)
    return {size: typical(samples, str(size), workload.span_count(traces)) for size in loads}


def _memory(thousands: int) -> tuple[float, float]:
    """Return the memory of a process, and that of each span of open traces."""
    load = workload.requests(1_000, concurrent=1_000, roots=False)
    spans = 1_000 * (workload.OTHER_SPANS - 1 + workload.CALLS)
    with spanscore(SMALLEST + _HELD_OPEN, DECODERS[PLAIN]) as server:
        client = GrpcClient(grpc_port(server))
        base = server.memory()
        # What the first ones take beside, for buffers and tables, is the process's.
        client.send(workload.renewed(load, next(_generations)))
        warm = server.memory()
        for _ in range(thousands):
            client.send(workload.renewed(load, next(_generations)))
        span = (server.memory() - warm) / (thousands * spans)
    return max(base, warm - span * spans), span


def _counted() -> float:
    """Return what an open span counts for the limit of memory, in bytes."""
    config = scoring.loaded(_HELD_OPEN)
    pipeline, wanted = scoring.receiving(config)
    engine = scoring.engine(config, pipeline, time.monotonic)
    for body in workload.requests(1_000, concurrent=1_000, roots=False):
        request = scoring.decoded(body, wanted)
        engine.add(request.spans, request.sizes)
    counts = engine.counts()
    return counts.held_bytes / counts.live


def _collector(traces: int, rounds: int) -> float | None:
    """Return the CPU time a span of the Collector as deploy/kubernetes configures it, in microseconds."""
    program = peers.collector()
    if program is None:
        return None
    load = workload.requests(traces)
    taken = []
    with ExitStack() as stack:
        backends = [
            stack.enter_context(python("bench.yardsticks.grpc_identity", ready=r"grpc \d+\n")) for _ in range(2)
        ]
        server, port = stack.enter_context(_balancer(program, [yardstick_port(backend) for backend in backends]))
        client = GrpcClient(port)
        for _ in range(rounds + 1):
            before = server.cpu_s()
            client.send(workload.renewed(load, next(_generations)))
            time.sleep(1)  # its batches
            taken.append(at_rest(server) - before)
    return median(taken[1:]) / workload.span_count(traces) * 1e6


@contextmanager
def _balancer(program: Path, backends: Sequence[int]) -> Iterator[tuple[Process, int]]:
    """Run the shipped configuration, with backends of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    config = yaml.safe_load(_BALANCER.read_text(encoding="utf-8"))
    endpoint = {"endpoint": f"127.0.0.1:{port}", "max_recv_msg_size_mib": 64}
    config["receivers"]["otlp"]["protocols"] = {"grpc": endpoint}
    hostnames = [f"127.0.0.1:{backend}" for backend in backends]
    config["exporters"]["loadbalancing"]["resolver"] = {"static": {"hostnames": hostnames}}
    config["service"]["telemetry"] = {"metrics": {"level": "none"}}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "collector.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        command = [str(program), "--config", str(path)]
        with Process(command, "Everything is ready", {"SPANSCORE_TOKEN": "none is asked for"}) as process:
            yield process, port


def _replica() -> AbstractContextManager[Process]:
    """Run `spanscore serve` as a replica: what it takes, it keeps until it is scored."""
    return spanscore(RECEIVER + PROMETHEUS + DURABLE, DECODERS[PLAIN])


if __name__ == "__main__":
    sys.exit(main())
