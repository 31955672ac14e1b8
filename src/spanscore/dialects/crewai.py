"""CrewAI's own spans, and CrewAI under OpenInference and OpenLLMetry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._literals import literal, printed
from spanscore.model import JSON, NOT_RECORDED, Later, LaterList, Recorded, Span, changed

_SCOPE: Final = "openinference.instrumentation.crewai"
_ROLE: Final = "crewai.agent.role"
_TASKS: Final = "crewai.crew.tasks_output"
_EVENT: Final = "crewai.event_name"
_FLOW_NODE: Final = "flow.node.type"
"""Of a flow's root, under OpenInference: a flow that begins with a listener continues with a person's feedback."""
_FAILURE: Final = "tool_failure_detected"
_USAGE: Final = "ToolUsage._use"
_CALLING: Final = re.compile(r"tool_name='[^'\n]*' arguments=(\{.*\}|None)", re.DOTALL)
_REMINDER: Final = "\n\n\nYou ONLY have access to the following tools"
"""The beginning of what CrewAI adds to every third result, for the model."""
_ENCOUNTERED: Final = "I encountered an error while trying to use the tool. This was the error: "
_ACCEPTED: Final = ".\n Tool "
_TO_COWORKERS: Final = frozenset({"Delegate work to coworker", "Ask question to coworker"})


class Crewai(FrameworkDialect):
    """CrewAI's own spans, and the spans of a crew by OpenInference and OpenLLMetry (recorded with crewai 1.15.30).

    CrewAI's spans follow the GenAI conventions. `crewai.agent.role` names the agent. A failed call has a second
    span beside its own, with the `crewai.event_name` `tool_failure_detected`. OpenInference writes no span for the
    run of a coworker: it is below the call that names the coworker. OpenLLMetry's span of a crew holds the messages
    and the failures of all tasks as printed text, in `crewai.crew.tasks_output`. With crewai 0.203 OpenInference names
    a call `ToolUsage._use`, and an error is part of the result.
    """

    markers = Markers(attributes=frozenset({_ROLE, _TASKS, _EVENT, _FLOW_NODE}), scopes=frozenset({_SCOPE}))
    reads = gen_ai.READS | openinference.READS | {_ROLE, _TASKS, _FLOW_NODE}

    def read(self, span: Span) -> Reading | None:
        if span.scope == _SCOPE and _FLOW_NODE not in span.attributes:
            return _usage(span) if span.name == _USAGE else _delegation(span)
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
        if isinstance(tasks, list):
            return ModelReading(
                requests=tuple(request for task in tasks for request in _requests(task)),
                answers=messages.answers(tasks),
                failures=Later(lambda: {key: text for task in tasks for key, text in _failures(task)}),
            )
        if told:
            return ModelReading(asks=True)  # it is cut off
        if _EVENT not in span.attributes:
            return None
        sent = span.attributes.get(gen_ai.INPUT)
        return ModelReading(history=LaterList(lambda: sent_messages.history(_unquoted(content.decoded(sent)))))


def _usage(span: Span) -> Reading:
    """Return the call as versions of OpenInference before 1.1 write it: the arguments are printed within an object."""
    call = openinference.call(span)
    calling = content.text(content.field(call.arguments, "calling"))
    printed_call = _CALLING.fullmatch(calling) if calling else None
    arguments: Recorded = NOT_RECORDED
    if printed_call is not None:
        arguments = {} if printed_call[1] == "None" else content.arguments(printed_call[1])
    result, failure = told_to_model(content.text(span.attributes.get(openinference.OUTPUT)))
    return Reading(
        call=changed(call, arguments=arguments, sole_argument=None, result=result, error=call.error or failure)
    )


def told_to_model(said: str | None) -> tuple[Recorded, str | None]:
    """Return the result of a tool in a text to the model, and a short text if the tool has failed."""
    if said is None:
        return NOT_RECORDED, None
    told = said.partition(_REMINDER)[0]
    failed = told.strip().startswith(_ENCOUNTERED)
    failure = told.strip().removeprefix(_ENCOUNTERED).partition(_ACCEPTED)[0]
    return content.decoded(told), content.short(failure) or "error" if failed else None


def _delegation(span: Span) -> Reading | None:
    """Return the call by which an agent lets a coworker work, whose calls are below it."""
    if content.text(span.attributes.get(openinference.TOOL_NAME)) not in _TO_COWORKERS:
        return None
    call = openinference.call(span)
    coworker = content.text(content.field(call.arguments, "coworker"))
    return Reading(call=call, is_agent=True if coworker else None, agent=coworker)


def _requests(task: JSON) -> Iterator[CallRequest]:
    agent = content.text(content.field(task, "agent"))
    for request in messages.requests(content.field(task, "messages")):
        yield changed(request, agent=agent)


def _failures(task: JSON) -> Iterator[tuple[str, str]]:
    """Yield the id of each call of a task that failed, and a short text: its result holds the failure's message."""
    told = content.field(task, "messages")
    answers, left = messages.answers(told), list(messages.requests(told))
    records = content.field(task, "tool_failures")
    for record in records if isinstance(records, list) else ():
        said = content.text(content.field(record, "failure", "message")) or ""
        name, answered = content.field(record, "tool_name"), [each for each in left if each.call_id in answers]
        failed = (each for each in answered if each.name == name and said in str(answers[each.call_id or ""]))
        if said and (request := next(failed, None)) is not None:
            left.remove(request)
            # If the tool has raised an exception, the code is its type.
            is_raised = content.field(record, "failure", "reason") == "exception"
            kind = content.text(content.field(record, "failure", "code")) if is_raised else None
            yield request.call_id or "", content.named(kind, said)


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
