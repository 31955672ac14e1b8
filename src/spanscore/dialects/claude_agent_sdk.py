"""The Claude Agent SDK under OpenInference."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _messages as messages
from spanscore.dialects import openinference
from spanscore.model import Span

_SCOPES: Final = frozenset(
    {"openinference.instrumentation.claude_agent_sdk", "@arizeai/openinference-instrumentation-claude-agent-sdk"}
)


class ClaudeAgentSdk:
    """The Claude Agent SDK, Python and TypeScript, under OpenInference: results are MCP content blocks."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(scopes=_SCOPES)
    reads = openinference.READS

    def read(self, span: Span) -> Reading | None:
        if span.attributes.get(openinference.KIND) != "TOOL":
            return None
        call = openinference.call(span)
        return Reading(call=replace(call, result=messages.told(call.result)))

    def read_model(self, span: Span) -> ModelReading | None:
        return None
