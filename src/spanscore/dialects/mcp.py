"""The Model Context Protocol, client side and server side."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai, openllmetry
from spanscore.model import NOT_RECORDED, Span

_METHOD: Final = "mcp.method.name"
_OPENLIT_METHOD: Final = "mcp.method"
_CALL: Final = "tools/call"
_OPENLLMETRY: Final = frozenset(
    {"opentelemetry.instrumentation.mcp", "opentelemetry.instrumentation.mcp.instrumentation"}
)


class Mcp:
    """The MCP SDK's own spans, OpenLLMetry's and OpenLIT's.

    Client and server each have one for a call; the server's tells errors.

    `jsonrpc.request.id` numbers requests on a connection and is not the model's call id.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_METHOD, _OPENLIT_METHOD}), scopes=_OPENLLMETRY)
    reads = gen_ai.READS | openllmetry.READS | {_METHOD, _OPENLIT_METHOD, "mcp.request.payload", "mcp.response.payload"}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get(_METHOD) == _CALL:
            name = content.text(attributes.get(gen_ai.TOOL_NAME)) or span.name.rpartition(f"{_CALL} ")[2]
            given, answer = attributes.get(gen_ai.ARGUMENTS), attributes.get(gen_ai.RESULT)
            return Reading(call=content.call(span, name, given, answer, attributes.get(gen_ai.CALL_ID)))
        if attributes.get(_OPENLIT_METHOD) == "call_tool":
            return Reading(call=_openlit(span))
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
        error_type=content.error_type(span),
    )


def _openlit(span: Span) -> CallReading:
    """Read `{"params": {"args": [name, arguments]}}`, what the client's method was called with, or the same by name."""
    params = content.field(content.decoded(span.attributes.get("mcp.request.payload")), "params")
    name, arguments = content.field(params, "name"), content.field(params, "arguments")
    match params:
        case {"args": [str(called), *given]}:
            name, arguments = called, given[0] if given else {}
    response = content.decoded(span.attributes.get("mcp.response.payload"))
    failed = content.field(response, "isError") is True
    return CallReading(
        name=content.text(name),
        arguments=arguments if isinstance(arguments, dict) else NOT_RECORDED,
        error=content.error(span) or ("the tool failed" if failed else None),
        error_type=content.error_type(span),
    )
