"""JetBrains' Koog."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import NOT_RECORDED, Span, changed

_EVENT: Final = "koog.event.id"
_AGENT: Final = "gen_ai.agent.id"
_DESCRIPTION: Final = "gen_ai.tool.description"
_GENERATED: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


class Koog(FrameworkDialect):
    """Tool spans of Koog, JetBrains' agent framework (recorded with 1.1.1).

    They follow the GenAI conventions. Agents have no name: the name is the `gen_ai.agent.id` that the developer
    chose; a random UUID is no name. The result of a failed call is an empty object. If a call has this result
    without a failure, and the span has no `gen_ai.tool.description`, the tool does not exist.
    """

    markers = Markers(attributes=frozenset({_EVENT}))
    reads = gen_ai.READS | {_AGENT, _DESCRIPTION}
    capture_settings = (CaptureSetting("setVerbose(true)"),)

    def read(self, span: Span) -> Reading | None:
        # An adapter of the user's own may have added the name.
        agent = content.first_text(span.attributes, (gen_ai.AGENT, _AGENT))
        return Reading(
            call=_call(span) if span.attributes.get(gen_ai.OPERATION) == gen_ai.EXECUTE_TOOL else None,
            agent=None if agent is None or _GENERATED.fullmatch(agent) else agent,
        )


def _call(span: Span) -> CallReading:
    call = gen_ai.call(span)
    if call.result != {}:
        return call
    if call.error is None and _DESCRIPTION not in span.attributes:
        return changed(call, result=NOT_RECORDED, error="no such tool")
    return call if call.error is None else changed(call, result=NOT_RECORDED)
