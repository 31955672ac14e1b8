"""The AWS Distro for OpenTelemetry, which moves what is large or private out of spans into log events."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai, openinference, openllmetry
from spanscore.model import AttributeValue, Span

_SIDES: Final = ("input", "output")
_ROLES: Final = {"input": ("user", "tool"), "output": ("assistant", "tool")}
_OF_TOOL: Final = {"input": gen_ai.ARGUMENTS, "output": gen_ai.RESULT}
_OF_ANY: Final = {
    "input": (openinference.INPUT, openllmetry.ENTITY_INPUT),
    "output": (openinference.OUTPUT, openllmetry.ENTITY_OUTPUT),
}
_OF_MODEL: Final = {"input": gen_ai.INPUT, "output": gen_ai.OUTPUT}
_IN_EVENT: Final = {"input": "content", "output": "message"}


class AwsAdot:
    """Log events of the AWS Distro for OpenTelemetry (ADOT) for Python with agent observability.

    ADOT moves the content of a span into one log event, named after the span's scope. Its body is `{"input":
    {"messages": [{"role": .., "content": ..}]}, "output": ..}`. The content is the value of an attribute, or a
    mapping with those of a span event. The event does not name the attribute: the role is `tool` for arguments and
    results by the GenAI conventions, and `user` or `assistant` for those of other conventions.
    """

    precedence = Precedence.CONVENTION
    markers = Markers(
        log_names=(
            "agent_framework",
            "amazon.opentelemetry.",
            "crewai.",
            "gcp.vertex.agent",
            "openinference.instrumentation.",
            "openlit",
            "opentelemetry.instrumentation.",
            "opentelemetry.util.genai",
            "pydantic-ai",
            "strands.",
            "traceloop.",
        )
    )
    reads = frozenset(_SIDES)

    def read(self, span: Span) -> Reading | None:
        moved: dict[str, AttributeValue] = {}
        for side in _SIDES:
            for role, value in _told(span, side):
                for key, held in _attributes(side, role, value).items():
                    moved.setdefault(key, held)
        return Reading(of_span=moved) if moved and span.is_log else None

    def read_model(self, span: Span) -> ModelReading | None:
        return None


def _told(span: Span, side: str) -> list[tuple[str, AttributeValue]]:
    held = span.attributes.get(side)
    messages = held.get("messages") if isinstance(held, dict) else None
    if not isinstance(messages, list):
        return []
    told = ((each.get("role"), each.get("content")) for each in messages if isinstance(each, dict))
    return [(role, value) for role, value in told if isinstance(role, str) and role in _ROLES[side]]


def _attributes(side: str, role: str, value: AttributeValue) -> dict[str, AttributeValue]:
    """Return what the span may have had: of several keys, the one that its own instrumentation knows will be read."""
    if isinstance(value, dict):
        return {_OF_TOOL[side]: value[_IN_EVENT[side]]} if _IN_EVENT[side] in value else {}
    if not isinstance(value, str):
        return {}
    if role == "tool":
        return {_OF_TOOL[side]: value}
    is_list = isinstance(content.decoded(value), list)
    return dict.fromkeys((*_OF_ANY[side], _OF_MODEL[side]) if is_list else _OF_ANY[side], value)
