"""The Model Context Protocol, client side and server side."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai, openllmetry
from spanscore.model import Span

_METHOD: Final = "mcp.method.name"
_CALL: Final = "tools/call"
_OPENLLMETRY: Final = frozenset({"opentelemetry.instrumentation.mcp", "opentelemetry.instrumentation.mcp.instrumentation"})


class Mcp:
    """The MCP SDK's own spans and OpenLLMetry's. Client and server each have one for a call; the server's tells errors.

    `jsonrpc.request.id` numbers requests on a connection and is not the model's call id.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_METHOD}), scopes=_OPENLLMETRY)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(_METHOD) == _CALL:
            return Reading(
                call=CallReading(
                    name=content.text(attributes.get(gen_ai.TOOL_NAME)) or span.name.rpartition(f"{_CALL} ")[2],
                    arguments=content.arguments(attributes.get(gen_ai.ARGUMENTS)),
                    result=content.decoded(attributes.get(gen_ai.RESULT)),
                    error=content.error(span),
                    call_id=content.identifier(attributes.get(gen_ai.CALL_ID)),
                )
            )
        if span.scope in _OPENLLMETRY and attributes.get(openllmetry.KIND) == "tool":
            return Reading(call=_openllmetry(span))
        return None

    def read_model(self, span: Span) -> ModelReading | None:
        return None


def _openllmetry(span: Span) -> CallReading:
    """Read `{"tool_name", "arguments"}` and `{"result", "is_error"}`, the shapes of one client call."""
    output = content.decoded(span.attributes.get(openllmetry.ENTITY_OUTPUT))
    result = content.field(output, "result")
    failed = content.field(output, "is_error") is True
    return CallReading(
        name=content.text(span.attributes.get(openllmetry.ENTITY_NAME)) or span.name.removesuffix(".tool"),
        arguments=content.field(content.decoded(span.attributes.get(openllmetry.ENTITY_INPUT)), "arguments"),
        result=content.decoded(result) if isinstance(result, str) else result,
        error=content.error(span) or (content.short(str(result)) or "error" if failed else None),
    )
