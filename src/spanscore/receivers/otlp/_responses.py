"""The bodies of OTLP's answers: partial success, and google.rpc.Status for errors, in both encodings."""

from __future__ import annotations

import math
from typing import Any, Final

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # it lacks the marker py.typed
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsPartialSuccess, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsPartialSuccess,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from spanscore.otlp.encoding import Encoding
from spanscore.receivers.intake.intake import ExportResponse

# The codes of gRPC, as google.rpc.Status has them.
INVALID_ARGUMENT: Final = 3
NOT_FOUND: Final = 5
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
UNIMPLEMENTED: Final = 12
UNAVAILABLE: Final = 14
UNAUTHENTICATED: Final = 16

NOT_ALLOWED: Final = "a valid bearer token is needed"
ONLY_WITH_AN_EXPORTER: Final = "metrics are taken only with exporters.otlp"

_NOTHING: Final = {Encoding.PROTOBUF: b"", Encoding.JSON: b"{}"}


def success(answer: ExportResponse, encoding: Encoding) -> bytes:
    """Return an ExportTraceServiceResponse, or that of logs or metrics.

    Its partial success is not set if there is nothing to report.
    """
    if not answer.message:
        return _NOTHING[encoding]
    rejected, told = answer.rejected_spans, answer.message
    if answer.signal == "metrics":
        points = ExportMetricsPartialSuccess(rejected_data_points=rejected, error_message=told)
        return _encoded(ExportMetricsServiceResponse(partial_success=points), encoding)
    if answer.signal == "logs":
        logs = ExportLogsPartialSuccess(rejected_log_records=rejected, error_message=told)
        return _encoded(ExportLogsServiceResponse(partial_success=logs), encoding)
    spans = ExportTracePartialSuccess(rejected_spans=rejected, error_message=told)
    return _encoded(ExportTraceServiceResponse(partial_success=spans), encoding)


def status(
    code: int,
    message: str,
    encoding: Encoding = Encoding.PROTOBUF,
    *,
    violation: str | None = None,
    retry_after_s: float | None = None,
) -> bytes:
    """Return a google.rpc.Status, with a BadRequest if `violation` is given, and RetryInfo if `retry_after_s` is."""
    answer = status_pb2.Status(code=code, message=message)
    if violation is not None:
        fault = error_details_pb2.BadRequest.FieldViolation(field="body", description=violation)
        answer.details.add().Pack(error_details_pb2.BadRequest(field_violations=[fault]))
    if retry_after_s is not None:
        answer.details.add().Pack(_retry_info(retry_after_s))
    return _encoded(answer, encoding)


def retry_info(retry_after_s: float) -> bytes:
    """Return only a google.rpc.RetryInfo, which OpenTelemetry's exporter for Python reads."""
    return _encoded(_retry_info(retry_after_s), Encoding.PROTOBUF)


def _retry_info(retry_after_s: float) -> Any:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(math.ceil(retry_after_s * 1000))
    return retry


def _encoded(answer: Message, encoding: Encoding) -> bytes:
    return MessageToJson(answer, indent=None).encode() if encoding is Encoding.JSON else answer.SerializeToString()
