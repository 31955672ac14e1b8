"""The event and the run of log records, for all sources of log records."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from spanscore.model import Attributes, AttributeValue, session_key

BODY: Final = "body"
"""The attribute of a record's body. If the body is a mapping, its entries become attributes instead."""
EVENT_NAMES: Final = ("event.name", "otel.event.name")
"""The attributes in which some emitters write the name of an event; the second is that of bridges without the field."""

_SERVICE: Final = "service.name"
SESSIONS: Final = ("gen_ai.conversation.id", "conversation.id", "session.id")
"""The attributes of a record that name its session; the first that it has counts."""
_PROMPTS: Final = ("prompt.id", "prompt_id")
_TURN: Final = re.compile(r"#\d+\Z")
"""The suffix that Gemini CLI adds to the id of a sub-agent for each of its turns."""
_TRACE_ID_LENGTH: Final = 16


def event_name(told: Iterable[object], names: tuple[str, ...]) -> str | None:
    """Return the first name of a record that has one of these prefixes; None if the record is not read."""
    return next((name for name in told if isinstance(name, str) and name.startswith(names)), None)


def with_body(attributes: Attributes, body: AttributeValue) -> Attributes:
    """Return the attributes of a record with its body added; for equal keys the attributes win."""
    if isinstance(body, dict):
        return {**body, **attributes}
    return attributes if body is None else {BODY: body, **attributes}


def run_id(attributes: Attributes, resource: Attributes) -> bytes | None:
    """Return the key of a record without a trace id, as `session_key` makes it: one prompt of one session is a run.

    None if the record names no session or conversation. If services or sessions contain NUL, the lengths of the texts
    keep their keys distinct.
    """
    session = _first(attributes, SESSIONS)
    if not session:
        return None
    parts: tuple[str, ...] = (_text(resource.get(_SERVICE)), session, _prompt(attributes, session))
    if any("\0" in part for part in parts):
        parts += tuple(str(len(part)) for part in parts)
    identity = "\0".join(parts).encode("utf-8", "surrogatepass")
    return session_key(blake2b(identity, digest_size=_TRACE_ID_LENGTH).digest())


def _prompt(attributes: Attributes, session: str) -> str:
    """Return the prompt of a record; empty if the session has only one, or if the id is of a sub-agent's turn.

    Gemini CLI gives the only prompt the id of the session, which is all that some of its records have. Other prompts'
    ids begin with it.
    """
    prompt = _first(attributes, _PROMPTS)
    is_own_turn = not prompt.startswith(session) and _TURN.search(prompt)
    return "" if prompt == session or is_own_turn else prompt


def _first(attributes: Mapping[str, AttributeValue], keys: Iterable[str]) -> str:
    return next((found for key in keys if (found := _text(attributes.get(key)))), "")


def _text(value: AttributeValue) -> str:
    return value if isinstance(value, str) else ""
