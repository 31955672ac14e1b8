"""CrewAI under OpenLLMetry."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.model import Span

_ROLE: Final = "crewai.agent.role"


class Crewai:
    """CrewAI: the agent is known by its role. Under OpenInference its spans need no more than that convention."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_ROLE}))

    def read(self, span: Span) -> Reading | None:
        return Reading(is_agent=True, agent=content.text(span.attributes.get(_ROLE)))

    def read_model(self, span: Span) -> ModelReading | None:
        return None
