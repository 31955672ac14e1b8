"""P8: how soon a request that completes traces is scored, on a server with little to do."""

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
from bench.goals import Row, Run, judged
from bench.measure import percentile
from bench.scoring import AT_ONCE
from bench.serving import NOT_DURABLE, RECEIVER, Target, cpu_of, http_port, spanscore
from spanscore.otlp.from_protobuf import decode_protobuf

_LOAD: Final = 0.15
_PIPE_BYTES: Final = 1 << 20
_SCORED_WITHIN_S: Final = 30


def rows(run: Run) -> Iterator[Row]:
    """Send requests at random times, and note when the scores of their traces come out.

    A trace is scored when its root comes, without a delay for late spans. The time runs from before the last byte of
    the request is handed to the kernel to the arrival of the score's JSON line.
    """
    for spans, goal in ((workload.SPANS_PER_REQUEST, "P8"), (32, "P8 small")):
        for decoder, asked in DECODERS.items():
            found, share = _measured(400 if run.quick else 2_000, spans, asked)
            value = percentile(found, 99)
            figure = f"p99 {value:.2f} ms, p50 {median(found):.2f} ms"
            load = f"{len(found):,} traces at {share:.0%} of a core"
            yield judged(goal, value, figure=figure, yardstick=load, what=decoder)


def _measured(traces: int, spans_per_request: int, decoder: str) -> tuple[list[float], float]:
    with ExitStack() as stack:
        scores = stack.enter_context(_Scores.listening())
        exporters = f'exporters: {{prometheus: {{endpoint: "127.0.0.1:0"}}, jsonl: {{path: {scores.path}}}}}\n'
        server = stack.enter_context(spanscore(RECEIVER + AT_ONCE + NOT_DURABLE + exporters, decoder))
        client = HttpClient(http_port(server))
        bodies = workload.requests(traces, spans_per_request=spans_per_request)
        few = bodies[: max(1, len(bodies) // 4)]
        busy_s = median(cpu_of({"": Target(server, client)}, few, rounds=2)[""]) / len(few)
        began, cpu_before = time.perf_counter(), server.cpu_s()
        sent = _send_at_random(http_port(server), bodies, busy_s / _LOAD)
        scores.wait_for(sent.keys())
        share = (server.cpu_s() - cpu_before) / (time.perf_counter() - began)
    return [(scores.at[trace_id] - sent_at) * 1e3 for trace_id, sent_at in sent.items()], share


def _send_at_random(port: int, bodies: Sequence[bytes], every_s: float) -> dict[str, float]:
    """Send the requests and return when each root span was sent, by trace id."""
    rng = random.Random(0)  # noqa: S311 - arrival times
    roots = [
        [span.trace_id.hex() for span in decode_protobuf(body).spans if not span.parent_span_id] for body in bodies
    ]
    connection = http.client.HTTPConnection("127.0.0.1", port)
    sent: dict[str, float] = {}
    due = time.perf_counter()
    for body, trace_ids in zip(bodies, roots, strict=True):
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
        sent |= dict.fromkeys(trace_ids, at)
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
