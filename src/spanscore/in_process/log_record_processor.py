"""spanscore inside an agent's process: a log record processor, for instrumentations that write content into logs."""

from __future__ import annotations

from typing import Final

from opentelemetry.sdk._logs import LogRecordProcessor, ReadWriteLogRecord

from spanscore.in_process.processor import ScoringSpanProcessor
from spanscore.in_process.timeouts import DEFAULT_TIMEOUT_MS


class ScoringLogRecordProcessor(LogRecordProcessor):
    """Hands log records about an agent's work to the processor that scores its spans. Add it to the logger provider.

        spans = ScoringSpanProcessor.from_config("spanscore.yaml")
        tracer_provider.add_span_processor(spans)
        logger_provider.add_log_record_processor(ScoringLogRecordProcessor(spans))

    Needed if an instrumentation writes the messages of models and tools into logs and not into spans
    (`OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=EVENT_ONLY`). Other records are ignored.

    Args:
        spans: the processor that scores, with its configuration.
    """

    def __init__(self, spans: ScoringSpanProcessor) -> None:
        self._spans: Final = spans

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        """Queue a record, where a dialect reads it. Neither waits nor raises."""
        if self._spans.reads(log_record):
            self._spans.on_log(log_record)

    def force_flush(self, timeout_millis: float | None = DEFAULT_TIMEOUT_MS) -> bool:
        """Score and send what was queued, and return whether that was done within the timeout."""
        return self._spans.force_flush(timeout_millis)

    def shutdown(self) -> None:
        """Do nothing: the end of the spans is that of the scores."""
