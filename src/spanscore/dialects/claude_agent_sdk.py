"""The Claude Agent SDK under OpenInference."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from spanscore.contracts import CallRequest, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import openinference
from spanscore.model import Span

_SCOPES: Final = frozenset(
    {"openinference.instrumentation.claude_agent_sdk", "@arizeai/openinference-instrumentation-claude-agent-sdk"}
)
_FINISH_REASON: Final = "llm.finish_reason"
_ABANDONED: Final = "Abandoned"


class ClaudeAgentSdk:
    """Tool spans of the Claude Agent SDK, Python and TypeScript, by OpenInference's instrumentors.

    Recorded with @arizeai/openinference-instrumentation-claude-agent-sdk 0.3.1. Results are MCP content blocks. A
    status message that begins with `Abandoned` marks a call without a result: it was refused or interrupted, or
    deferred if the agent's span has the `llm.finish_reason` `tool_deferred`.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(scopes=_SCOPES)
    reads = openinference.READS

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(openinference.KIND)
        if kind == "AGENT" and span.attributes.get(_FINISH_REASON) == "tool_deferred":
            return Reading(waits=(CallRequest(name=""),))
        if kind != "TOOL":
            return None
        call = openinference.call(span)
        is_abandoned = span.status_message.startswith(_ABANDONED)
        return Reading(
            call=replace(call, result=messages.told(call.result), state="uncertain" if is_abandoned else "made")
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return None
