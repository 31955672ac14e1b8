"""P1, P2: from a request's bytes to spans, traces and scores, without any transport."""

from __future__ import annotations

import time
from collections.abc import Iterator

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench import scoring, workload
from bench.goals import Row, Run, judged
from bench.measure import Samples, collect_rarely, interleaved, ratio, typical
from spanscore.otlp.from_json import decode_json
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.wiring import wanted

_CONFIG = scoring.AT_ONCE + scoring.FOUR_EVALUATORS


def rows(run: Run) -> Iterator[Row]:
    """Measure against parsing with the full schema, which is the least that every receiver in Python does."""
    collect_rarely()
    traces = 300 if run.quick else 1_000
    samples = measured(traces, rounds=3 if run.quick else 9)
    spans = workload.span_count(traces)
    raw = f"raw parse {typical(samples, 'raw parse', spans):.2f} µs a span"
    for number, name in (("P1", "grouped"), ("P2", "scored")):
        cost = typical(samples, name, spans)
        share = 1 / ratio(samples, name, "raw parse")
        yield judged(number, share, figure=f"{1e6 / cost:,.0f} spans/s ({cost:.2f} µs)", yardstick=raw)
    yield _for_comparison("decode only", "decoded", samples, spans, raw)
    yield _for_comparison("OTLP/JSON, decode and group", "JSON grouped", samples, spans, raw)


def measured(traces: int, rounds: int) -> Samples:
    """Return the CPU seconds of each way through the same load."""
    bodies = workload.requests(traces)
    in_json = workload.json_requests(traces)
    config = scoring.loaded(_CONFIG)
    keys = wanted(config).attributes

    def parsed() -> None:
        for body in bodies:
            ExportTraceServiceRequest.FromString(body)

    def decoded() -> None:
        for body in bodies:
            decode_protobuf(body, wanted=keys)

    def grouped() -> None:
        table = scoring.table(config)
        closed = sum(len(table.add(decode_protobuf(body, wanted=keys).spans, 0.0)) for body in bodies)
        _check(closed, traces)

    def grouped_from_json() -> None:
        table = scoring.table(config)
        closed = sum(len(table.add(decode_json(body, wanted=keys).spans, 0.0)) for body in in_json)
        _check(closed, traces)

    def scored() -> None:
        engine = scoring.engine(config, time.monotonic)
        reports = sum(len(engine.add(decode_protobuf(body, wanted=keys).spans)) for body in bodies)
        _check(reports, traces)

    functions = {
        "raw parse": parsed,
        "decoded": decoded,
        "grouped": grouped,
        "scored": scored,
        "JSON grouped": grouped_from_json,
    }
    return interleaved(functions, rounds)


def _check(found: int, expected: int) -> None:
    if found != expected:
        message = f"{found} traces came out of a load of {expected}"
        raise RuntimeError(message)


def _for_comparison(what: str, name: str, samples: Samples, spans: int, yardstick: str) -> Row:
    return Row(
        goal="",
        what=what,
        figure=f"{typical(samples, name, spans):.2f} µs a span",
        yardstick=yardstick,
        ratio=f"{1 / ratio(samples, name, 'raw parse'):.2f}x",
    )
