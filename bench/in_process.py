"""P6: what the agent's thread pays."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from opentelemetry._logs import set_logger_provider
from opentelemetry.context import Context
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer, set_span_in_context

from bench import workload
from bench.goals import Row, Run, judged
from bench.measure import Samples, ratio, typical
from bench.otlp import WorkloadSpan
from spanscore import ScoringSpanProcessor

_AnySpan = TypeVar("_AnySpan", bound=ReadableSpan)


def rows(run: Run) -> Iterator[Row]:
    """Measure the calling thread's CPU time, in an application that has both providers, as one that sees its scores."""
    logs = LoggerProvider()
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # the SDK leaves it untyped
    logs.add_log_record_processor(SimpleLogRecordProcessor(exporter))
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
