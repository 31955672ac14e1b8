"""CrewAI's own spans, and CrewAI under OpenLLMetry."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import gen_ai
from spanscore.dialects._literals import printed
from spanscore.model import Span

_ROLE: Final = "crewai.agent.role"
_TASKS: Final = "crewai.crew.tasks_output"
_EVENT: Final = "crewai.event_name"
_FAILURE: Final = "tool_failure_detected"


class Crewai:
    """CrewAI's own spans, and the spans of a crew by OpenLLMetry's instrumentor (recorded with crewai 1.15.30).

    CrewAI's spans follow the GenAI conventions. `crewai.agent.role` names the agent. A failed call has a second
    span beside its own, with the `crewai.event_name` `tool_failure_detected`. OpenLLMetry's span of a crew holds
    the messages of all tasks as printed text, in `crewai.crew.tasks_output`. The dialect `openinference` reads
    CrewAI's spans by OpenInference.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_ROLE, _TASKS, _EVENT}))
    reads = gen_ai.READS | {_ROLE, _TASKS}

    def read(self, span: Span) -> Reading | None:
        role = content.text(span.attributes.get(_ROLE))
        is_failure = span.attributes.get(_EVENT) == _FAILURE
        return Reading(
            call=_failure(span) if is_failure else None,
            part_of_call=is_failure,
            is_model=_TASKS in span.attributes,
            is_agent=True if role and _EVENT not in span.attributes else None,
            agent=role,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        told = content.text(span.attributes.get(_TASKS))
        tasks = printed(told) if told else None
        return ModelReading(requests=messages.requests(tasks), answers=messages.answers(tasks)) if tasks else None


def _failure(span: Span) -> CallReading:
    attributes = span.attributes
    return content.call(span, content.text(attributes.get(gen_ai.TOOL_NAME)), attributes.get(gen_ai.ARGUMENTS), None)
