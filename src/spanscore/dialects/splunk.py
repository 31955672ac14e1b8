"""Splunk's instrumentations of LangChain and of the OpenAI Agents SDK."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallRequest, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._langgraph import AFTER_MODEL
from spanscore.model import AttributeValue, Span, changed

_SCOPE: Final = "opentelemetry.util.genai"
_SAMPLED: Final = "gen_ai.evaluation.sampled"
_FRAMEWORK: Final = "gen_ai.framework"
_OPENAI_AGENTS: Final = "openai_agents"
_STATUS: Final = "gen_ai.step.status"
_INTERRUPT: Final = "gen_ai.finish_reason_description"
_COMMAND: Final = "gen_ai.command"


class Splunk(FrameworkDialect):
    """LangChain and the OpenAI Agents SDK under Splunk's instrumentations (recorded with 0.1.16 and 0.1.5).

    They follow the GenAI conventions. A step of a graph that an interrupt has ended has the status `interrupted`, with
    the calls that a person is asked about. A tool of the OpenAI Agents SDK that waits for approval has a span without a
    result, and the messages to a model are recorded without the calls in them; one that failed has the SDK's text for a
    result.
    """

    markers = Markers(attributes=frozenset({_SAMPLED, _STATUS, _COMMAND}))
    reads = gen_ai.READS | {_FRAMEWORK, _INTERRUPT}
    capture_settings = (
        CaptureSetting("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY", scopes=(f"{_SCOPE}.",)),
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if not span.scope.startswith(_SCOPE):
            return None
        if attributes.get(gen_ai.OPERATION) == gen_ai.EXECUTE_TOOL:
            call = gen_ai.call(span)
            if call.tool_type is None:  # in this scope, only the OpenAI Agents SDK has one
                return None
            if gen_ai.RESULT not in attributes and call.error is None:
                call = changed(call, state="uncertain", may_have_failed=True)
            return Reading(call=call, only_if_asked=True)
        if attributes.get(_FRAMEWORK) == _OPENAI_AGENTS:
            return Reading(refuses_silently=True, leaves_out_calls=gen_ai.INPUT in attributes)
        waits = _asked(attributes.get(_INTERRUPT)) if attributes.get(_STATUS) == "interrupted" else ()
        resumes = attributes.get(_COMMAND) == "resume" or span.name.endswith(AFTER_MODEL)
        return Reading(waits=waits, resumes=resumes) if waits or resumes else None


def _asked(told: AttributeValue) -> tuple[CallRequest, ...]:
    """Return the calls that a person is asked about."""
    asked = content.field(content.decoded(told), "action_requests")
    names = [content.text(content.field(each, "name")) for each in asked] if isinstance(asked, list) else []
    return tuple(CallRequest(name=name) for name in names if name) or (CallRequest(name=""),)
