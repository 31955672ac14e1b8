"""The Claude Agent SDK under OpenInference."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallRequest, CallState, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span, changed

_SCOPES: Final = frozenset(
    {"openinference.instrumentation.claude_agent_sdk", "@arizeai/openinference-instrumentation-claude-agent-sdk"}
)
_FINISH_REASON: Final = "llm.finish_reason"
_ABANDONED: Final = "Abandoned"
_REFUSED: Final = ("Claude requested permissions to use ", "PreToolUse:")
"""Beginnings of the failure of a call that nobody has allowed, or that a hook has blocked."""
_SUBAGENTS: Final = frozenset({"Agent", "Task"})
"""The tool that starts a sub-agent, in later and earlier versions."""


class ClaudeAgentSdk(FrameworkDialect):
    """Tool spans of the Claude Agent SDK, Python and TypeScript, by OpenInference's instrumentors.

    Recorded with @arizeai/openinference-instrumentation-claude-agent-sdk 0.3.1 and the Python package 0.1.22. Results
    are MCP content blocks. A status message that begins with `Abandoned` marks a call without a result: it was refused
    or interrupted, or deferred if the agent's span has the `llm.finish_reason` `tool_deferred`. Other messages show
    that nobody allowed a call, or that a hook blocked it. The call that starts a sub-agent names it; the span of the
    sub-agent below it has the name of the tool.
    """

    markers = Markers(scopes=_SCOPES)
    reads = openinference.READS

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(openinference.KIND)
        if kind == "AGENT" and content.first_text(span.attributes, openinference.AGENT_NAME) in _SUBAGENTS:
            return Reading(is_agent=False)
        if kind == "AGENT" and span.attributes.get(_FINISH_REASON) == "tool_deferred":
            return Reading(waits=(CallRequest(name=""),))
        if kind != "TOOL":
            return None
        call = openinference.call(span)
        agent = content.text(content.field(call.arguments, "subagent_type")) if call.name in _SUBAGENTS else None
        return Reading(
            call=changed(call, result=messages.told(call.result), state=_state(span)),
            is_agent=True if agent else None,
            agent=agent,
        )


def _state(span: Span) -> CallState:
    if span.status_message.startswith(_REFUSED):
        return "refused"
    return "uncertain" if span.status_message.startswith(_ABANDONED) else "made"
