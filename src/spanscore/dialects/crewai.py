"""CrewAI under OpenLLMetry."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _messages as messages
from spanscore.dialects._literals import printed
from spanscore.model import Span

_ROLE: Final = "crewai.agent.role"
_TASKS: Final = "crewai.crew.tasks_output"


class Crewai:
    """CrewAI: no span stands for a tool call, but the crew's prints the messages of all its tasks.

    The agent is known by its role. Under OpenInference CrewAI's spans need no more than that convention.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_ROLE, _TASKS}))
    reads = frozenset({_ROLE, _TASKS})

    def read(self, span: Span) -> Reading | None:
        role = content.text(span.attributes.get(_ROLE))
        return Reading(is_model=_TASKS in span.attributes, is_agent=True if role else None, agent=role)

    def read_model(self, span: Span) -> ModelReading | None:
        told = content.text(span.attributes.get(_TASKS))
        tasks = printed(told) if told else None
        return ModelReading(requests=messages.requests(tasks), answers=messages.answers(tasks)) if tasks else None
