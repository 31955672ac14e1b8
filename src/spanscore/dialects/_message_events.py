"""The events, and log records, of the GenAI semantic conventions that hold one message each."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from spanscore.dialects import _content as content
from spanscore.model import JSON, NOT_RECORDED, Attributes, Recorded, Span, SpanEvent

CHOICE: Final = "gen_ai.choice"
TEXT_ROLES: Final = {"gen_ai.user.message": "user", "gen_ai.system.message": "system"}
ROLES: Final = {
    CHOICE: "assistant",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    **TEXT_ROLES,
}
"""The roles of the events that hold one message each."""
SENT: Final = frozenset(ROLES) - {CHOICE}
"""The events that hold a message that the model was sent."""
_EVENT_BODIES: Final = ("gen_ai.event.content", "body")
"""The attributes that hold a whole message: of Azure's SDKs, and of log records with a text."""


def message_list(span: Span, attribute: str, event_names: Container[str]) -> Recorded:
    """Return the messages of one side: the attribute, else all events that are one message each, in their order."""
    value = content.decoded(span.attributes.get(attribute))
    if value is not NOT_RECORDED:
        return value
    told = [SpanEvent(span.name, span.start_ns, span.attributes)] if span.is_log else span.events
    return [message_of(event.name, event.attributes) for event in told if event.name in event_names]


def message_of(event_name: str, attributes: Attributes) -> dict[str, JSON]:
    """Return the message that an event with one of the names in `ROLES` holds."""
    held = dict(attributes)
    fields = {key: content.reparsed(content.decoded(value)) for key, value in held.items()}
    for body in [fields.pop(key, None) for key in _EVENT_BODIES]:
        fields |= body if isinstance(body, dict) else {}
    match fields.get("content"):
        # Google's frameworks wrap a message with its role.
        case dict() as wrapped if isinstance(wrapped.get("parts"), list):
            fields = wrapped
        case told if event_name in TEXT_ROLES and not isinstance(told, list) and "content" in held:
            fields["content"] = content.text(held["content"])  # what a user says may look like JSON
    return {"role": ROLES[event_name], **fields}
