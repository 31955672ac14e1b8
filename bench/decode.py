"""P1, P2: from a request's bytes to spans, traces and scores, without any transport."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

from bench import recorded, scoring, workload
from bench.decoders import DECODERS, FAST, PLAIN
from bench.goals import Row, Run, judged
from bench.measure import Samples, collect_rarely, interleaved, ratio, typical
from spanscore.config.parts import wanted
from spanscore.otlp.findings import Decoded
from spanscore.otlp.from_json import decode_json
from spanscore.otlp.from_logs import decode_logs
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.trajectories.wanted import WantedAttributes

_RECORDS = 8_192
_CONFIG = scoring.AT_ONCE + scoring.FOUR_EVALUATORS

_Decode: TypeAlias = Callable[[bytes, WantedAttributes | None], Decoded]
_WAYS: Final[dict[str, _Decode]] = {
    FAST: partial(scoring.decoded, plain=False),
    PLAIN: scoring.decoded,
}


def rows(run: Run) -> Iterator[Row]:
    """Measure against parsing with the full schema, which is the least that every receiver in Python does."""
    collect_rarely()
    traces, rounds = (300, 3) if run.quick else (1_000, 9)
    bodies = workload.requests(traces)
    spans = workload.span_count(traces)
    samples = measured(bodies, rounds, traces)
    raw = f"raw parse {typical(samples, 'raw parse', spans):.2f} µs a span"
    for decoder in DECODERS:
        for number, name in (("P1", "grouped"), ("P2", "scored")):
            cost = typical(samples, f"{name}, {decoder}", spans)
            share = 1 / ratio(samples, f"{name}, {decoder}", "raw parse")
            figure = f"{1e6 / cost:,.0f} spans/s ({cost:.2f} µs)"
            yield judged(number, share, figure=figure, yardstick=raw, what=decoder)
        yield _for_comparison(f"decode only: {decoder}", f"decoded, {decoder}", samples, spans, raw)
    samples = _of_json(workload.json_requests(traces), bodies, rounds, traces)
    yield _for_comparison("OTLP/JSON, decode and group", "grouped", samples, spans, raw)
    yield from _of_recordings(rounds)
    yield from _of_logs(rounds)


def _of_recordings(rounds: int) -> Iterator[Row]:
    bodies = recorded.requests()
    spans = sum(len(decode_protobuf(body).spans) for body in bodies)
    samples = measured(bodies, rounds)
    raw = f"raw parse {typical(samples, 'raw parse', spans):.2f} µs a span"
    for name in samples:
        if name != "raw parse":
            yield _for_comparison(f"recordings, {name}", name, samples, spans, raw)


def _of_logs(rounds: int) -> Iterator[Row]:
    """Measure records of which none is read, which are most, and such as all are; against parsing them in full."""
    names = wanted(scoring.loaded(_CONFIG)).log_names
    bodies = {name: _logs(name) for name in ("http.request", "gemini_cli.tool_call")}
    samples = interleaved(
        {
            "raw parse": lambda: ExportLogsServiceRequest.FromString(bodies["gemini_cli.tool_call"]),
            "unread": lambda: decode_logs(bodies["http.request"], names),
            "read": lambda: decode_logs(bodies["gemini_cli.tool_call"], names),
        },
        rounds,
    )
    raw = f"raw parse {typical(samples, 'raw parse', _RECORDS):.2f} µs a record"
    for what, name in (("logs, none of them read", "unread"), ("logs, all of them read", "read")):
        row = _for_comparison(what, name, samples, _RECORDS, raw)
        yield replace(row, figure=f"{typical(samples, name, _RECORDS):.2f} µs a record")


def _logs(name: str) -> bytes:
    """Return a request with records of one event, each with what Gemini CLI writes of a call."""
    told = {"function_name": "get_order", "function_args": '{"order": 4711}', "session.id": "s", "prompt_id": "p"}
    pairs = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in told.items()]
    records = [
        LogRecord(
            event_name=name,
            time_unix_nano=number,
            trace_id=number.to_bytes(16, "big"),
            attributes=pairs,
            body=AnyValue(string_value="Tool call: get_order. Success: true. Duration: 12ms."),
        )
        for number in range(1, _RECORDS + 1)
    ]
    scope = ScopeLogs(log_records=records)
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[scope])]).SerializeToString()


def measured(bodies: Sequence[bytes], rounds: int, traces: int | None = None) -> Samples:
    """Return the CPU seconds of each way through the same load, of which so many traces have to come out."""
    config = scoring.loaded(_CONFIG)
    pipeline, keys = scoring.receiving(config)

    def parsed() -> None:
        for body in bodies:
            ExportTraceServiceRequest.FromString(body)

    def decoded(decode: _Decode) -> None:
        for body in bodies:
            decode(body, keys)

    def grouped(decode: _Decode) -> None:
        table = scoring.table(config)
        _check(sum(len(table.add(decode(body, keys).spans, 0.0)) for body in bodies), traces)

    def scored(decode: _Decode) -> None:
        engine = scoring.engine(config, pipeline, time.monotonic)
        requests = (decode(body, keys) for body in bodies)
        _check(sum(len(engine.add(each.spans, each.sizes)) for each in requests), traces)

    functions = {
        f"{function.__name__}, {name}": partial(function, _WAYS[name])
        for function in (decoded, grouped, scored)
        for name in DECODERS
    }
    return interleaved({"raw parse": parsed, **functions}, rounds)


def _of_json(in_json: Sequence[bytes], bodies: Sequence[bytes], rounds: int, traces: int) -> Samples:
    config = scoring.loaded(_CONFIG)
    keys = wanted(config).attributes

    def parsed() -> None:
        for body in bodies:
            ExportTraceServiceRequest.FromString(body)

    def grouped() -> None:
        table = scoring.table(config)
        _check(sum(len(table.add(decode_json(body, wanted=keys).spans, 0.0)) for body in in_json), traces)

    return interleaved({"raw parse": parsed, "grouped": grouped}, rounds)


def _check(found: int, expected: int | None) -> None:
    if expected is not None and found != expected:
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
