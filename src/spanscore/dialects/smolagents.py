"""smolagents under OpenInference."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Recorded, Span, changed

_SANITIZE: Final = "sanitize_inputs_outputs"


class Smolagents(FrameworkDialect):
    """Spans of smolagents, by OpenInference's instrumentor (recorded with 0.1.43).

    A tool span is named after the tool's class. Its arguments are in `input.value`, beside the framework's flag
    `sanitize_inputs_outputs`. Code agents pass arguments by position: their names are the keys of
    `tool.parameters`, in order.
    """

    markers = Markers(scopes=frozenset({"openinference.instrumentation.smolagents"}))
    reads = openinference.READS | {"tool.parameters"}

    def read(self, span: Span) -> Reading | None:
        kind = span.attributes.get(openinference.KIND)
        if kind == "AGENT":
            return Reading(is_agent=True, agent=span.name.removesuffix(".run"))
        if kind != "TOOL":
            return None
        return Reading(call=changed(openinference.call(span), arguments=_arguments(span)))


def _arguments(span: Span) -> Recorded:
    given = content.decoded(span.attributes.get(openinference.INPUT))
    positional = content.field(given, "args")
    named = content.field(given, "kwargs")
    parameters = content.decoded(span.attributes.get("tool.parameters"))
    match positional, named, parameters:
        case [_, *_], dict(), dict() if len(positional) <= len(parameters):
            return {**dict(zip(parameters, positional, strict=False)), **named}
    return content.from_signature(given, _SANITIZE)
