"""Haystack under OpenInference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spanscore.contracts import Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._literals import printed
from spanscore.model import JSON, Later, Recorded, Span

_AGENT_RUN: Final = "Agent.run"


class HaystackOpeninference(FrameworkDialect):
    """Agent runs of Haystack, by OpenInference's instrumentor (recorded with 0.1.46).

    No span is a tool call. The span `Agent.run` holds the messages of the run as printed text: the calls and their
    results are read from these.
    """

    markers = Markers(scopes=frozenset({"openinference.instrumentation.haystack"}))
    reads = openinference.READS

    def read(self, span: Span) -> Reading | None:
        return Reading(is_model=True, is_agent=True) if span.name == _AGENT_RUN else None

    def read_model(self, span: Span) -> ModelReading | None:
        if span.name != _AGENT_RUN:
            return None
        sent = _messages(span, openinference.INPUT)
        said = [printed(text) for text in _messages(span, openinference.OUTPUT)[len(sent) :] if isinstance(text, str)]
        asked: list[JSON] = [each for each in said if isinstance(each, dict) and each.get("_role") == "assistant"]
        return ModelReading(
            requests=messages.requests(asked),
            asks=not said,
            answers=Later(lambda: {call_id: result for call_id, result, _ in _answers(said)}),
            failures=Later(lambda: {call_id: _failure(told) for call_id, told, failed in _answers(said) if failed}),
        )


def _messages(span: Span, key: str) -> list[JSON]:
    listed = content.field(content.decoded(span.attributes.get(key)), "messages")
    return listed if isinstance(listed, list) else []


def _answers(said: list[Recorded]) -> Iterator[tuple[str, JSON, bool]]:
    """Yield for each result the id of its call, the result, and whether it is marked as a failure."""
    for message in said:
        match message:
            case {"_role": "tool", "_content": [{"result": result, "origin": {"id": str(call_id)}, **others}]}:
                yield call_id, content.reparsed(result), others.get("error") is True


def _failure(told: JSON) -> str:
    return content.short(told) or "error" if isinstance(told, str) else "error"
