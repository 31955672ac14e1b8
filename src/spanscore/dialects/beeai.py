"""BeeAI under OpenInference."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Recorded, Span, changed

_SCOPES: Final = frozenset(
    {"openinference.instrumentation.beeai", "@arizeai/openinference-instrumentation-beeai", "beeai-framework"}
)
_PATH: Final = "metadata.path"
_TARGET: Final = "target"
_PARAMETERS: Final = "tool.parameters"
_TOOL_EVENT: Final = re.compile(r"tool\.(?:.+\.)?([^.]+)\.([^.]+)-\d+")
_WRAPPED: Final = frozenset({"input", "options"})


class Beeai(FrameworkDialect):
    """Spans of BeeAI, Python and TypeScript, by OpenInference's instrumentors (recorded with 0.1.30).

    A call has one span of kind TOOL, which wraps its arguments in `input`. Each event of the call, such as `error`
    or `retry`, is a span of the same kind below it. The first versions have no span of the call, but sibling spans
    `tool.search.wikipedia.start-1`, `tool.search.wikipedia.success-1` and so on.
    """

    markers = Markers(scopes=_SCOPES)
    reads = openinference.READS | {_PATH, _TARGET, _PARAMETERS}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = content.text(attributes.get(openinference.KIND))
        if kind not in {"TOOL", "AGENT"}:
            return None
        if _TARGET in attributes:
            return _first_versions(span) if span.parent_span_id else None
        if kind == "AGENT":
            return Reading(is_agent=False) if _PATH in attributes else None
        call = openinference.call(span)
        if openinference.TOOL_NAME not in attributes:
            return Reading(call=CallReading(error=call.error, error_type=call.error_type), part_of_call=True)
        return Reading(call=changed(call, arguments=_unwrapped(call.arguments)))


def _first_versions(span: Span) -> Reading:
    """Return the start of a tool as its call, the other events as parts of one, and no event as an agent's run."""
    attributes = span.attributes
    tool = _TOOL_EVENT.fullmatch(span.name)
    name = tool[1] if tool else content.text(attributes.get(openinference.TOOL_NAME))
    call = content.call(span, name, attributes.get(_PARAMETERS), attributes.get(openinference.OUTPUT))
    is_call = tool is not None and tool[2] == "start"
    return Reading(call=call if name else None, part_of_call=not is_call, is_agent=False)


def _unwrapped(arguments: Recorded) -> Recorded:
    if isinstance(arguments, dict) and "input" in arguments and arguments.keys() <= _WRAPPED:
        return content.arguments(arguments["input"])
    return arguments
