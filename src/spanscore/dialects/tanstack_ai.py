"""TanStack AI."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CaptureSetting, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import AttributeValue, Span, changed

_OUTCOME: Final = "tanstack.ai.tool.outcome"
_ITERATIONS: Final = "tanstack.ai.iterations"
_ITERATION: Final = "tanstack.ai.iteration"
_FAILED: Final = "error"


class TanstackAi(FrameworkDialect):
    """Spans of TanStack AI's OpenTelemetry middleware (recorded with 0.58.0).

    A call has its arguments in `gen_ai.input.messages` and its result in `gen_ai.output.messages`, each as one message
    of a tool. The scope is the application's. A run that waits for an approval ends neither its span nor that of its
    last request to a model. One that continues after a refusal begins with a request whose last message is a tool's.
    """

    markers = Markers(attributes=frozenset({_OUTCOME, _ITERATIONS, _ITERATION}))
    reads = gen_ai.READS
    capture_settings = (CaptureSetting("otelMiddleware({captureContent: true})"),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if _ITERATION in attributes:
            return Reading(
                is_agent=False,
                may_wait=finish_reasons.asks(attributes, finish_reasons.READS),
                resumes=str(attributes[_ITERATION]) == "0" and _ends_with_result(attributes.get(gen_ai.INPUT)),
            )
        if _OUTCOME not in attributes:
            return Reading(is_agent=True, refuses_silently=True)
        call = gen_ai.call(span)
        has_failed = attributes.get(_OUTCOME) == _FAILED
        given = _said(attributes.get(gen_ai.INPUT))
        answer = None if has_failed else _said(attributes.get(gen_ai.OUTPUT))
        return Reading(
            call=changed(
                call,
                arguments=call.arguments if given is None else content.arguments(given),
                result=call.result if answer is None else content.decoded(answer),
                error=call.error or (_FAILED if has_failed else None),
            )
        )


def _ends_with_result(messages: AttributeValue) -> bool:
    match content.decoded(messages):
        case [*_, {"role": "tool"}]:
            return True
    return False


def _said(messages: AttributeValue) -> str | None:
    """Return the text of the only message."""
    match content.decoded(messages):
        case [{"content": str(told)}]:
            return told
    return None
