"""Claude Code's own telemetry."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.model import Span

_SCOPE: Final = "com.anthropic.claude_code.tracing"
_TYPE: Final = "span.type"


class ClaudeCode:
    """Claude Code: `tool_name` is the name the model called, MCP server included.

    One call is several spans: the failure shows on `claude_code.tool.execution`, below the span of the call. Arguments
    are never exported.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(scopes=frozenset({_SCOPE}))
    reads = gen_ai.READS | {_TYPE, "tool_name", "tool_use_id", "error", "success"}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_TYPE)
        if kind == "tool":
            return Reading(call=_call(span))
        if kind == "tool.execution":
            failed = CallReading(error=_failure(span), error_type=content.error_type(span))
            return Reading(call=failed, part_of_call=True)
        return None

    def read_model(self, span: Span) -> ModelReading | None:
        return None


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    return CallReading(
        name=content.text(attributes.get("tool_name")) or content.text(attributes.get(gen_ai.TOOL_NAME)),
        result=content.decoded(content.in_event(span, "tool.output", "output")),
        error=content.error(span),
        error_type=content.error_type(span),
        call_id=content.identifier(attributes.get(gen_ai.CALL_ID)) or content.identifier(attributes.get("tool_use_id")),
    )


def _failure(span: Span) -> str | None:
    told = content.text(span.attributes.get("error"))
    failed = span.attributes.get("success") is False
    if told and content.exception(span) is None:
        return content.named(content.error_type(span), told)
    return content.error(span) or ("error" if failed else None)
