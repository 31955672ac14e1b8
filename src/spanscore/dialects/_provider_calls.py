"""Calls that a model's provider executes, and its requests for approval, as their APIs write them.

OpenAI has the items `mcp_call`, `mcp_approval_request` and `mcp_approval_response`, Anthropic the blocks `mcp_tool_use`
and `server_tool_use` with results whose type ends in `_tool_result`, and the GenAI conventions `server_tool_call`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanscore.contracts import CallReading, CallRequest
from spanscore.dialects import _content as content
from spanscore.model import NOT_RECORDED

GENERIC: Final = "server_tool_call"
"""The type of a call by the conventions, and the key of what it is given."""
MCP_CALL: Final = "mcp_call"
ASKS: Final = "mcp_approval_request"
DECISION: Final = "mcp_approval_response"
TYPES: Final = frozenset({GENERIC, MCP_CALL, "mcp_tool_use", "server_tool_use"})
"""The types of calls that a provider executes."""
ITEMS: Final = frozenset({MCP_CALL, ASKS, DECISION})
"""The types of OpenAI's items that are messages without a role."""
WORDS: Final = (*TYPES, ASKS)
"""Of which every text has one that holds such a call, or a request for approval."""

_APPROVED_AS: Final = "approval_request_id"
_ID: Final = ("id", "call_id", "tool_call_id")


def kind_of(node: Mapping[str, Any]) -> str | None:
    """Return the type of a message or a part of one; in a schema, that may be a list."""
    kind = node.get("type")
    return kind if isinstance(kind, str) else None


def is_result(kind: str) -> bool:
    """Return whether this is the type of a result of a call that Anthropic has executed."""
    return kind.endswith("_tool_result")


def asks_for_approval(node: Mapping[str, Any]) -> bool:
    """Return whether an object is a request for a person's approval."""
    if node.get("type") == ASKS:
        return True
    given = node.get(GENERIC)
    return isinstance(given, dict) and given.get("type") == ASKS


def call_id_of(node: Mapping[str, Any]) -> str | None:
    """Return the id of a call: that of the request for its approval, if there was one."""
    return content.text(node.get(_APPROVED_AS)) or content.first_text(node, _ID)


def request_of(node: Mapping[str, Any]) -> CallRequest | None:
    """Return the call that an object asks for, or asks a person to approve; None if it does not name the tool."""
    name = content.first_text(node, ("name", "toolName", "tool_name"))
    if name is None:
        return None
    fields = node.get(GENERIC)
    if isinstance(fields, dict):
        given = {key: value for key, value in fields.items() if key != "type"}
        arguments = content.arguments(given.get("arguments", given)) if given else NOT_RECORDED
    else:
        told = next((node[key] for key in ("arguments", "input", "args") if key in node), None)
        arguments = NOT_RECORDED if told is None else content.arguments(told)
    return CallRequest(name=name, arguments=arguments, call_id=call_id_of(node))


def answer_of(node: Mapping[str, Any]) -> CallReading | None:
    """Return the answer in an object that is an executed call, or a person's decision; None if it is neither.

    A call that is approved is executed by the provider when it answers: until then it waits.
    """
    kind, call_id = kind_of(node), call_id_of(node)
    if kind == DECISION:
        reason = content.text(node.get("reason")) or "denied"
        if content.is_false(node.get("approve")):
            return CallReading(call_id=call_id, state="refused", result=reason)
        return CallReading(call_id=call_id, state="waits")
    error = node.get("error")
    if kind != MCP_CALL or (error is None and node.get("output") is None):
        return None
    told = content.field(error, "message") if isinstance(error, dict) else error
    failure = None if error is None else content.short(told if isinstance(told, str) else "") or "error"
    return CallReading(call_id=call_id, result=content.reparsed(node.get("output", NOT_RECORDED)), error=failure)
