"""Agno under OpenInference, OpenLLMetry, and OpenTelemetry's own instrumentation."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import gen_ai, openinference, openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._literals import literal
from spanscore.model import NOT_RECORDED, Span, changed

_PRINTED: Final = re.compile(r"status='(success|failure)' result=(.*) error=(.*?) updated_session_state=.*", re.DOTALL)


_PAUSED: Final = ("I have tools to execute, but ", "Team run paused.")
"""Beginnings of the result that Agno gives a run that waits."""
_REDACTED: Final = "__REDACTED__"
_MAY_HAVE_TOOLS: Final = ("agno.tools", "agno.team")
"""Attributes that OpenInference writes for an agent with tools, and for a team."""
_TEAM_NAME: Final = "agno.team.name"
"""Of the span of a team's run, under OpenLLMetry."""
_CONTINUED: Final = (".continue_run", ".acontinue_run")
_OPENTELEMETRY: Final = "opentelemetry.instrumentation.genai.agno"


class Agno(FrameworkDialect):
    """Agno, by the instrumentors of OpenInference, OpenLLMetry and OpenTelemetry (recorded with agno 3.1.10).

    OpenInference writes the arguments into `tool.parameters`, where its other instrumentors have the tool's schema.
    OpenLLMetry writes the whole execution as its output, as Pydantic prints it: a failure shows only there, and the
    status is OK; its span of a team is a workflow's. A run that waits for a person ends with a constant; the span of
    the run that continues has a name of its own, and under OpenLLMetry none: its first tool's span has no parent.
    OpenTelemetry writes the person's answer into the input of the agent's span, as the result of the call.
    """

    markers = Markers(
        scopes=frozenset({"openinference.instrumentation.agno", "opentelemetry.instrumentation.agno", _OPENTELEMETRY})
    )
    reads = gen_ai.READS | openinference.READS | openllmetry.READS | {"tool.parameters", _TEAM_NAME, *_MAY_HAVE_TOOLS}

    def read(self, span: Span) -> Reading | None:
        if span.scope == _OPENTELEMETRY:
            return _opentelemetry(span) if span.attributes.get(gen_ai.OPERATION) == "invoke_agent" else None
        kind = span.attributes.get(openllmetry.KIND)
        if kind == "tool":
            return Reading(call=_openllmetry(span), resumes=not span.parent_span_id)
        team = content.text(span.attributes.get(_TEAM_NAME))
        if kind == "agent" or team is not None or span.attributes.get(openinference.KIND) == "AGENT":
            said = content.first_text(span.attributes, (openllmetry.ENTITY_OUTPUT, openinference.OUTPUT)) or ""
            waits = (CallRequest(name=""),) if said.startswith(_PAUSED) else ()
            has_tools = kind == "agent" or team is not None or any(key in span.attributes for key in _MAY_HAVE_TOOLS)
            is_continued = span.name.endswith(_CONTINUED)  # with the answer that it waited for
            may_wait = has_tools and not is_continued and said in {"", _REDACTED} and not _is_unsaid(span, team)
            is_agent = None if team is None else True
            return Reading(is_agent=is_agent, agent=team, waits=waits, may_wait=may_wait, resumes=is_continued)
        if span.attributes.get(openinference.KIND) != "TOOL":
            return None
        call = openinference.call(span)
        if call.arguments is NOT_RECORDED:
            call = changed(call, arguments=content.arguments(span.attributes.get("tool.parameters")))
        return Reading(call=call)


def _is_unsaid(span: Span, team: str | None) -> bool:
    """Return whether a team has no output though its content is recorded, as when it streams or fails."""
    given = content.first_text(span.attributes, (openllmetry.ENTITY_INPUT,))
    return team is not None and (content.error(span) is not None or given not in {None, "", _REDACTED})


def _opentelemetry(span: Span) -> Reading:
    match content.decoded(span.attributes.get(gen_ai.OUTPUT)):
        case [{"parts": [{"content": str(said)}, *_]}, *_]:
            pauses = said.startswith(_PAUSED)
        case _:
            pauses = False
    given = messages.answers(content.decoded(span.attributes.get(gen_ai.INPUT)))
    return Reading(
        waits=(CallRequest(name=""),) if pauses else (),
        resumes=any(isinstance(answer, dict) and "confirmed" in answer for answer in given.values()),
    )


def _openllmetry(span: Span) -> CallReading:
    call = openllmetry.call(span)
    printed = _PRINTED.fullmatch(content.text(span.attributes.get(openllmetry.ENTITY_OUTPUT)) or "")
    if printed is None:
        return call
    status, result, failure = printed.groups()
    if status == "success":
        value = literal(result)
        return changed(call, result=result if value is NOT_RECORDED else content.reparsed(value))
    told = literal(failure)
    error = content.short(told if isinstance(told, str) else failure)
    return changed(call, result=NOT_RECORDED, error=call.error or error or "error")
