"""Sends traces of an agent in many requests, as its exporter would while it runs."""

from __future__ import annotations

import heapq
import http.client
import itertools
import random
import threading
import time
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from deadline import DEADLINE_S

_TRACES_PER_SECOND: Final = 20
_LONGEST_GAP_S: Final = 2.0
_SENT_TWICE: Final = 0.05


ROOT: Final = f"{1:016x}"
"""The span id of every root."""


class Sender:
    """Sends traces to the Collector in requests that are seconds apart, until it is told to finish those begun."""

    def __init__(self, port: int, seed: int) -> None:
        self.expected: Final[dict[str, set[str]]] = {}
        """The tool calls of each trace, by its id."""
        self.sent_twice = 0
        self._port: Final = port
        self._chance: Final = random.Random(seed)
        self._ending: Final = threading.Event()
        self._order: Final = itertools.count()
        self._thread: Final = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Have the last requests sent."""
        self._ending.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=DEADLINE_S)
        waiting: list[tuple[float, int, bytes]] = []
        begun = itertools.count(1)
        while not self._ending.is_set() or waiting:
            now = time.monotonic()
            if not self._ending.is_set():
                self._plan(next(begun), now, waiting)
            while waiting and waiting[0][0] <= now:
                self._send(connection, heapq.heappop(waiting)[2])
            time.sleep(1 / _TRACES_PER_SECOND)
        connection.close()

    def _plan(self, number: int, now: float, waiting: list[tuple[float, int, bytes]]) -> None:
        requests, calls = _trace(number, self._chance)
        at = now
        for request in requests:
            at += self._chance.uniform(0, _LONGEST_GAP_S)
            heapq.heappush(waiting, (at, next(self._order), request))
            if self._chance.random() < _SENT_TWICE:
                heapq.heappush(waiting, (at + self._chance.uniform(0, 1), next(self._order), request))
                self.sent_twice += 1
        self.expected[f"{number:032x}"] = calls

    @staticmethod
    def _send(connection: http.client.HTTPConnection, request: bytes) -> None:
        while True:
            connection.request("POST", "/v1/traces", request, {"Content-Type": "application/x-protobuf"})
            with connection.getresponse() as answer:
                answer.read()
            if answer.status == http.HTTPStatus.OK:
                return
            time.sleep(0.1)  # its queue is full


def _trace(number: int, chance: random.Random) -> tuple[list[bytes], set[str]]:
    """Return the requests of a trace and its tool calls: steps of an agent, each with its calls, and the root last."""
    numbers = itertools.count(2)
    calls: set[str] = set()
    requests: list[list[Span]] = []
    for _ in range(chance.randint(2, 4)):
        step = next(numbers)
        spans = [_span(number, next(numbers), step) for _ in range(chance.randint(1, 3))]
        calls.update(span.span_id.hex() for span in spans)
        if chance.random() < 1 / 2:  # its calls are sent before it has ended
            requests.append(spans)
            spans = []
        requests.append([*spans, _span(number, step, 1, "step")])
    requests[-1].append(_span(number, 1, None, "invoke_agent shop"))
    return [_request(spans) for spans in requests], calls


def _span(trace: int, number: int, parent: int | None, name: str | None = None) -> Span:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"} if name is None else {}
    return Span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=_span_id(number),
        parent_span_id=b"" if parent is None else _span_id(parent),
        name=name or "execute_tool search",
        start_time_unix_nano=number,
        end_time_unix_nano=number + 1,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in tool.items()],
    )


def _request(spans: list[Span]) -> bytes:
    resource_spans = [ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])]
    return ExportTraceServiceRequest(resource_spans=resource_spans).SerializeToString()


def _span_id(number: int) -> bytes:
    return number.to_bytes(8, "big")
