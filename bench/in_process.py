"""P6, P9: what the agent's thread pays, and how soon it is scored."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from statistics import median
from typing import Final, TypeVar

from opentelemetry._logs import set_logger_provider
from opentelemetry.context import Context
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer, set_span_in_context

from bench import workload
from bench.goals import Row, Run, judged
from bench.measure import Samples, percentile, ratio, typical
from bench.otlp import WorkloadSpan
from spanscore import ScoringSpanProcessor

_AnySpan = TypeVar("_AnySpan", bound=ReadableSpan)

_SCORED_WITHIN_S: Final = 10
_IDLE_S: Final = 0.003
_WARM_UP: Final = 50


def rows(run: Run) -> Iterator[Row]:
    """Measure the calling thread's CPU time, then the time from the end of a root span to its score's log event.

    The application has a meter provider and a logger provider, as one that sees its scores has.
    """
    scored = _Scored()
    logs = LoggerProvider()
    logs.add_log_record_processor(scored)
    set_logger_provider(logs)
    set_meter_provider(MeterProvider())
    traces = 50
    spans = workload.span_count(traces)
    samples = _callers_cpu(traces, rounds=7 if run.quick else 31)
    batch = f"BatchSpanProcessor {typical(samples, 'batch', spans):.2f} µs"
    yield judged(
        "P6",
        ratio(samples, "on_end", "batch"),
        figure=f"{typical(samples, 'on_end', spans):.2f} µs",
        yardstick=batch,
    )
    yield Row(
        goal="",
        what="on_start, which BatchSpanProcessor leaves empty",
        figure=f"{typical(samples, 'on_start', spans):.2f} µs",
        yardstick=batch,
        ratio=f"{ratio(samples, 'on_start', 'batch'):.2f}x",
    )
    latencies, handovers = _latencies(scored, 300 if run.quick else 1_500)
    value = percentile(latencies, 99)
    yield judged(
        "P9",
        value,
        figure=f"p99 {value:.2f} ms, p50 {median(latencies):.2f} ms",
        yardstick=f"waking a thread p99 {percentile(handovers, 99):.2f} ms, p50 {median(handovers):.2f} ms",
    )


class _Kept(SpanProcessor):
    """Keeps what a tracer provider tells its processors."""

    def __init__(self) -> None:
        self.started: list[Span] = []
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        self.started.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


class _Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002 - the SDK's signature
        return SpanExportResult.SUCCESS


def _callers_cpu(traces: int, rounds: int) -> Samples:
    samples: Samples = {"on_start": [], "on_end": [], "batch": []}
    scoring, batch = ScoringSpanProcessor(), BatchSpanProcessor(_Nowhere())
    for number in range(rounds):
        kept = _Kept()
        provider = TracerProvider()
        provider.add_span_processor(kept)
        _run_agents(provider.get_tracer("shop.agents"), traces, seed=number)
        samples["on_start"].append(_timed(scoring.on_start, kept.started))
        for name, processor in (("on_end", scoring), ("batch", batch)):
            samples[name].append(_timed(processor.on_end, kept.ended))
            processor.force_flush()
    scoring.shutdown()
    batch.shutdown()  # type: ignore[no-untyped-call]  # the SDK leaves it untyped
    return samples


def _timed(function: Callable[[_AnySpan], None], spans: Sequence[_AnySpan]) -> float:
    gc.collect()
    began = time.thread_time()
    for span in spans:
        function(span)
    return time.thread_time() - began


def _run_agents(tracer: Tracer, traces: int, seed: int = 0) -> None:
    """Make the spans of the load, one trace after the other, with the SDK."""
    found: dict[bytes, list[WorkloadSpan]] = {}
    for span in workload.spans(traces, seed=seed):
        found.setdefault(span.trace_id, []).append(span)
    for *children, last in found.values():
        root = tracer.start_span(last.name, attributes=dict(last.attributes))
        context = set_span_in_context(root)
        for child in children:
            tracer.start_span(child.name, context, attributes=dict(child.attributes)).end()
        root.end()


class _Scored(LogRecordProcessor):
    """Notes when a score comes out."""

    def __init__(self) -> None:
        self.at = 0.0
        self.event = threading.Event()

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:  # noqa: ARG002 - the SDK's signature
        self.at = time.perf_counter()
        self.event.set()

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 0) -> bool:  # noqa: ARG002 - the SDK's signature
        return True


def _latencies(scored: _Scored, count: int) -> tuple[list[float], list[float]]:
    """Return milliseconds from a root span's end to its score, and from a queue's `put` to the waiting thread."""
    provider = TracerProvider()
    provider.add_span_processor(ScoringSpanProcessor())
    tracer = provider.get_tracer("shop.agents")
    waiting = _Waiting()
    latencies, handovers = [], []
    for number, trace in enumerate(_traces(count + _WARM_UP)):
        scored.event.clear()
        root = tracer.start_span(trace[-1].name, attributes=dict(trace[-1].attributes))
        context = set_span_in_context(root)
        for child in trace[:-1]:
            tracer.start_span(child.name, context, attributes=dict(child.attributes)).end()
        time.sleep(_IDLE_S)
        began = time.perf_counter()
        root.end()
        if not scored.event.wait(_SCORED_WITHIN_S):
            message = "a trace was not scored"
            raise RuntimeError(message)
        handed_over = waiting.measure()
        if number >= _WARM_UP:
            latencies.append((scored.at - began) * 1e3)
            handovers.append(handed_over * 1e3)
    waiting.stop()
    provider.shutdown()
    return latencies, handovers


def _traces(count: int) -> Iterator[list[WorkloadSpan]]:
    for number in range(count):
        yield list(workload.spans(1, seed=number))


class _Waiting:
    """A thread that waits at a queue: the least that any hand-over costs."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[float | None] = SimpleQueue()
        self._took: SimpleQueue[float] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def measure(self) -> float:
        time.sleep(_IDLE_S)
        self._queue.put(time.perf_counter())
        return self._took.get()

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (began := self._queue.get()) is not None:
            self._took.put(time.perf_counter() - began)
