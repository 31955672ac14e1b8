"""The Model Context Protocol, client side and server side."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import gen_ai, openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Recorded, Span, changed

_METHOD: Final = "mcp.method.name"
_OTHER_METHOD: Final = "mcp.method"
_CALL: Final = "tools/call"
_TOOL: Final = "mcp.tool.name"
_RESOURCE: Final = "mcp.resource.name"
_TARGET: Final = "mcp.target"
_ROUTED: Final = "route to backend"
_BACKEND: Final = "mcp.backend.name"
_ERROR_CODE: Final = "mcp.error.code"
_ERROR_MESSAGE: Final = "mcp.error.message"
_RESULT_KEYS: Final = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_OPENLLMETRY: Final = frozenset(
    {"opentelemetry.instrumentation.mcp", "opentelemetry.instrumentation.mcp.instrumentation"}
)


class Mcp(FrameworkDialect):
    """Spans of MCP: the SDK's own, OpenLLMetry's and OpenLIT's, and those of Envoy AI Gateway and agentgateway.

    Client and server each have a span of a call, with the `mcp.method.name` `tools/call`; the server's has the
    error. The span of a gateway is between them. A gateway may change the tool's name by a prefix: `backend__tool`,
    `target_tool`. `jsonrpc.request.id` numbers requests on a connection; it is not the model's call id.
    """

    markers = Markers(attributes=frozenset({_METHOD, _OTHER_METHOD}), scopes=_OPENLLMETRY)
    reads = (
        gen_ai.READS
        | openllmetry.READS
        | {_TOOL, _RESOURCE, _TARGET, _ERROR_CODE, _ERROR_MESSAGE}
        | {"mcp.request.payload", "mcp.response.payload"}
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        # agentgateway's first versions; OpenLIT calls what the client does by the name of its method in Python.
        if attributes.get(_METHOD) == _CALL or (attributes.get(_OTHER_METHOD) == _CALL and _TARGET in attributes):
            return Reading(call=_call(span))
        if attributes.get(_OTHER_METHOD) == "call_tool":
            return Reading(call=_openlit(span))
        if span.scope in _OPENLLMETRY and attributes.get(openllmetry.KIND) == "tool":
            return Reading(call=_openllmetry(span))
        return None


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    in_name = span.name.rpartition(f"{_CALL} ")
    name = content.first_text(attributes, (gen_ai.TOOL_NAME, _TOOL, _RESOURCE)) or (in_name[1] and in_name[2]) or None
    call = gen_ai.call(span)
    error, error_type = call.error, call.error_type
    code, message = attributes.get(_ERROR_CODE), content.text(attributes.get(_ERROR_MESSAGE))
    if code is not None or message is not None:
        error_type = error_type or (None if code is None else str(code))
        error = content.named(error_type, message or "") or error
    result = returned(call.result)
    if error is None and content.field(call.result, "isError") is True:
        error = content.short(str(result)) or "error"
    others = _other_names(span, name) if name else ()
    return changed(call, name=name, result=result, error=error, error_type=error_type, other_names=others)


def _other_names(span: Span, name: str) -> tuple[str, ...]:
    """Return what the tool is called on the other side of a gateway that serves several servers as one."""
    backend = content.text(content.in_event(span, _ROUTED, _BACKEND))
    behind = name.removeprefix(f"{backend}__") if backend else name
    target = content.text(span.attributes.get(_TARGET))
    before = f"{target}_{name}" if target else name
    return tuple(other for other in (behind, before) if other and other != name)


def returned(result: Recorded) -> Recorded:
    """Return what the tool returned, of the protocol's whole answer: its one text, or its structured content."""
    if not isinstance(result, dict) or not isinstance(result.get("content"), list) or result.keys() - _RESULT_KEYS:
        return result
    parts: Recorded = result["content"]
    told = messages.told(parts)
    structured = result.get("structuredContent")
    return structured if told is parts and structured is not None else told


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
