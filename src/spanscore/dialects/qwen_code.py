"""Qwen Code."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span, reported_trace_id

_TOOL_EVENT: Final = "qwen-code.tool_call"
_EVENT: Final = "event.name"
_EXECUTION: Final = "execution_status"
_FUNCTION: Final = "function_name"
_CALL_ID: Final = "call_id"
_SESSION: Final = "session.id"
_DENIED: Final = "execution_denied"
"""The `error_type` of a call that the user, or a rule, did not allow."""


class QwenCode(FrameworkDialect):
    """Spans and log events `qwen-code.tool_call` of Qwen Code (recorded with 0.24.4).

    Its spans follow the GenAI conventions, and have no content without a setting; log events have the arguments. A
    call that was not started, as its tool is unknown or a rule denies it, has only a log event outside the trace, which
    is not read: it would be a run of its own.
    """

    markers = Markers(span_names=(_TOOL_EVENT,), log_names=(_TOOL_EVENT,))
    reads = content.READS | {
        _EVENT,
        _EXECUTION,
        _FUNCTION,
        _CALL_ID,
        _SESSION,
        "function_args",
        "success",
        "decision",
        "error_type",
        "error",
        "error.message",
    }
    capture_settings = (
        CaptureSetting("telemetry.includeSensitiveSpanAttributes: true in settings.json", scopes=("qwen-code",)),
    )

    def read(self, span: Span) -> Reading | None:
        if _TOOL_EVENT not in (span.name, span.attributes.get(_EVENT)):
            return None
        is_outside = reported_trace_id(span.trace_id) != span.trace_id
        if is_outside and span.attributes.get(_EXECUTION) == "not_started":
            return None
        return Reading(call=_logged(span), conversation_id=content.text(span.attributes.get(_SESSION)))


def _logged(span: Span) -> CallReading:
    attributes = span.attributes
    kind = content.text(attributes.get("error_type"))
    is_refused = kind == _DENIED or attributes.get("decision") == "reject"
    failed = content.is_false(attributes.get("success")) and not is_refused
    message = content.first_text(attributes, ("error.message", "error")) or ""
    return CallReading(
        name=content.text(attributes.get(_FUNCTION)),
        arguments=content.arguments(attributes.get("function_args")),
        error=(content.named(kind, message) or "error") if failed else None,
        error_type=kind if failed else None,
        call_id=content.identifier(attributes.get(_CALL_ID)),
        state="refused" if is_refused else "made",
    )
