"""The honest ones of `fairness.py`: agents with stock exporters.

Run as a program, it is one of them: `fairness_honest.py PROTOCOL ENDPOINT`. Once it has run a few times it prints
a line that says so, and on SIGINT it ends and prints another, of JSON.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

told_to_end = threading.Event()
if __name__ == "__main__":  # before the libraries, whose import takes its time
    signal.signal(signal.SIGINT, lambda *_: told_to_end.set())

from opentelemetry.sdk.resources import Resource  # noqa: E402
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult  # noqa: E402

TOOLS: Final = 3
"""Tool calls of each run."""

RUNNING: Final = "running"
"""What an agent prints once it has run a few times."""

_FEW: Final = 3
_PAUSE_S: Final = 0.05
_FLUSH_MS: Final = 60_000


class Watched(SpanExporter):
    """A stock exporter, of which it is noted how long each export took and whether it ended well."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter: Final = exporter
        self.seconds: Final[list[float]] = []
        self.failed = 0
        """Spans."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export, with all the retries that the stock exporter knows."""
        began = time.monotonic()
        result = self._exporter.export(spans)
        self.seconds.append(time.monotonic() - began)
        if result is not SpanExportResult.SUCCESS:
            self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()


def stock_exporter(protocol: str, endpoint: str) -> SpanExporter:
    """Return the exporter of OpenTelemetry's own distribution, as an application sets it up."""
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as OverGrpc  # noqa: PLC0415

        return OverGrpc(endpoint=endpoint, insecure=True)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as OverHttp  # noqa: PLC0415

    return OverHttp(endpoint=f"{endpoint}/v1/traces")


def run(protocol: str, endpoint: str, ending: threading.Event) -> dict[str, object]:
    """Be an agent until it is to end, and return what was sent and how it went."""
    watched = Watched(stock_exporter(protocol, endpoint))
    provider = TracerProvider(resource=Resource({"service.name": f"honest-{protocol}"}))
    processor = BatchSpanProcessor(watched, schedule_delay_millis=250, max_queue_size=100_000)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("agent")
    sent = []
    while not ending.wait(_PAUSE_S):
        with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}) as root:
            for number in range(TOOLS):
                tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool_{number}"}
                with tracer.start_as_current_span("execute_tool", attributes=tool):
                    pass
        sent.append(f"{root.get_span_context().trace_id:032x}")
        if len(sent) == _FEW:
            print(RUNNING, flush=True)
    provider.force_flush(_FLUSH_MS)
    provider.shutdown()
    return {"traces": sent, "seconds": watched.seconds, "failed": watched.failed}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], told_to_end)))
