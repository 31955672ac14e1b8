"""AgentScope."""

from __future__ import annotations

from typing import ClassVar, Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Recorded, Span, changed

_ERROR: Final = "error"


class Agentscope(FrameworkDialect):
    """Tool spans of AgentScope's `TracingMiddleware` (recorded with 2.0.11).

    They follow the GenAI conventions. The result is an object, whose `state` is the only sign of a failure.
    """

    markers = Markers(scopes=frozenset({"agentscope"}))
    reads = gen_ai.READS
    result_keys = frozenset({gen_ai.RESULT})
    telling_words: ClassVar = {gen_ai.RESULT: (f'"{_ERROR}"',)}

    def read(self, span: Span) -> Reading | None:
        return Reading(call=_call(span)) if span.attributes.get(gen_ai.OPERATION) == gen_ai.EXECUTE_TOOL else None


def _call(span: Span) -> CallReading:
    call = gen_ai.call(span)
    result = _returned(call.result)
    if call.error is None and content.field(call.result, "state") == _ERROR:
        return changed(call, result=result, error=content.short(str(result)) or _ERROR)
    return changed(call, result=result)


def _returned(result: Recorded) -> Recorded:
    """Return the one text of a result, which is JSON where it spells that; a result of other content as it is."""
    match result:
        case {"state": str(), "content": [{"text": str(said)}]}:
            return content.reparsed(said)
    return result
