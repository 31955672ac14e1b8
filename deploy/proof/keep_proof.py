"""The section `keep` in line with a Collector: what of each trace is in Jaeger, and where exemplars lead."""

from __future__ import annotations

import random
import re
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from processes import Running, get, get_json
from programs import COLLECTOR, JAEGER, Programs
from results import Results
from spanscore.scoring.keep.sampling import randomness_of, threshold_of
from stack import IN_LINE, Stack

_CLAIM: Final = "with keep, traces are in Jaeger whole or not at all, and every exemplar's trace is there"
_SERVICE: Final = "keep"
_TRACES: Final = 200
_CALLS: Final = 4
_SHARE: Final = 0.3
_KEEP: Final = f"keep: {{mode: on, rules: [{{name: failing, when: {{verdict: fail}}}}], default: {_SHARE}}}\n"
_OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0"


def prove(results: Results, programs: Programs, directory: Path) -> None:
    """Run the configurations of a Collector in line, with the section."""
    results.section("keep: Collector → spanscore → Collector → Jaeger")
    if results.lacks(programs, _CLAIM, COLLECTOR, JAEGER):
        return
    with Running(directory) as running:
        results.check(_CLAIM, partial(_prove, Stack(running, programs, directory, IN_LINE)))


def _prove(stack: Stack) -> str:
    stack.start_jaeger()
    stack.start_scoring({"annotate:": f"{_KEEP}annotate:"})
    chance = random.Random(1)  # noqa: S311 - the same traces in each run
    failing = {chance.randbytes(16): chance.random() < _SHARE for _ in range(_TRACES)}
    for parts in zip(*(_requests(trace_id, fails=fails) for trace_id, fails in failing.items()), strict=True):
        _post(stack, [span for part in parts for span in part])
    stack.running.wait_for("all traces are decided", lambda: _decided(stack) == _TRACES)
    kept = {each for each, fails in failing.items() if fails or randomness_of(each) >= threshold_of(_SHARE)}
    stack.running.wait_for("all kept traces are in Jaeger", lambda: len(stack.traces(service=_SERVICE)) == len(kept))
    page = get(f"http://{stack.at['metrics']}/metrics", _OPENMETRICS)
    exemplars = set(re.findall(r'trace_id="([0-9a-f]{32})"', page))
    assert exemplars, "there is no exemplar"
    found = {trace["traceID"]: len(trace["spans"]) for trace in stack.traces(service=_SERVICE)}
    assert found.keys() == {each.hex() for each in kept}, "other traces are in Jaeger than are kept"
    assert set(found.values()) == {_CALLS + 1}, f"traces have {sorted(set(found.values()))} spans, not {_CALLS + 1}"
    assert exemplars <= found.keys(), "an exemplar leads nowhere"
    trace_id = min(exemplars)
    assert get_json(f"http://{stack.at['query']}/api/traces/{trace_id}")["data"], "Jaeger does not show its trace"
    told = f"{sum(failing.values())} of {_TRACES} traces fail"
    return f"{told}; {len(kept)} are in Jaeger, each with all its spans; {len(exemplars)} exemplars, such as {trace_id}"


def _requests(trace_id: bytes, *, fails: bool) -> list[list[Span]]:
    """Return the spans of a run in two requests: its calls, and then its root."""
    calls = [_span(trace_id, 2 + number, fails=fails) for number in range(_CALLS)]
    return [calls[:2], [*calls[2:], _span(trace_id, 1)]]


def _span(trace_id: bytes, number: int, *, fails: bool = False) -> Span:
    now_ns = time.time_ns()  # Jaeger looks for traces of the last hour
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool_{number}"}
    return Span(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=b"" if number == 1 else (1).to_bytes(8, "big"),
        name="run",
        start_time_unix_nano=now_ns - 10**9,
        end_time_unix_nano=now_ns,
        attributes=_texts({"gen_ai.operation.name": "invoke_agent"} if number == 1 else tool),
        status=Status(code=Status.STATUS_CODE_ERROR) if fails else None,
    )


def _texts(values: dict[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in values.items()]


def _post(stack: Stack, spans: list[Span]) -> None:
    message = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])
    message.resource_spans[0].resource.attributes.extend(_texts({"service.name": _SERVICE}))
    headers = {"Content-Type": "application/x-protobuf"}
    url = f"http://{stack.at['http']}/v1/traces"
    urllib.request.urlopen(urllib.request.Request(url, message.SerializeToString(), headers), timeout=20).close()


def _decided(stack: Stack) -> float:
    page = get(f"http://{stack.at['metrics']}/metrics", "text/plain")
    return sum(float(number) for number in re.findall(r"^spanscore_keep_traces_total\{.*\} (\S+)$", page, re.MULTILINE))
