"""Puts a proxy that breaks connections between OpenTelemetry's own exporters and `spanscore serve`.

python tests/campaigns/chaos.py --seconds 10

Every kind of fault has its time: delays, a slow line, stalls, half-closed and reset connections, flipped, missing and
repeated bytes. The exporters retry as they do, and what they give up is exported again. In the end every trace that
was acknowledged must have been scored once and whole, whatever came twice.
"""

from __future__ import annotations

import argparse
import asyncio
import enum
import gc
import itertools
import json
import logging
import random
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, socket
from typing import Final

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from campaigns.load import wait_for_scores
from conformance.processes import process

CALLS: Final = 5

_CHUNK: Final = 4_096
_TIMEOUT_S: Final = 2
_STEPS_TO_CLOSE: Final = 3
_RST: Final = struct.pack("ii", 1, 0)
_CONFIGURATION: Final = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:0"}}
      http: {{endpoint: "127.0.0.1:0"}}
exporters: {{jsonl: {{path: {directory}/scores.jsonl}}}}
traces: {{decision_delay: 0s}}
storage: {{durability: crash, directory: {directory}/state}}
"""


class Fault(enum.Enum):
    """What the proxy does to what goes through it."""

    NONE = enum.auto()
    DELAY = enum.auto()
    RATE = enum.auto()
    STALL = enum.auto()
    HALF_CLOSE = enum.auto()
    RESET = enum.auto()
    BYTE_FLIP = enum.auto()
    TRUNCATE = enum.auto()
    DUPLICATE = enum.auto()


@dataclass
class Outcome:
    """What came of it."""

    acknowledged: int = 0
    """Traces."""
    given_up: int = 0
    """Exports that failed and were made again."""
    lost: int = 0
    """Acknowledged traces without a score."""
    incomplete: int = 0
    """Traces scored without some of their calls."""
    repeated: int = 0
    """Traces scored more than once."""
    faults: Counter[str] = field(default_factory=Counter)
    """How often something was done to a connection."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.lost or self.incomplete or self.repeated)


class Proxy:
    """Goes between clients and one port of a server, and breaks what goes through."""

    def __init__(self, target: tuple[str, int], seed: int) -> None:
        self.fault = Fault.NONE
        self.done: Final[Counter[str]] = Counter()
        self.port = 0
        self._target: Final = target
        self._random: Final = random.Random(seed)
        self._under_way: Final[set[asyncio.Task[object] | None]] = set()
        """The connections: an event loop does not keep a task that waits for one of which both ends are silent."""

    async def serve(self) -> None:
        """Accept connections until cancelled."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            await server.serve_forever()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind: list[asyncio.StreamWriter] = []
        self._under_way.add(task := asyncio.current_task())
        try:
            answers, upstream = await asyncio.open_connection(*self._target)
            behind.append(upstream)
            pumps = [self._pump(answers, [writer])]
            if self.fault is Fault.DUPLICATE:  # as if somebody sent everything again, on a connection of its own
                self.done["duplicate"] += 1
                unheard, again = await asyncio.open_connection(*self._target)
                behind.append(again)
                pumps.append(_drop(unheard))
            async with asyncio.TaskGroup() as group:
                for pump in (self._pump(reader, behind), *pumps):
                    group.create_task(pump)
        except* OSError:
            pass
        finally:
            for opened in (*behind, writer):
                opened.transport.abort()
            self._under_way.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writers: Sequence[asyncio.StreamWriter]) -> None:
        while chunk := await reader.read(_CHUNK):
            fault = self.fault
            if fault is not Fault.NONE and self._random.random() < 0.3:
                chunk = await self._break(fault, chunk, writers)
            for writer in writers:
                writer.write(chunk)
                await writer.drain()
        for writer in writers:
            with suppress(OSError):
                writer.write_eof()

    async def _break(self, fault: Fault, chunk: bytes, writers: Sequence[asyncio.StreamWriter]) -> bytes:
        if fault is Fault.DUPLICATE:
            if len(writers) == 1:  # those who are connected already connect anew
                raise ConnectionError
            return chunk
        self.done[fault.name.lower()] += 1
        at = self._random.randrange(len(chunk))
        writer = writers[0]
        match fault:
            case Fault.DELAY:
                await asyncio.sleep(self._random.uniform(0, 0.3))
            case Fault.RATE:
                await asyncio.sleep(len(chunk) / 20_000)
            case Fault.STALL:
                await asyncio.sleep(_TIMEOUT_S * 1.5)
            case Fault.HALF_CLOSE:
                writer.write(chunk[:at])
                writer.write_eof()
                raise ConnectionError
            case Fault.RESET:
                opened: socket = writer.get_extra_info("socket")
                opened.setsockopt(SOL_SOCKET, SO_LINGER, _RST)
                writer.transport.abort()
                raise ConnectionError
            case Fault.BYTE_FLIP:
                return chunk[:at] + bytes([chunk[at] ^ (1 << self._random.randrange(8))]) + chunk[at + 1 :]
            case Fault.TRUNCATE:
                return chunk[:at]
            case _:
                pass
        return chunk


async def _drop(reader: asyncio.StreamReader) -> None:
    while await reader.read(_CHUNK):
        pass


@contextmanager
def proxies(*made: Proxy) -> Iterator[None]:
    """Run proxies, in a thread."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # broken connections are the purpose
    tasks = [loop.create_task(proxy.serve()) for proxy in made]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    while not all(proxy.port for proxy in made):
        time.sleep(0.001)

    async def end() -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for _ in range(_STEPS_TO_CLOSE):
            await asyncio.sleep(0)

    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        del tasks
        with warnings.catch_warnings():  # connections that were accepted at the end are closed here
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


class _Agent:
    """Exports traces with an exporter of OpenTelemetry, each until it is taken."""

    def __init__(self, exporter: SpanExporter, outcome: Outcome, acknowledged: set[str]) -> None:
        self._exporter = exporter
        self._outcome = outcome
        self._acknowledged = acknowledged
        self._tracer = TracerProvider(shutdown_on_exit=False).get_tracer("agent")
        self.running = True

    def run(self) -> None:
        """Export one trace after the other."""
        while self.running:
            spans = self._trace()
            while self._exporter.export(spans) is not SpanExportResult.SUCCESS:
                self._outcome.given_up += 1
            self._acknowledged.add(f"{spans[-1].context.trace_id:032x}")  # type: ignore[union-attr]  # it has one
        self._exporter.shutdown()

    def _trace(self) -> Sequence[ReadableSpan]:
        spans = []
        with self._tracer.start_as_current_span("invoke_agent") as root:
            for number in range(CALLS):
                attributes = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": f"tool{number}",
                    "padding": random.randbytes(300).hex(),
                }
                with self._tracer.start_as_current_span("execute_tool", attributes=attributes) as span:
                    spans.append(span)
        return [*spans, root]  # type: ignore[list-item]  # spans of the SDK are readable


def run(directory: Path, seconds: float, faults: Sequence[Fault] = tuple(Fault), seed: int = 1) -> Outcome:
    """Give each fault that many seconds."""
    outcome = Outcome()
    acknowledged: set[str] = set()
    with process(directory, _CONFIGURATION.format(directory=directory)) as running:
        over_http = Proxy(running.http_address, seed)
        over_grpc = Proxy(("127.0.0.1", running.grpc_port), seed + 1)
        with proxies(over_http, over_grpc):
            agents = [
                _Agent(exporter, outcome, acknowledged)
                for exporter in itertools.chain(*((_http(over_http), _grpc(over_grpc)) for _ in range(2)))
            ]
            threads = [threading.Thread(target=agent.run) for agent in agents]
            for thread in threads:
                thread.start()
            for fault in faults:
                over_http.fault = over_grpc.fault = fault
                time.sleep(seconds)
            over_http.fault = over_grpc.fault = Fault.NONE
            for agent in agents:
                agent.running = False
            for thread in threads:
                thread.join()
        wait_for_scores(directory / "scores.jsonl", len(acknowledged))
        assert running.end() == 0
        outcome.faults = over_http.done + over_grpc.done
    _account(directory / "scores.jsonl", acknowledged, outcome)
    return outcome


def _http(proxy: Proxy) -> SpanExporter:
    url = f"http://127.0.0.1:{proxy.port}/v1/traces"
    return HttpExporter(url, timeout=_TIMEOUT_S, compression=Compression.Gzip)


def _grpc(proxy: Proxy) -> SpanExporter:
    # The checksum of gzip is what finds the flipped bytes that a line would not let through.
    endpoint = f"127.0.0.1:{proxy.port}"
    return GrpcExporter(endpoint, insecure=True, timeout=_TIMEOUT_S, compression=grpc.Compression.Gzip)


def _account(scores: Path, acknowledged: set[str], outcome: Outcome) -> None:
    calls = Counter[str]()
    for line in scores.read_text().splitlines():
        score = json.loads(line)
        outcome.repeated += score["trace_id"] in calls
        calls[score["trace_id"]] = len(score["tool_calls"])
    outcome.acknowledged = len(acknowledged)
    outcome.lost = len(acknowledged - calls.keys())
    outcome.incomplete = sum(calls[trace] != CALLS for trace in acknowledged & calls.keys())


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each kind of fault")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # what the exporters say about it
    with tempfile.TemporaryDirectory() as directory:
        outcome = run(Path(directory), arguments.seconds, seed=arguments.seed)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
