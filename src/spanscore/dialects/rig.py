"""Rig."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span, changed

_OUTCOME: Final = "gen_ai.tool.call.outcome"
_ERROR_TYPE: Final = "gen_ai.tool.error.type"
_TARGET: Final = "target"
_RIG: Final = re.compile(r"rig(?:_\w+)?(?:::|$)")
_FAILED: Final = frozenset({"error", "denied"})
_NOT_RUN: Final = "rejected"
_LOGGED: Final = re.compile(r"Error while (?:executing|calling) tool: ")


class Rig(FrameworkDialect):
    """Tool spans of Rig, an agent framework in Rust (recorded with 0.38.2 and 0.44.0).

    They follow the GenAI conventions, with the outcome in `gen_ai.tool.call.outcome` instead of the status. A call
    that a hook skipped has not failed; a call that the tool refused has. A span without a tool's name is a call
    whose arguments are no JSON. Versions without outcomes show a failure only in a line of the log, which is an
    event of the span.
    """

    markers = Markers(attributes=frozenset({_OUTCOME, _ERROR_TYPE, _TARGET}))
    reads = gen_ai.READS | {_OUTCOME, _ERROR_TYPE, _TARGET}
    capture_settings = (CaptureSetting("record_content_telemetry(true)"),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(gen_ai.OPERATION) != gen_ai.EXECUTE_TOOL or not _is_rig(span):
            return None
        call = changed(gen_ai.call(span), name=content.text(attributes.get(gen_ai.TOOL_NAME)))
        return Reading(call=call if call.error is not None else _with_failure(span, call))


def _is_rig(span: Span) -> bool:
    attributes = span.attributes
    target = content.text(attributes.get(_TARGET)) or ""
    return _OUTCOME in attributes or _ERROR_TYPE in attributes or _RIG.match(target) is not None


def _with_failure(span: Span, call: CallReading) -> CallReading:
    attributes = span.attributes
    outcome, kind = content.text(attributes.get(_OUTCOME)), content.text(attributes.get(_ERROR_TYPE))
    if outcome in _FAILED or kind is not None:
        kind = kind or (outcome if outcome != "error" else None)
        told = call.result if isinstance(call.result, str) else ""
        return changed(call, error=content.named(kind, told) or "error", error_type=kind)
    if outcome is None and call.name is None:
        return changed(call, error=_NOT_RUN)
    logged = next((line for event in span.events if (line := _LOGGED.match(event.name))), None)
    return call if logged is None else changed(call, error=content.short(logged.string[logged.end() :]) or "error")
