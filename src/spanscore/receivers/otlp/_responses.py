"""The bodies of OTLP's answers: partial success, and google.rpc.Status for errors, in both encodings."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # it lacks the marker py.typed
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

from spanscore.intake.intake import Answer
from spanscore.otlp.encoding import Encoding

# The codes of gRPC, as google.rpc.Status has them.
INVALID_ARGUMENT: Final = 3
NOT_FOUND: Final = 5
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
UNIMPLEMENTED: Final = 12
UNAVAILABLE: Final = 14
UNAUTHENTICATED: Final = 16

NOT_ALLOWED: Final = "a valid bearer token is needed"

_TYPE_URL: Final = "type.googleapis.com/google.rpc."


def success(answer: Answer, encoding: Encoding) -> bytes:
    """Return an ExportTraceServiceResponse, or in the same bytes one for logs or metrics.

    Its partial success is not set where there is nothing to tell.
    """
    if encoding is Encoding.JSON:
        return _json_success(answer)
    if not answer.message:
        return b""
    partial = ExportTracePartialSuccess(rejected_spans=answer.rejected_spans, error_message=answer.message)
    return ExportTraceServiceResponse(partial_success=partial).SerializeToString()


def _json_success(answer: Answer) -> bytes:
    if not answer.message:
        return b"{}"
    partial: dict[str, str] = {"errorMessage": answer.message}
    if answer.rejected_spans:
        key = "rejectedLogRecords" if answer.of_logs else "rejectedSpans"
        partial[key] = str(answer.rejected_spans)  # a 64-bit number, which JSON holds as text
    return json.dumps({"partialSuccess": partial}).encode()


def status(
    code: int,
    message: str,
    encoding: Encoding = Encoding.PROTOBUF,
    *,
    violation: str | None = None,
    retry_after_s: float | None = None,
) -> bytes:
    """Return a google.rpc.Status.

    Args:
        code: one of gRPC's.
        message: what is wrong.
        encoding: how to write it.
        violation: what is wrong with the request, as BadRequest.
        retry_after_s: when to send the request again, as RetryInfo.
    """
    if encoding is Encoding.JSON:
        return _json_status(code, message, violation, retry_after_s)
    answer = status_pb2.Status(code=code, message=message)
    if violation is not None:
        fault = error_details_pb2.BadRequest.FieldViolation(field="body", description=violation)
        answer.details.add().Pack(error_details_pb2.BadRequest(field_violations=[fault]))
    if retry_after_s is not None:
        answer.details.add().Pack(_retry_info(retry_after_s))
    body: bytes = answer.SerializeToString()
    return body


def retry_info(retry_after_s: float) -> bytes:
    """Return a google.rpc.RetryInfo by itself, which is what OpenTelemetry's exporter for Python looks for."""
    encoded: bytes = _retry_info(retry_after_s).SerializeToString()
    return encoded


def _retry_info(retry_after_s: float) -> Any:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(math.ceil(retry_after_s * 1000))
    return retry


def _json_status(code: int, message: str, violation: str | None, retry_after_s: float | None) -> bytes:
    details: list[dict[str, Any]] = []
    if violation is not None:
        faults = [{"field": "body", "description": violation}]
        details.append({"@type": f"{_TYPE_URL}BadRequest", "fieldViolations": faults})
    if retry_after_s is not None:
        details.append({"@type": f"{_TYPE_URL}RetryInfo", "retryDelay": f"{retry_after_s:.3f}s"})
    answer: dict[str, Any] = {"code": code, "message": message}
    return json.dumps(answer | {"details": details} if details else answer).encode()
