"""Monocle."""

from __future__ import annotations

from itertools import count, takewhile
from typing import Final

from spanscore.contracts import CallReading, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Recorded, Span

_TYPE: Final = "span.type"
_VERSION: Final = "monocle_apptrace.version"
_SESSION: Final = "scope.agentic.session"
_CALLS: Final = frozenset({"agentic.tool.invocation", "agentic.mcp.invocation"})
_AGENT: Final = "agentic.invocation"
_MODEL: Final = ("inference", "inference.framework", "inference.modelapi")
_INPUT: Final = ("data.input", "input")
_RESPONSE: Final = ("data.output", "response")
_FAILURE: Final = ("data.output", "error_code")
_SUCCESS: Final = frozenset({"", "success", "completed"})
_FINISH: Final = ("metadata", "finish_type")
_SENT: Final = ("prompt_tokens", "input_tokens")
_SAID: Final = ("completion_tokens", "output_tokens")


class Monocle(FrameworkDialect):
    """Spans of Monocle's `monocle_apptrace` (recorded with 0.8.15).

    A call has the `span.type` `agentic.tool.invocation` or `agentic.mcp.invocation`. The names of tool, agent and
    model are in numbered attributes `entity.*`. The arguments are in the event `data.input`, the result is in the
    event `data.output`.
    """

    markers = Markers(attributes=frozenset({_VERSION}), scopes=frozenset({"monocle_apptrace"}))
    reads = content.READS | {_TYPE, _SESSION, "entity.*"}
    reads_for_model_calls: frozenset[str] = frozenset()

    def read(self, span: Span) -> Reading | None:
        kind = content.text(span.attributes.get(_TYPE))
        return Reading(
            call=_call(span) if kind in _CALLS else None,
            is_model=kind in _MODEL,
            is_agent=True if kind == _AGENT else None,
            agent=_entity(span, "agent.") if kind == _AGENT or kind in _CALLS else None,
            conversation_id=content.text(span.attributes.get(_SESSION)),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        if content.text(span.attributes.get(_TYPE)) not in _MODEL:
            return None
        requests = messages.requests_in(content.in_event(span, *_RESPONSE))
        reason = content.in_event(span, *_FINISH)
        return ModelReading(requests=requests, asks=finish_reasons.asks({"": reason}, [""]))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if content.text(span.attributes.get(_TYPE)) not in _MODEL:
            return None
        told = next((event.attributes for event in span.events if event.name == "metadata"), {})
        reading = model_calls.reading(told, sent=_SENT, said=_SAID)
        model = _entity(span, "model.llm")
        return ModelCallReading(model=model, input_tokens=reading.input_tokens, output_tokens=reading.output_tokens)


def _call(span: Span) -> CallReading:
    given = content.in_event(span, *_INPUT)
    arguments = content.arguments(given)
    call_id: Recorded = None
    match arguments:
        case {"type": "tool_call", "args": dict(inner), "id": call_id}:  # what LangChain invokes a tool with
            arguments = inner
    result = content.decoded(content.in_event(span, *_RESPONSE))
    failure = content.text(content.in_event(span, *_FAILURE)) or ""
    failed = content.short(str(result)) or failure if failure not in _SUCCESS else None
    return CallReading(
        name=_entity(span, "tool."),
        arguments=arguments if isinstance(arguments, dict) else NOT_RECORDED,
        sole_argument=content.sole_argument(given),
        result=result,
        error=content.error(span) or failed,
        error_type=content.error_type(span),
        call_id=content.text(call_id),
    )


def _entity(span: Span, kind: str) -> str | None:
    """Return the name of the first of the span's entities whose type begins so."""
    numbered = takewhile(lambda key: f"{key}.type" in span.attributes, (f"entity.{number}" for number in count(1)))
    of_kind = (key for key in numbered if str(span.attributes[f"{key}.type"]).startswith(kind))
    return content.first_text(span.attributes, (f"{key}.name" for key in of_kind))
