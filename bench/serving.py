"""Runs `spanscore serve` and others, sends them the same load, and compares what they take of the CPU."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from bench import workload
from bench.decoders import DECODERS
from bench.goals import Row, judged
from bench.measure import Samples, ratio, typical
from bench.process import Process, python
from spanscore.otlp.clean_requests import ASKED_BY

RECEIVER: Final = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:0"}
      http: {endpoint: "127.0.0.1:0"}
evaluators: {health: {type: tool_call_trajectory}}
"""
PROMETHEUS: Final = 'exporters:\n  prometheus: {endpoint: "127.0.0.1:0"}\n'
NOT_DURABLE: Final = "storage: {durability: none}\n"
DURABLE: Final = "storage: {durability: crash, max_size: 8GiB}\n"
SMALLEST: Final = RECEIVER + PROMETHEUS + NOT_DURABLE
"""One evaluator, and the page for Prometheus."""
_generations: Final = count(1)  # a server that is asked twice must not find the traces of the first time
SETTLE_S: Final = 2.5
"""How long traces wait for late spans by default, and a little more."""
SETTLE_SHIPPED_S: Final = 5.5
"""The same as shipped."""
_LOOK_S: Final = 0.25
_STILL: Final = 0.01
"""Of a CPU: what a server takes that has nothing left to do."""


Renewed: TypeAlias = Callable[[Sequence[bytes], int], Sequence[bytes]]
"""Returns a load with the same traces under other ids, for each generation others."""


class Client(Protocol):
    """Sends requests to one server."""

    def send(self, bodies: Sequence[bytes]) -> None:
        """Send, and return when all are answered."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """A server, and what sends to it."""

    process: Process
    client: Client
    settle_s: float = SETTLE_S
    """How long it takes until it has begun with all its work."""


@contextmanager
def spanscore(config: str, decoder: str) -> Iterator[Process]:
    """Run `spanscore serve` with one of the decoders; what it stores goes at the end."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "bench.yaml"
        path.write_text(config, encoding="utf-8")
        environment = {ASKED_BY: decoder, "XDG_STATE_HOME": directory}
        arguments = ("spanscore", "serve", "--config", str(path))
        with python(*arguments, ready="Let an agent send", environment=environment) as process:
            yield process
            if "durability: crash" in config and not any(each.is_file() for each in Path(directory).glob("*/**/*")):
                message = "nothing was stored"
                raise RuntimeError(message)


def as_shipped(port: int) -> str:
    """Return the configuration as shipped, with an OTLP receiver at a port of this machine to send to."""
    text = Path(__file__).with_name("shipped.yaml").read_text(encoding="utf-8")
    return text.replace("${env:SPANSCORE_EXPORT}", f"http://127.0.0.1:{port}")


def sink() -> Process:
    """Start a server that takes all that is sent to it over HTTP, and throws it away."""
    return python("bench.yardsticks.http", ready=r"http \d+\n")


def http_port(server: Process) -> int:
    """Return where `spanscore serve` takes OTLP over HTTP."""
    return _told_port(server, r"OTLP over HTTP +http://localhost:(\d+)")


def grpc_port(server: Process) -> int:
    """Return where `spanscore serve` takes OTLP over gRPC."""
    return _told_port(server, r"OTLP over gRPC +http://localhost:(\d+)")


def yardstick_port(server: Process) -> int:
    """Return the port of a yardstick."""
    return _told_port(server, r"(?:http|grpc) (\d+)\n")


def cpu_of(
    targets: Mapping[str, Target], load: Sequence[bytes], rounds: int, renewed: Renewed = workload.renewed
) -> Samples:
    """Send each server the load in turn, with new traces in each round, and return the CPU seconds that it took.

    A server is looked at until it has come to rest, so that what it does later is counted. The first round does not
    count.
    """
    samples: Samples = {name: [] for name in targets}
    with ThreadPoolExecutor(len(targets)) as pool:
        for number in range(rounds + 1):
            bodies = renewed(load, next(_generations))
            taken = {}
            for name, target in targets.items():
                before = target.process.cpu_s()
                target.client.send(bodies)
                taken[name] = pool.submit(_since, before, target)
            for name, found in taken.items():
                seconds = found.result()
                if number:
                    samples[name].append(seconds)
    return samples


def _since(before: float, target: Target) -> float:
    time.sleep(target.settle_s)
    return at_rest(target.process) - before


def judged_by_decoder(goal: str, samples: Samples, more: str, less: str, spans: int) -> Iterator[Row]:
    """Judge, for each decoder, what one way of serving takes against another; its name is before the decoder's."""
    for decoder in DECODERS:
        taken, yardstick = f"{more}, {decoder}", f"{less}, {decoder}"
        yield judged(
            goal,
            ratio(samples, taken, yardstick),
            what=decoder,
            figure=f"{typical(samples, taken, spans):.2f} µs of CPU a span",
            yardstick=f"{less} {typical(samples, yardstick, spans):.2f} µs",
        )


def at_rest(process: Process) -> float:
    """Wait until a server has nothing left to do, and return the CPU time that it has taken."""
    taken = process.cpu_s()
    while True:
        time.sleep(_LOOK_S)
        later = process.cpu_s()
        if later - taken < _STILL * _LOOK_S:
            return later
        taken = later


def _told_port(server: Process, pattern: str) -> int:
    found = re.search(pattern, server.greeting)
    if found is None:
        message = f"no port in {server.greeting!r}"
        raise RuntimeError(message)
    return int(found[1])
