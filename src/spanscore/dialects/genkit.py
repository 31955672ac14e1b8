"""Genkit."""

from __future__ import annotations

from itertools import chain
from typing import Final

from spanscore.contracts import CallReading, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, AttributeValue, Later, LaterList, Recorded, Span, changed

_SUBTYPE: Final = "genkit:metadata:subtype"
_NAME: Final = "genkit:name"
_FLOW: Final = "genkit:metadata:flow:name"
_WRAPPING: Final = "tool.v2"
_TOOLS: Final = frozenset({"tool", _WRAPPING})
_AGENTS: Final = frozenset({"flow", "agent"})
_INPUT: Final = "genkit:input"
_OUTPUT: Final = "genkit:output"
_STATE: Final = "genkit:state"


class Genkit(FrameworkDialect):
    """Spans of Genkit (recorded with 1.42.0 for JavaScript and 1.4.0 for Go).

    A call has the `genkit:metadata:subtype` `tool`, or `tool.v2`, which wraps the result. The name is in
    `genkit:name`, the arguments are in `genkit:input`, the result is in `genkit:output`; call ids are only in the
    requests of the model. The flow is the agent. If a person answers in place of a tool that interrupted the run,
    the answer in the next request to the model is marked.
    """

    markers = Markers(attributes=frozenset({_SUBTYPE}))
    reads = content.READS | {_SUBTYPE, _NAME, _FLOW, _INPUT, _OUTPUT, _STATE}
    reads_for_model_calls = frozenset({_INPUT, _OUTPUT})

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        subtype = content.text(attributes.get(_SUBTYPE))
        is_agent = subtype in _AGENTS
        return Reading(
            call=_call(span) if subtype in _TOOLS else None,
            is_model=subtype == "model",
            is_agent=True if is_agent else None,
            agent=content.text(attributes.get(_NAME if is_agent else _FLOW)),
            resumes=not span.parent_span_id and _resumes(attributes.get(_INPUT)),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        given = span.attributes.get(_INPUT)
        answer = content.decoded(span.attributes.get(_OUTPUT))
        return ModelReading(
            requests=messages.requests(content.field(answer, "message")),
            answers=Later(lambda: messages.answers(content.field(content.decoded(given), "messages"))),
            refused=Later(lambda: _answered_by_a_person(content.field(content.decoded(given), "messages"))),
            tool_definitions=Later(lambda: messages.definitions(content.field(content.decoded(given), "tools"))),
            history=LaterList(lambda: sent_messages.history(content.field(content.decoded(given), "messages"))),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if span.attributes.get(_SUBTYPE) != "model":
            return None
        given = content.decoded(span.attributes.get(_INPUT))
        used = content.field(content.decoded(span.attributes.get(_OUTPUT)), "usage")
        user, system = model_calls.texts(content.field(given, "messages"))
        return ModelCallReading(
            model=content.text(span.attributes.get(_NAME)),
            input_tokens=model_calls.count(content.field(used, "inputTokens")),
            output_tokens=model_calls.count(content.field(used, "outputTokens")),
            user_text=user,
            system_text=system,
        )


def _resumes(given: AttributeValue) -> bool:
    """Return whether the input of a run holds a person's answer to a tool that has interrupted the run."""
    if not isinstance(given, str) or '"resume"' not in given:
        return False
    return isinstance(content.field(content.decoded(given), "resume"), dict)


def _answered_by_a_person(sent: Recorded) -> dict[str, JSON]:
    """Return the answers that a person gave in place of a tool that has interrupted the run."""
    parts = [content.field(message, "content") for message in (sent if isinstance(sent, list) else ())]
    found: dict[str, JSON] = {}
    for part in chain.from_iterable(each for each in parts if isinstance(each, list)):
        match part:
            case {"toolResponse": {"ref": str(call_id)}, "metadata": {"interruptResponse": _}}:
                found[call_id] = content.reparsed(content.field(part, "toolResponse", "output"))
    return found


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    name = content.text(attributes.get(_NAME)) or span.name
    call = content.call(span, name, attributes.get(_INPUT), attributes.get(_OUTPUT))
    if attributes.get(_SUBTYPE) == _WRAPPING:
        call = changed(call, result=_unwrapped(call.result))
    return changed(call, error="error") if call.error is None and attributes.get(_STATE) == "error" else call


def _unwrapped(result: Recorded) -> Recorded:
    """Return what the tool returned: its parts stand beside it, or alone, and nothing is no key at all."""
    if not isinstance(result, dict):
        return result
    return next((result[key] for key in ("output", "content") if key in result), result or None)
