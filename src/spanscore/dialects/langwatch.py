"""LangWatch."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Recorded, Span

_KIND: Final = "langwatch.span.type"
_INPUT: Final = "langwatch.input"
_OUTPUT: Final = "langwatch.output"


class Langwatch(FrameworkDialect):
    """Spans of LangWatch's decorators and of its callback for LangChain and LangGraph (recorded with 1.4.0).

    A call has the `langwatch.span.type` `tool`; input and output are wrapped as `{"type": .., "value": ..}`. The
    callback prints the arguments, and wraps a result as a message. The messages of models are without calls.
    """

    markers = Markers(attributes=frozenset({_KIND}))
    reads = content.READS | {_INPUT, _OUTPUT}

    def read(self, span: Span) -> Reading | None:
        kind = content.text(span.attributes.get(_KIND))
        return Reading(
            call=_call(span) if kind == "tool" else None,
            is_model=kind == "llm",
            is_agent=True if kind == "agent" else None,
            agent=span.name if kind == "agent" else None,
        )


def _call(span: Span) -> CallReading:
    given = _value(span, _INPUT)
    arguments = NOT_RECORDED if given is NOT_RECORDED else content.arguments(given)
    return CallReading(
        name=span.name,
        arguments=arguments,
        sole_argument=content.sole_argument(given) if isinstance(given, str) else None,
        result=_value(span, _OUTPUT),
        error=content.error(span),
        error_type=content.error_type(span),
    )


def _value(span: Span, key: str) -> Recorded:
    """Return what an attribute wraps; of a message its content."""
    match content.decoded(span.attributes.get(key)):
        case {"type": "chat_messages", "value": [{"content": str(said)}]}:
            return content.decoded(said)
        case {"type": str(), "value": value}:
            return content.reparsed(value)
    return NOT_RECORDED
