"""What `fairness.py` does to a receiver: a few hundred kilobytes each, from a sender without special rights."""

from __future__ import annotations

import gzip
import http.client
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Final

import grpc
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from conformance.doors import EXPORT
from conformance.processes import Process
from receivers.otlp_requests import request_of, simple_span, span_id
from spanscore.otlp.wire import length_delimited

LARGE: Final = 60 * 2**20
"""Bytes of the one large value: below the largest request."""

_TIMEOUT_S: Final = 120.0
_LONGEST_START_S: Final = 600.0


def post(running: Process, body: bytes, content_type: str = "application/x-protobuf", path: str = "/v1/traces") -> int:
    """Send a request, gzipped, and return the status; 0 where the connection broke."""
    host, port = running.http_address
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        headers = {"Content-Type": content_type, "Content-Encoding": "gzip"}
        connection.request("POST", path, body, headers)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def text(key: str, value: str) -> KeyValue:
    """Return an attribute with a text."""
    return KeyValue(key=key, value=AnyValue(string_value=value))


def large_among_small(number: int) -> bytes:
    """Return a request in which one span holds nearly all, beside two thousand that are dropped as duplicates.

    An attribute may be 1 MiB long, so that it takes many of them.
    """
    pieces = [text(f"gen_ai.input.messages.{piece}", "x" * 2**20) for piece in range(LARGE // 2**20)]
    large = simple_span(number, 1, attributes=pieces, parent_span_id=span_id(9))
    small = simple_span(number, 2, parent_span_id=span_id(1))
    return gzip.compress(request_of(large, *[small] * 2_000).SerializeToString(), 9)


def arrays_on_roots(first: int, roots: int = 15_000, items: int = 1_000) -> bytes:
    """Return a request of roots that each have an array of many items."""
    array = AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)] * items))
    spans = [simple_span(first + n, attributes=[KeyValue(key="a", value=array)]) for n in range(roots)]
    return gzip.compress(request_of(*spans).SerializeToString(), 9)


def many_attributes(first: int, spans: int = 65_000, attributes: int = 24) -> bytes:
    """Return a request of as many spans as there may be, each a root with attributes of its own."""
    pairs = [text(f"k{n}", "v") for n in range(attributes)]
    return gzip.compress(
        request_of(*[simple_span(first + n, attributes=pairs) for n in range(spans)]).SerializeToString(), 9
    )


def one_span_each(first: int, traces: int = 65_000) -> bytes:
    """Return a request of as many spans as there may be, each the root of a trace and as small as it can be."""
    return gzip.compress(request_of(*(simple_span(first + n) for n in range(traces))).SerializeToString(), 9)


def many_events(first: int, spans: int = 60, events: int = 128, attributes: int = 100) -> bytes:
    """Return a request of spans with as many events as are kept, each with attributes."""
    pairs = [text(f"k{n}", "v") for n in range(attributes)]
    event = Span.Event(name="e", time_unix_nano=1, attributes=pairs)
    made = [simple_span(first + n, events=[event] * events) for n in range(spans)]
    return gzip.compress(request_of(*made).SerializeToString(), 9)


def rootless(first: int, traces: int = 40_000) -> bytes:
    """Return a request of traces without a root, which are all due at the same time."""
    spans = [simple_span(first + n, 2, parent_span_id=span_id(1)) for n in range(traces)]
    return gzip.compress(request_of(*spans).SerializeToString(), 9)


def rootless_arrays(first: int, spans: int = 15_000, items: int = 1_000) -> bytes:
    """Return a request of open traces that each have an array of many items: at a start it is read again."""
    array = AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)] * items))
    made = [
        simple_span(first + n, 2, attributes=[KeyValue(key="a", value=array)], parent_span_id=span_id(1))
        for n in range(spans)
    ]
    return gzip.compress(request_of(*made).SerializeToString(), 9)


# JSON is put together piece by piece: to write it in one step would stop those who ask for `/livez` in this process.
_JSON_ATTRIBUTE: Final = '{"key":"gen_ai.k%d","value":{"stringValue":"some value %d"}}'
_JSON_SPAN: Final = (
    '{"traceId":"%032x","spanId":"%016x","name":"work","startTimeUnixNano":"1","endTimeUnixNano":"2",%s}'
)


def json_spans(first: int, traces: int = 2_500, spans: int = 20) -> bytes:
    """Return a request in JSON of traces of some spans, as an honest sender would write it."""
    pairs = ",".join(_JSON_ATTRIBUTE % (n, n) for n in range(8))
    child = f'"parentSpanId":"{1:016x}","attributes":[{pairs}]'
    pieces = ((first + trace, span, child) for trace in range(traces) for span in range(2, spans + 1))
    roots = ((first + trace, 1, f'"attributes":[{pairs}]') for trace in range(traces))
    return _in_json([_JSON_SPAN % piece for piece in (*pieces, *roots)])


def json_attributes(first: int, attributes: int = 900_000, more: str = "") -> bytes:
    """Return a request in JSON of one span with attributes, of which a thousand are kept."""
    pairs = ",".join(['{"key":"a","value":{"intValue":1}}'] * attributes)
    return _in_json([_JSON_SPAN % (first, 1, f'{more}"attributes":[{pairs}]')])


def _in_json(spans: list[str]) -> bytes:
    return gzip.compress(f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{",".join(spans)}]}}]}}]}}'.encode(), 9)


def at_once(
    running: Process, body: bytes, times: int, path: str = "/v1/traces", content_type: str = "application/json"
) -> list[int]:
    """Send a request, in JSON where nothing else is said, so many times at the same time, and return the statuses."""
    with ThreadPoolExecutor(times) as senders:
        return list(senders.map(lambda _: post(running, body, content_type, path), range(times)))


_FULL: Final = {
    "/v1/logs": '{"resourceLogs":[{"scopeLogs":[{"logRecords":[%s]}]}]}',
    "/v1/metrics": '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"gauge":{"dataPoints":[%s]}}]}]}]}',
    "/v1/traces": '{"resourceSpans":[{"scopeSpans":[{"spans":[' + _JSON_SPAN % (1, 1, '"events":[%s]') + "]}]}]}",
}
"""Requests in JSON by where they go, of which one list is to be filled."""


def full_of_nothing(path: str, size: int) -> bytes:
    """Return a request in JSON of about so many bytes: a list of empty objects."""
    return gzip.compress((_FULL[path] % ",".join(["{}"] * (size // 3))).encode(), 9)


def empty_records(size: int = LARGE) -> bytes:
    """Return a request in protobuf of so many bytes of empty log records."""
    return gzip.compress(_records(length_delimited(2, b"") * (size // 2)), 9)


def one_record(text: bytes, size: int = LARGE) -> bytes:
    """Return a request in protobuf of one log record, with so many bytes of a repeated text."""
    return gzip.compress(
        _records(length_delimited(2, length_delimited(5, length_delimited(1, text * (size // len(text)))))), 9
    )


def _records(content: bytes) -> bytes:
    return length_delimited(1, length_delimited(2, content))


def until_answered(url: str) -> None:
    """Return when a page says that all is well."""
    deadline = time.monotonic() + _LONGEST_START_S
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=_TIMEOUT_S).close()
        except OSError:  # nobody listens yet, or it says that all is not well
            time.sleep(0.02)
        else:
            return
    message = f"{url} never said that all is well"
    raise TimeoutError(message)


def kept_open(number: int, spans: int = 10) -> bytes:
    """Return a request of one open trace that takes tens of mebibytes of the storage."""
    pieces = [text(f"gen_ai.input.messages.{piece}", "x" * 2**20) for piece in range(5)]
    made = [simple_span(number, 2 + n, attributes=pieces, parent_span_id=span_id(1)) for n in range(spans)]
    return gzip.compress(request_of(*made).SerializeToString(), 9)


@contextmanager
def slow_bodies(running: Process, count: int = 64) -> Iterator[None]:
    """Announce bodies of three bytes, and do not send them."""
    head = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
    head += b"Content-Type: application/x-protobuf\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(closing(socket.create_connection(running.http_address))).sendall(head + b"\n")
        yield


@contextmanager
def idle_connections(running: Process, count: int = 1_000) -> Iterator[None]:
    """Hold connections of HTTP/2 on which nothing is asked, but the settings are answered, as clients of gRPC do."""
    settings, answer = (bytes([0, 0, 0, 4, flags, 0, 0, 0, 0]) for flags in (0, 1))
    with ExitStack() as stack:
        for _ in range(count):
            each = stack.enter_context(closing(socket.create_connection(("127.0.0.1", running.grpc_port))))
            each.settimeout(_TIMEOUT_S)
            each.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
            with suppress(OSError):  # there are so many already that this one is closed at once
                each.recv(65_536)
                each.sendall(answer)
        yield


def newcomer_s(running: Process) -> float:
    """Return after how many seconds a new client of gRPC is served."""
    began = time.monotonic()
    while time.monotonic() - began < _LONGEST_START_S:
        with grpc.insecure_channel(running.grpc, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            with suppress(grpc.RpcError):
                channel.unary_unary(EXPORT)(b"", timeout=1)
                return time.monotonic() - began
            time.sleep(0.1)
    message = "a new client of gRPC is never served"
    raise TimeoutError(message)


def repeated(running: Process, make: Callable[[int], bytes], times: int, apart: int = 1) -> list[int]:
    """Send a number of requests one after the other, and return the statuses."""
    return [post(running, make((1 << 64) + number * apart)) for number in range(times)]


def held_for(seconds: float) -> None:
    """Let something go on for so long."""
    time.sleep(seconds)


def long_runs(first: int, runs: int = 60, calls: int = 120) -> bytes:
    """Return a request of runs that fill the page of runs: each of many calls with long names."""
    operation = text("gen_ai.operation.name", "execute_tool")
    made = []
    for run in range(first, first + runs):
        for call in range(2, calls + 2):
            pairs = [operation, text("gen_ai.tool.name", f"{call}-" * 60)]
            made.append(simple_span(run, call, attributes=pairs, parent_span_id=span_id(1)))
        made.append(simple_span(run, 1))
    return gzip.compress(request_of(*made).SerializeToString(), 9)


@contextmanager
def deaf_readers(running: Process, readers: int = 200) -> Iterator[None]:
    """Have so many clients ask for each page, of runs, for programs and of metrics, who do not read what they get."""
    for number in range(4):
        post(running, long_runs((1 << 75) + number * 10**6))
        held_for(1.5)  # they are shown as soon as their root has ended half a second ago, and 80 in a second
    with ExitStack() as stack:
        for path in ("/", "/runs.json", "/metrics") * readers:
            client = stack.enter_context(socket.create_connection(running.pages, timeout=_TIMEOUT_S))
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield
