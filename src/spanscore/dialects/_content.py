"""Reads the text of attributes: arguments, results and errors, shared by all dialects.

Instrumentations write JSON, the repr of a Python object, bare text, a redaction mark, or cut what they write. A value
that cannot be trusted to be what the agent really passed counts as not recorded: an evaluator then skips, instead of
scoring a fault of the instrumentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from spanscore.contracts import CallReading
from spanscore.dialects._literals import encodable, is_unreadable, parsed_text, plain
from spanscore.model import JSON, NOT_RECORDED, Attributes, AttributeValue, Recorded, Span, StatusCode

MAX_ERROR_CHARS: Final = 256

_ERROR_TYPE: Final = "error.type"
_TOOL_TYPE: Final = "gen_ai.tool.type"
_UNNAMED: Final = "exception"
_NO_TYPE: Final = frozenset({"unknown", "_OTHER"})
"""Values of `error.type` that instrumentations write when they do not know the type."""

READS: Final = frozenset({_ERROR_TYPE, _TOOL_TYPE})
"""The attributes that `error` and `call` look at."""

_REDACTED: Final = frozenset({"__REDACTED__", "[REDACTED]", "<REDACTED>", "REDACTED", "***", "HIDDEN:non-empty"})
_LONGEST_MARK: Final = max(map(len, _REDACTED))
_OBJECT: Final = ('{"', "{'", "{}")
_STRUCTURES: Final = frozenset({dict, list})
_SIGNATURE: Final = frozenset({"args", "kwargs"})


def with_texts(span: Span) -> Span:
    """Return a span with structured attributes as JSON text, for which dialects look.

    The conventions allow both, and a Collector can parse a text.
    """
    if not has_objects(span.attributes) and not any(has_objects(event.attributes) for event in span.events):
        return span
    return span._replace(
        attributes=_texts(span.attributes),
        events=tuple([event._replace(attributes=_texts(event.attributes)) for event in span.events]),
    )


def has_objects(attributes: Attributes) -> bool:
    """Return whether any attribute is an object or a list with one."""
    if _STRUCTURES.isdisjoint(map(type, attributes.values())):  # every span is looked through
        return False
    return any(_is_object(value) for value in attributes.values() if type(value) in _STRUCTURES)


def _is_object(value: AttributeValue) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and dict in map(type, value))


def _texts(attributes: Attributes) -> Attributes:
    return {
        key: json.dumps(plain(value), ensure_ascii=False) if _is_object(value) else value
        for key, value in attributes.items()
    }


def call(
    span: Span, name: str | None, given: AttributeValue, answer: AttributeValue, call_id: AttributeValue = None
) -> CallReading:
    """Return the call of a span that writes the arguments, the result and the id into one attribute each."""
    return CallReading(
        name=name,
        arguments=arguments(given),
        result=decoded(answer),
        error=error(span),
        error_type=error_type(span),
        call_id=identifier(call_id),
        tool_type=text(span.attributes.get(_TOOL_TYPE)),
    )


def text(value: AttributeValue | Recorded) -> str | None:
    """Return a text; None when it is missing, empty, or no text."""
    return value if value and isinstance(value, str) else None  # most attributes are missing


def first_text(attributes: Attributes, keys: Iterable[str]) -> str | None:
    """Return the first of several attributes that is text."""
    for key in keys:
        found = attributes.get(key)
        if found and isinstance(found, str):
            return found
    return None


def first(*values: AttributeValue) -> AttributeValue:
    """Return the first value that is there: an empty object is, empty text is not."""
    return next((value for value in values if value is not None and value != ""), None)


def unquoted(value: AttributeValue) -> str | None:
    """Return text without the quotes of a second JSON encoding, which some instrumentations add."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        unwrapped = parsed_text(value)
        return unwrapped if isinstance(unwrapped, str) else None
    return text(value)


def decoded(value: AttributeValue | JSON) -> Recorded:
    """Return the JSON of an attribute: structured already, as JSON text, as a Python repr, or as plain text.

    JSON text that a length limit cut off, or that is too large or too deep to be read, is not recorded.
    """
    if value is None:
        return NOT_RECORDED
    if not isinstance(value, str):
        return plain(value)
    if len(value) <= _LONGEST_MARK and value in _REDACTED:  # else a hash is made of each long text
        return NOT_RECORDED
    value = value if value.isascii() else encodable(value)
    parsed = parsed_text(value)
    return value if parsed is NOT_RECORDED and not is_unreadable(value) else parsed


def arguments(value: AttributeValue | JSON) -> Recorded:
    """Return the arguments of a call, or NOT_RECORDED when they are missing, redacted, cut, or bare text."""
    content = decoded(value)
    if isinstance(content, str) and content.lstrip().startswith("{"):
        content = parsed_text(content)  # JSON text within JSON text, one level
    return NOT_RECORDED if content is None or isinstance(content, str) else content


def sole_argument(value: AttributeValue) -> str | None:
    """Return a bare text in place of arguments; None for objects, complete or cut, and redaction marks."""
    if not isinstance(value, str) or value in _REDACTED or value.lstrip().startswith(_OBJECT) or is_unreadable(value):
        return None
    return value


def field(value: Recorded, *path: str) -> Recorded:
    """Return the value at a path of object keys; NOT_RECORDED if any of them is missing."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return NOT_RECORDED
        value = value[key]
    return value


def from_signature(value: Recorded, *ignored: str) -> Recorded:
    """Return the named arguments of `{"args": [...], "kwargs": {...}}`; any other object unchanged.

    Positional arguments have lost their names: with any, the arguments count as not recorded, unless it is one object,
    which is what a function that takes its arguments as one object was given.

    Args:
        value: the decoded attribute.
        ignored: further keys that the instrumentation adds.
    """
    if not isinstance(value, dict) or not set(value) - set(ignored) <= _SIGNATURE or not value:
        return value if isinstance(value, dict) else NOT_RECORDED
    positional = value.get("args") or []
    named = value.get("kwargs") or {}
    if not positional:
        return named if isinstance(named, dict) else NOT_RECORDED
    if isinstance(positional, list) and len(positional) == 1 and isinstance(positional[0], dict) and not named:
        return positional[0]
    return NOT_RECORDED


def is_true(value: AttributeValue | Recorded) -> bool:
    """Return whether a value is true, also as text: some stores keep each attribute as text."""
    return value is True or value == "true"


def is_false(value: AttributeValue | Recorded) -> bool:
    """Return whether a value is false, also as text."""
    return value is False or value == "false"


def identifier(value: AttributeValue) -> str | None:
    """Return an id; None for placeholders of a missing id."""
    found = unquoted(value) if value else None
    return None if found is None or found.startswith("<") else found


def error(span: Span) -> str | None:
    """Return a short text if the span records a failure: by its status, an exception event, or `error.type`.

    It begins with the `error_type`.
    """
    told = text(span.attributes.get(_ERROR_TYPE))
    if told is None and not span.events and span.status_code != StatusCode.ERROR:
        return None
    kind = error_type(span)
    raised = exception(span)
    if raised is not None:
        return kind if kind is not None and raised == _UNNAMED else named(kind, raised)
    if span.status_code == StatusCode.ERROR:
        return named(kind, span.status_message) or told or "error"
    return short(told or "") or None


def error_type(span: Span) -> str | None:
    """Return the type of the span's failure: its `error.type`, or else its first exception's type."""
    kind = text(span.attributes.get(_ERROR_TYPE))
    if kind is not None and kind not in _NO_TYPE:
        return kind
    return exception_type(span) if span.events else None


def exception(span: Span) -> str | None:
    """Return a short text of the first exception event of a span: what follows wraps it. None when there is none."""
    raised = _first_exception(span)
    if raised is None:
        return None
    return named(text(raised.get("exception.type")), text(raised.get("exception.message")) or "") or _UNNAMED


def exception_type(span: Span) -> str | None:
    """Return the type of the first exception event of a span."""
    raised = _first_exception(span)
    return None if raised is None else text(raised.get("exception.type"))


def _first_exception(span: Span) -> Attributes | None:
    return next((event.attributes for event in span.events if event.name == "exception"), None)


def named(kind: str | None, message: str) -> str:
    """Return a short text that begins with the kind of the error; a message that names it already stays as it is."""
    message = message.strip()
    after = message[len(kind or "") :][:1]
    if kind is None or (message.startswith(kind) and not (after.isalnum() or after == "_")):
        return short(message)
    # The exception's own type is the same name with its modules in front: what follows it is the message.
    first, _, rest = message.partition(": ")
    if first.endswith(f".{kind}"):
        message = rest
    return short(f"{kind}: {message}" if message else kind)


def short(message: str) -> str:
    """Return the first line of a message, cut to a length that fits a table and an attribute."""
    return message.strip().partition("\n")[0][:MAX_ERROR_CHARS]


def in_event(span: Span, name: str, key: str) -> AttributeValue:
    """Return an attribute of the first event of a name."""
    return next((event.attributes.get(key) for event in span.events if event.name == name), None)


def reparsed(value: Recorded) -> JSON:
    """Return recorded content for a result: text that spells JSON is decoded, None where nothing was recorded."""
    if isinstance(value, str):
        parsed = parsed_text(value)
        return value if parsed is NOT_RECORDED else parsed
    return None if value is NOT_RECORDED else value
