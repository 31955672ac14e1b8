"""How an agent's spans leave it: one function for each way in which an application can set OpenTelemetry up."""

import os
from collections.abc import Callable, Mapping

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

# What a door does not need is not imported: an agent that only sends has nothing of spanscore in it.


def otlp() -> None:
    """Send spans to a receiver."""
    _trace_through(BatchSpanProcessor(_otlp_exporter()))


def processor() -> None:
    """Score in the process, and send nothing."""
    from spanscore import ScoringSpanProcessor  # noqa: PLC0415 - see above

    _trace_through(ScoringSpanProcessor.from_config(os.environ["SPANSCORE_CONFIG"]))


def processor_beside_otlp() -> None:
    """Score in the process, and send the spans to a receiver too."""
    from spanscore import ScoringSpanProcessor  # noqa: PLC0415 - see above

    scoring = ScoringSpanProcessor.from_config(os.environ["SPANSCORE_CONFIG"])
    _trace_through(scoring, BatchSpanProcessor(_otlp_exporter()))


def exporter_around_otlp() -> None:
    """Score spans on their way to a receiver."""
    from spanscore import ScoringSpanExporter  # noqa: PLC0415 - see above

    _trace_through(BatchSpanProcessor(ScoringSpanExporter(_otlp_exporter(), os.environ["SPANSCORE_CONFIG"])))


def environment() -> None:
    """Do nothing: `opentelemetry-instrument` has done it all before the program begins."""


DOORS: Mapping[str, Callable[[], None]] = {
    door.__name__: door for door in (otlp, processor, processor_beside_otlp, exporter_around_otlp, environment)
}


def _trace_through(*processors: SpanProcessor) -> None:
    provider = TracerProvider()
    for one in processors:
        provider.add_span_processor(one)
    trace.set_tracer_provider(provider)


def _otlp_exporter() -> SpanExporter:
    if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - see above
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - see above
    return OTLPSpanExporter()
