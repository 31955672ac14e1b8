"""What is the same for log records from wherever they come: which event they are, and to which run they belong."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from spanscore.model import Attributes, AttributeValue

BODY: Final = "body"
"""The attribute that holds a record's body, unless that is a mapping: its entries are attributes then."""
EVENT_NAMES: Final = ("event.name", "otel.event.name")
"""The attributes in which some emitters write the name of an event; the second is that of bridges without the field."""

_SERVICE: Final = "service.name"
SESSIONS: Final = ("gen_ai.conversation.id", "conversation.id", "session.id")
"""The attributes of a record that name its session; the first that it has counts."""
_PROMPTS: Final = ("prompt.id", "prompt_id")
_TURN: Final = re.compile(r"#\d+\Z")
"""What Gemini CLI puts behind the id of a sub-agent, for each of its turns."""
_TRACE_ID_LENGTH: Final = 16


def event_name(told: Iterable[object], names: tuple[str, ...]) -> str | None:
    """Return the first of the names that a record may have that begins as it should; None where it is not read."""
    return next((name for name in told if isinstance(name, str) and name.startswith(names)), None)


def with_body(attributes: Attributes, body: AttributeValue) -> Attributes:
    """Return the attributes of a record and its body; what it has twice is that of the attributes."""
    if isinstance(body, dict):
        return {**body, **attributes}
    return attributes if body is None else {BODY: body, **attributes}


def run_id(attributes: Attributes, resource: Attributes) -> bytes | None:
    """Return what stands for the trace id of a record without one: records of one prompt in one session are a run.

    None where the record says nothing of a session or conversation.
    """
    session = _first(attributes, SESSIONS)
    if not session:
        return None
    parts = (_text(resource.get(_SERVICE)), session, _prompt(attributes, session))
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=_TRACE_ID_LENGTH).digest()


def _prompt(attributes: Attributes, session: str) -> str:
    """Return the prompt that a record is of; none where the session has but one, or a sub-agent's turn stands for it.

    Gemini CLI names the only prompt as the session, which some of its records tell alone. The others begin with it.
    """
    prompt = _first(attributes, _PROMPTS)
    is_own_turn = not prompt.startswith(session) and _TURN.search(prompt)
    return "" if prompt == session or is_own_turn else prompt


def _first(attributes: Mapping[str, AttributeValue], keys: Iterable[str]) -> str:
    return next((found for key in keys if (found := _text(attributes.get(key)))), "")


def _text(value: AttributeValue) -> str:
    return value if isinstance(value, str) else ""
