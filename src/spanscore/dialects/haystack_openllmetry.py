"""Haystack under OpenLLMetry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from spanscore.contracts import CallRequest, CaptureSetting, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openllmetry
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import JSON, NOT_RECORDED, AttributeValue, Recorded, Span

_SCOPE: Final = "opentelemetry.instrumentation.haystack"
_LISTS: Final = ("messages", "tool_messages")
"""The results of an agent and of a ToolInvoker that hold calls."""


class HaystackOpenllmetry(FrameworkDialect):
    """Haystack 2 by OpenLLMetry's instrumentor (recorded with haystack-ai 2.31 and the instrumentor 0.62.4).

    No span is a tool's, and the spans of models do not say what a model has asked for. The calls are read from the
    messages in the result of the pipeline. Without that result, and for an agent outside of a pipeline, only content
    that is not recorded shows whether a tool was called.
    """

    markers = Markers(scopes=frozenset({_SCOPE}))
    reads = openllmetry.READS
    capture_settings = (CaptureSetting("TRACELOOP_TRACE_CONTENT=true", scopes=(_SCOPE,)),)

    def read(self, span: Span) -> Reading | None:
        if span.attributes.get(openllmetry.KIND) != "workflow":
            return Reading(is_model=True)
        told = _told(span.attributes.get(openllmetry.ENTITY_OUTPUT))
        if not told:
            return Reading(is_agent=False)
        has_calls = any(_calls(told))
        agent = next(iter(told)) if len(told) == 1 else None
        return Reading(is_agent=True, agent=agent, is_model=has_calls, not_a_call=not has_calls)

    def read_model(self, span: Span) -> ModelReading | None:
        if span.attributes.get(openllmetry.KIND) != "workflow":
            return ModelReading(asks=True)
        told = _told(span.attributes.get(openllmetry.ENTITY_OUTPUT))
        answers = list(_answers(told))
        return ModelReading(
            requests=tuple({(each.call_id, each.name): each for each in _calls(told)}.values()),
            answers={call_id: result for call_id, result, _ in answers},
            failures={call_id: content.short(str(result)) or "error" for call_id, result, failed in answers if failed},
        )


def _told(output: AttributeValue) -> dict[str, list[Any]]:
    """Return the messages behind the last one of a user in a pipeline's result, by the component that returned them."""
    results = content.decoded(output)
    found: dict[str, list[Any]] = {}
    for component, result in results.items() if isinstance(results, dict) else ():
        for key in _LISTS:
            listed = content.field(result, key)
            if isinstance(listed, list):
                users = [place for place, each in enumerate(listed) if _of(each, "role") == "user"]
                found.setdefault(component, []).extend(listed[users[-1] + 1 :] if users else listed)
    return found


def _of(message: Any, key: str) -> Any:
    """Return a field of a message; earlier versions of Haystack begin its name with an underscore."""
    return message.get(key, message.get(f"_{key}")) if isinstance(message, Mapping) else None


def _parts(told: Mapping[str, list[Any]]) -> Iterator[Mapping[str, Any]]:
    for message in (each for listed in told.values() for each in listed):
        parts = _of(message, "content")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping):
                # Later versions wrap each part.
                wrapped = (part.get(key) for key in ("tool_call", "tool_call_result"))
                yield next((each for each in wrapped if isinstance(each, Mapping)), part)


def _calls(told: Mapping[str, list[Any]]) -> Iterator[CallRequest]:
    """Yield the calls that were asked for, and those of results whose request is in no message."""
    for part in _parts(told):
        asked: Recorded = part.get("origin", NOT_RECORDED) if "result" in part else dict(part)
        name = content.text(content.field(asked, "tool_name"))
        if name is not None:
            yield CallRequest(
                name=name,
                arguments=content.field(asked, "arguments"),
                call_id=content.text(content.field(asked, "id")),
            )


def _answers(told: Mapping[str, list[Any]]) -> Iterator[tuple[str, JSON, bool]]:
    for part in _parts(told):
        call_id = content.text(content.field(part.get("origin", NOT_RECORDED), "id"))
        if call_id is not None and "result" in part:
            yield call_id, content.reparsed(part["result"]), part.get("error") is True
