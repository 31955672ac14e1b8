"""agentUniverse."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Recorded, Span

_KIND: Final = "au.span.kind"
_NAME: Final = "au.tool.name"
_INPUT: Final = "au.tool.input"
_OUTPUT: Final = "au.tool.output"
_STATUS: Final = "au.tool.status"
_ERROR_TYPE: Final = "au.tool.error.type"
_AGENT: Final = "au.agent.name"
_SESSION: Final = "au.trace.session.id"
_NO_SESSION: Final = "-1"
_SPAN: Final = "au.tool."
_FENCED: Final = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


class AgentUniverse(FrameworkDialect):
    """Tool spans of agentUniverse's own instrumentation (recorded with 0.0.19).

    The name is in `au.tool.name`, the arguments are in `au.tool.input`, the result is in `au.tool.output`. With a
    ReAct planner, `au.tool.input` holds the text that the model wrote. `au.tool.pair_id` connects input and output;
    it is not the model's call id. Spans of models hold text alone.
    """

    markers = Markers(attributes=frozenset({_KIND, _NAME, _AGENT, _SESSION}))
    reads = content.READS | {_INPUT, _OUTPUT, _STATUS, _ERROR_TYPE}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_KIND)
        is_agent = kind == "agent" or _AGENT in attributes
        return Reading(
            call=_call(span) if kind == "tool" or _NAME in attributes else None,
            is_model=kind == "llm",
            is_agent=True if is_agent else None,
            agent=content.text(attributes.get(_AGENT)),
            conversation_id=None if attributes.get(_SESSION) == _NO_SESSION else content.text(attributes.get(_SESSION)),
        )


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    given = content.decoded(attributes.get(_INPUT))
    kind = content.error_type(span) or content.text(attributes.get(_ERROR_TYPE))
    error = content.error(span) or ("error" if attributes.get(_STATUS) == "error" else None)
    text = _sole_text(given)
    return CallReading(
        name=content.text(attributes.get(_NAME)) or span.name.removeprefix(_SPAN),
        arguments=content.from_signature(given, "callbacks") if text is None else _in_text(text),
        sole_argument=None if text is None or _in_text(text) is not NOT_RECORDED else text,
        result=content.decoded(attributes.get(_OUTPUT)),
        error=None if error is None else content.named(kind, "" if error == "error" and kind else error),
        error_type=kind,
    )


def _sole_text(given: Recorded) -> str | None:
    """Return the text that a ReAct planner's model wrote for the tool."""
    match content.field(given, "args"):
        case [str(text)]:
            return text
    return None


def _in_text(text: str) -> Recorded:
    """Return the object that a text is, or has in a fenced block of Markdown: what the tool's parser takes."""
    fenced = _FENCED.search(text)
    found = content.arguments(fenced[1] if fenced else text)
    return found if isinstance(found, dict) else NOT_RECORDED
