"""Reads requests to models, shared by all dialects: tokens, the model, texts by role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from spanscore.contracts import ModelCallReading
from spanscore.dialects import _content as content
from spanscore.dialects._numbered import numbered
from spanscore.dialects._walked_messages import MAX_NODES, each_message
from spanscore.model import Attributes, AttributeValue, Recorded

MODEL: Final = ("gen_ai.response.model", "gen_ai.request.model")
INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
CACHE_READ: Final = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
CACHE_WRITE: Final = (
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
)
READS: Final = frozenset((*MODEL, *INPUT_TOKENS, *OUTPUT_TOKENS, *CACHE_READ, *CACHE_WRITE))
"""The present and former keys of the semantic conventions: many instrumentations write them besides their own."""

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""The texts of the user and of the system."""

_USER: Final = frozenset({"user", "human", "HumanMessage"})
_SYSTEM: Final = frozenset({"system", "developer", "SystemMessage"})
_SPEAKERS: Final = _USER | _SYSTEM
_BODIES: Final = ("content", "parts", "contents", "data", "kwargs")
_TEXT_TYPES: Final = frozenset({"text", "input_text", None})


def reading(  # noqa: PLR0913 - the keys of a request
    attributes: Attributes,
    texts: Sides = ((), ()),
    *,
    model: Iterable[str] = MODEL,
    sent: Iterable[str] = INPUT_TOKENS,
    said: Iterable[str] = OUTPUT_TOKENS,
    cache_read: Iterable[str] = CACHE_READ,
    cache_write: Iterable[str] = CACHE_WRITE,
) -> ModelCallReading:
    """Return the reading of a request from attributes; of each kind the first key with a value counts."""
    return ModelCallReading(
        model=content.first_text(attributes, model),
        input_tokens=_first_count(attributes, sent),
        output_tokens=_first_count(attributes, said),
        cache_read_tokens=_first_count(attributes, cache_read),
        cache_creation_tokens=_first_count(attributes, cache_write),
        user_text=texts[0],
        system_text=texts[1],
    )


def count(value: AttributeValue | Recorded) -> int | None:
    """Return a number of tokens, also from text or a float; None if it is not a number."""
    if isinstance(value, str):
        return int(value) if len(value) <= len(str(1 << 64)) and value.isascii() and value.isdigit() else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value >= 0 and value == value // 1 else None


def texts(messages: Recorded, instructions: Recorded = None) -> Sides:
    """Return the texts of the messages of users and of systems, with separate instructions.

    Messages are recognised by their `role`, or as LangChain's by their `type` or class, wherever they stand. Results of
    tools are no text of the user, though some providers send them in the user's messages.
    """
    user: list[str] = []
    system = (
        [*_said(instructions), *_parts(instructions)] if isinstance(instructions, dict) else [*_parts(instructions)]
    )
    for message in each_message(messages, lambda node: role(node) is not None):
        said_by = role(message)
        if said_by in _USER:
            user.extend(_said(message))
        elif said_by in _SYSTEM:
            system.extend(_said(message))
    return tuple(user), tuple(system)


def numbered_texts(attributes: Attributes, prefix: str, key: re.Pattern[str]) -> Sides:
    """Return the texts of messages that are spread over numbered attributes.

    Args:
        attributes: of a span.
        prefix: with which their keys begin.
        key: matches `role`, `content` and keys that begin with `contents.`, as `numbered` has it.
    """
    user: list[str] = []
    system: list[str] = []
    for fields in numbered(attributes, prefix, key):
        said_by = content.text(fields.get("role"))
        side = user if said_by in _USER else system if said_by in _SYSTEM else None
        if side is None:
            continue
        whole = content.decoded(fields.get("content"))
        found = [*_parts(whole)] if isinstance(whole, list) else [content.text(fields.get("content"))]
        found += [content.text(value) for name, value in fields.items() if name.startswith("contents.")]
        side.extend(text for text in found if text)
    return tuple(user), tuple(system)


def is_user_text(message: Mapping[str, Any]) -> bool:
    """Return whether a message is a user's and has a text, also where its content was not recorded."""
    if role(message) not in _USER:
        return False
    parts = message.get("parts")
    return any(_said(message)) or (isinstance(parts, list) and {"type": "text"} in parts)


def role(node: Mapping[str, Any]) -> str | None:
    """Return the role of a message, or as LangChain has it, the type or the class; None if it has none of these."""
    named = node.get("role")
    if isinstance(named, str):
        return named.lower()
    kind = node.get("type")
    if isinstance(kind, str) and kind in _SPEAKERS:
        return kind
    name = node.get("id")
    last = name[-1] if isinstance(name, list) and name else None
    return last if isinstance(last, str) and last in _SPEAKERS else None


def _said(message: Mapping[str, Any]) -> Iterator[str]:
    for key in _BODIES:
        body = message.get(key)
        if key in {"data", "kwargs"}:
            body = body.get("content") if isinstance(body, dict) else None
        yield from _parts(body)


def _parts(body: Recorded) -> Iterator[str]:
    """Yield the texts in the body of a message: a text, a part, or parts; other parts are skipped."""
    parts = body if isinstance(body, list) else [body]
    for part in parts[:MAX_NODES]:
        if isinstance(part, str):
            if part:
                yield part
        elif isinstance(part, dict) and content.text(part.get("type")) in _TEXT_TYPES:
            yield from filter(None, (content.text(part.get(key)) for key in ("text", "content")))


def _first_count(attributes: Attributes, keys: Iterable[str]) -> int | None:
    return next((found for key in keys if (found := count(attributes.get(key))) is not None), None)
