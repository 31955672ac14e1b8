"""GitHub Copilot's own telemetry."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Span, changed

_HOOK: Final = "execute_hook"
_HOOK_TYPE: Final = "copilot_chat.hook_type"
_HOOK_INPUT: Final = "copilot_chat.hook_input"
_DECISION: Final = "github.copilot.hook.decision"
_SESSION: Final = "copilot_chat.chat_session_id"
_MCP_SERVER: Final = "github.copilot.tool.parameters.mcp_server_name_hash"
_MCP_TOOL: Final = "github.copilot.tool.parameters.mcp_tool_name"
_BEFORE: Final = frozenset({"PreToolUse", "preToolUse"})
_REFUSED: Final = frozenset({"block", "deny"})
_HASHED: Final = re.compile(r"[0-9a-f]{64}(?:/[0-9a-f]{64})?")
_DENIED: Final = "denied"


class GithubCopilot(FrameworkDialect):
    """Spans of GitHub Copilot: its command line (recorded with 1.0.102) and Visual Studio Code.

    They follow the GenAI conventions. Without content, the command line writes two hashes in place of the name of
    an MCP server's tool; they are not its name. A call that a hook refuses has a span: the command line marks the
    refusal there, the editor in the span of the hook, which has the call's id if content is recorded.
    """

    markers = Markers(
        attributes=frozenset({_HOOK_TYPE, _DECISION, _SESSION, _MCP_SERVER}), scopes=frozenset({"github.copilot"})
    )
    reads = gen_ai.READS | {_HOOK_INPUT, _MCP_TOOL}
    capture_settings = (CaptureSetting("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        operation = attributes.get(gen_ai.OPERATION)
        if operation == _HOOK:
            refused = _refused(span)
            return Reading(call=refused, part_of_call=True) if refused else None
        if operation == gen_ai.EXECUTE_TOOL:
            return Reading(call=_call(span), conversation_id=content.text(attributes.get(_SESSION)))
        return None


def _call(span: Span) -> CallReading:
    call = gen_ai.call(span)
    is_hashed = call.name is not None and _HASHED.fullmatch(call.name) is not None
    return changed(call, name=content.text(span.attributes.get(_MCP_TOOL))) if is_hashed else call


def _refused(span: Span) -> CallReading | None:
    """Return the call that a hook has refused. Without its id it could be any: the decision alone names a tool."""
    attributes = span.attributes
    if (
        content.text(attributes.get(_HOOK_TYPE)) not in _BEFORE
        or content.text(attributes.get(_DECISION)) not in _REFUSED
    ):
        return None
    given = content.decoded(attributes.get(_HOOK_INPUT))
    name, call_id = content.field(given, "tool_name"), content.field(given, "tool_use_id")
    if not isinstance(call_id, str) or not call_id:
        return None
    arguments = content.field(given, "tool_input")
    return CallReading(
        name=name if isinstance(name, str) and name else None,
        arguments=arguments if isinstance(arguments, dict) else NOT_RECORDED,
        error=content.named(_DENIED, span.status_message or "a hook refused the call"),
        error_type=_DENIED,
        # The editor's own id of a call follows the model's.
        call_id=call_id.partition("__vscode")[0],
    )
