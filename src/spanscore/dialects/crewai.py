"""CrewAI's own spans, and CrewAI under OpenLLMetry."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai
from spanscore.dialects._literals import literal, printed
from spanscore.model import JSON, NOT_RECORDED, LaterList, Recorded, Span

_ROLE: Final = "crewai.agent.role"
_TASKS: Final = "crewai.crew.tasks_output"
_EVENT: Final = "crewai.event_name"
_FLOW_NODE: Final = "flow.node.type"
"""Of a flow's root, under OpenInference: a flow that begins with a listener continues with a person's feedback."""
_FAILURE: Final = "tool_failure_detected"


class Crewai:
    """CrewAI's own spans, and the spans of a crew by OpenLLMetry's instrumentor (recorded with crewai 1.15.30).

    CrewAI's spans follow the GenAI conventions. `crewai.agent.role` names the agent. A failed call has a second
    span beside its own, with the `crewai.event_name` `tool_failure_detected`. OpenLLMetry's span of a crew holds
    the messages of all tasks as printed text, in `crewai.crew.tasks_output`. The dialect `openinference` reads
    CrewAI's spans by OpenInference.
    """

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({_ROLE, _TASKS, _EVENT, _FLOW_NODE}))
    reads = gen_ai.READS | {_ROLE, _TASKS, _FLOW_NODE}

    def read(self, span: Span) -> Reading | None:
        role = content.text(span.attributes.get(_ROLE))
        is_failure = span.attributes.get(_EVENT) == _FAILURE
        return Reading(
            call=_failure(span) if is_failure else None,
            part_of_call=is_failure,
            is_model=_TASKS in span.attributes,
            is_agent=True if role and _EVENT not in span.attributes else None,
            agent=role,
            resumes=not span.parent_span_id and span.attributes.get(_FLOW_NODE) == "listen",
        )

    def read_model(self, span: Span) -> ModelReading | None:
        told = content.text(span.attributes.get(_TASKS))
        tasks = printed(told) if told else None
        if tasks:
            return ModelReading(requests=messages.requests(tasks), answers=messages.answers(tasks))
        if _EVENT not in span.attributes:
            return None
        sent = span.attributes.get(gen_ai.INPUT)
        return ModelReading(history=LaterList(lambda: sent_messages.history(_unquoted(content.decoded(sent)))))


def _unquoted(sent: Recorded) -> list[JSON]:
    """Return messages to a model in which names and arguments of calls are printed, as Python does, without quotes."""
    told: list[JSON] = []
    for message in sent if isinstance(sent, list) else ():
        parts = content.field(message, "parts")
        calls = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        role = content.text(content.field(message, "role"))
        told.append({"role": role, "parts": [{key: _plain(value) for key, value in call.items()} for call in calls]})
    return told


def _plain(value: JSON) -> JSON:
    found = literal(value) if isinstance(value, str) and value.startswith("'") else value
    return value if found is NOT_RECORDED else found


def _failure(span: Span) -> CallReading:
    attributes = span.attributes
    return content.call(span, content.text(attributes.get(gen_ai.TOOL_NAME)), attributes.get(gen_ai.ARGUMENTS), None)
