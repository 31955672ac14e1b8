"""The OpenAI Agents SDK under OpenInference."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.dialects import openinference
from spanscore.model import Span

_SCOPES: Final = frozenset(
    {"openinference.instrumentation.openai_agents", "@arizeai/openinference-instrumentation-openai-agents"}
)


class OpenaiAgents:
    """The OpenAI Agents SDK, Python and JavaScript, under the OpenInference instrumentors.

    A hand-off is written as a tool span though no tool ran, and the trace itself as an agent without a name.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(scopes=_SCOPES)

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(openinference.KIND)
        if kind == "TOOL" and span.name.startswith("handoff to "):
            return Reading(not_a_call=True)
        if kind == "AGENT" and not any(key in span.attributes for key in openinference.AGENT_NAME):
            return Reading(is_agent=False)
        return None

    def read_model(self, span: Span) -> ModelReading | None:
        return None
