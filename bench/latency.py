"""F6: how soon a request that completes traces is scored, on a server that is half busy."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Final

from bench import workload
from bench.clients import HttpClient
from bench.decoders import DECODERS
from bench.goals import GOALS, Cell, Row, Run, judged
from bench.measure import percentile
from bench.servers import SHIPPED, SMALL
from bench.serving import (
    SETTLE_S,
    SETTLE_SHIPPED_S,
    SMALLEST,
    Target,
    as_shipped,
    cpu_of,
    http_port,
    sink,
    spanscore,
    yardstick_port,
)
from spanscore.otlp.from_protobuf import decode_protobuf

P99: Final = "p99 at half load"

_LOAD: Final = 0.5
_PIPE_BYTES: Final = 1 << 20
_SCORED_WITHIN_S: Final = 60
_TRACES: Final = 1_000
_FIRST_GENERATION: Final = 1 << 20
"""None of those that `cpu_of` sends."""
_CONFIGS: Final = ((SMALL, 2.0, SETTLE_S), (SHIPPED, 5.0, SETTLE_SHIPPED_S))
"""The configurations, each with its `decision_delay` and the time until it rests."""


def rows(run: Run) -> Iterator[Row | Cell]:
    """Send requests at random times, and note when the scores of their traces come out.

    The time runs from before the last byte of the request is handed to the kernel to the arrival of the score's JSON
    line, less the time for which traces wait for late spans.
    """
    bodies = workload.requests(_TRACES)
    with sink() as receiver:
        for name, delay_s, settle_s in _CONFIGS:
            config = SMALLEST if name == SMALL else as_shipped(yardstick_port(receiver))
            for decoder, asked in DECODERS.items():
                found, share = _measured(config, asked, bodies, settle_s, during_s=5 if run.quick else 20)
                beyond = [(each - delay_s) * 1e3 for each in found]
                value = percentile(beyond, 99)
                figure = f"p99 {value:.1f} ms, p50 {median(beyond):.1f} ms"
                load = f"{len(found):,} traces at {share:.0%} of a core"
                if name == SMALL:
                    yield judged("F6", value, figure=figure, yardstick=load, what=decoder)
                else:
                    yield Row(goal="", what=f"{GOALS['F6'].what}: {name}, {decoder}", figure=figure, yardstick=load)
                yield Cell(f"{name}: {decoder}", P99, f"{value:.0f} ms")


def _measured(
    config: str, decoder: str, bodies: Sequence[bytes], settle_s: float, during_s: float
) -> tuple[list[float], float]:
    """Return for each trace the seconds from its root to its score, and the CPU time a second that this took."""
    with ExitStack() as stack:
        scores = stack.enter_context(_Scores.listening())
        config = config.replace("exporters:\n", f"exporters:\n  jsonl: {{path: {scores.path}}}\n")
        server = stack.enter_context(spanscore(config, decoder))
        target = Target(server, HttpClient(http_port(server)), settle_s)
        few = bodies[: len(bodies) // 2]
        every_s = median(cpu_of({"": target}, few, rounds=1)[""]) / len(few) / _LOAD
        began, cpu_before = time.perf_counter(), server.cpu_s()
        sent = _send_at_random(http_port(server), bodies, every_s, round(during_s / every_s))
        share = (server.cpu_s() - cpu_before) / (time.perf_counter() - began)
        scores.wait_for(sent.keys())
    return [scores.at[trace_id] - sent_at for trace_id, sent_at in sent.items()], share


def _send_at_random(port: int, bodies: Sequence[bytes], every_s: float, requests: int) -> dict[str, float]:
    """Send so many requests and return when each root span was sent, by trace id."""
    rng = random.Random(0)  # noqa: S311 - arrival times
    ids = [[span.trace_id for span in decode_protobuf(body).spans if not span.parent_span_id] for body in bodies]
    connection = http.client.HTTPConnection("127.0.0.1", port)
    sent: dict[str, float] = {}
    due = time.perf_counter()
    for number in range(requests):
        generation, index = divmod(number, len(bodies))
        body, *roots = workload.renewed([bodies[index], *ids[index]], _FIRST_GENERATION + generation)
        due += rng.expovariate(1 / every_s)
        time.sleep(max(0.0, due - time.perf_counter()))
        connection.putrequest("POST", "/v1/traces")
        connection.putheader("Content-Type", "application/x-protobuf")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:-1])
        at = time.perf_counter()
        connection.send(body[-1:])
        response = connection.getresponse()
        if response.status != HTTPStatus.OK:
            message = f"the server answered {response.status}: {response.read()[:200]!r}"
            raise RuntimeError(message)
        response.read()
        sent |= dict.fromkeys((trace_id.hex() for trace_id in roots), at)
    connection.close()
    return sent


class _Scores:
    """Reads the lines of scores from a pipe as they are written, and notes when each one comes."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.at: dict[str, float] = {}
        os.mkfifo(path)
        # Open for writing too, so that the server finds a reader and the pipe never ends.
        self._pipe = os.open(path, os.O_RDWR)
        fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator[_Scores]:
        """Give a pipe that is read."""
        with tempfile.TemporaryDirectory() as directory:
            scores = cls(Path(directory) / "scores.jsonl")
            yield scores
            os.write(scores._pipe, b"\n\n")
            scores._thread.join()
            os.close(scores._pipe)

    def wait_for(self, trace_ids: AbstractSet[str]) -> None:
        """Return when all these are scored."""
        deadline = time.monotonic() + _SCORED_WITHIN_S
        while not self.at.keys() >= trace_ids:
            if time.monotonic() > deadline:
                message = "not all traces were scored"
                raise RuntimeError(message)
            time.sleep(0.05)

    def _read(self) -> None:
        rest = b""
        while True:
            read = os.read(self._pipe, _PIPE_BYTES)
            at = time.perf_counter()
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                if not line:
                    return
                self.at[json.loads(line)["trace_id"]] = at
