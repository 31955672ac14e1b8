"""What the text in an attribute says: arguments, results and errors, shared by all dialects.

Instrumentations write JSON, the repr of a Python object, bare text, a redaction mark, or cut what they write. A value
that cannot be trusted to be what the agent really passed counts as not recorded: an evaluator then skips, instead of
scoring a fault of the instrumentation.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from spanscore.model import JSON, NOT_RECORDED, Attributes, AttributeValue, Recorded, Span, StatusCode

MAX_PARSED_CHARS: Final = 256 * 1024
"""Longer texts are not parsed: they cost time and are no arguments."""
MAX_ERROR_CHARS: Final = 256
MAX_DEPTH: Final = 200

_ERROR_TYPE: Final = "error.type"
_UNNAMED: Final = "exception"
_NO_TYPE: Final = frozenset({"unknown", "_OTHER"})
"""What instrumentations write as `error.type` when they do not know it."""

READS: Final = frozenset({_ERROR_TYPE})
"""The attributes that `error` looks at."""

_REDACTED: Final = frozenset({"__REDACTED__", "[REDACTED]", "<REDACTED>", "REDACTED", "***"})
# Only what repr() itself writes: ast would warn on stderr about any other escape.
_FOREIGN_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"nrtxuU]")
_NUMBER_AND_WORD: Final = re.compile(r"(?:(?<!\w)|\.)\d[\w.]*?(?:and|else|for|if|i[ns]|not|or)")
# To the end where no quote closes: looked for again at each later quote, that would take quadratic time.
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)""", re.DOTALL)
_UNICODE_ESCAPE: Final = re.compile(r"\\[uUN]")
_ESCAPE_CHARS: Final = len("\\uD83D\\uDE00")
_CUT_TOKEN: Final = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\.|[eE][+-]?)?\s*")
_BARE_TEXT: Final = re.compile(r"[^\s\d{\[\"tfn-]")
_OPENING: Final = ("{", "[", "(")
_OBJECT: Final = ('{"', "{'", "{}")
_UNDECODED: Final = object()


def text(value: AttributeValue) -> str | None:
    """Return an attribute as text; None when it is missing, empty, or no text."""
    return value if isinstance(value, str) and value else None


def first_text(attributes: Attributes, keys: Iterable[str]) -> str | None:
    """Return the first of several attributes that is text."""
    return next((found for key in keys if (found := text(attributes.get(key)))), None)


def first(*values: AttributeValue) -> AttributeValue:
    """Return the first value that is there: an empty object is, empty text is not."""
    return next((value for value in values if value is not None and value != ""), None)


def unquoted(value: AttributeValue) -> str | None:
    """Return text that some instrumentations JSON-encode a second time, without those quotes."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        decoded = _json(value)
        return decoded if isinstance(decoded, str) else None
    return text(value)


def decoded(value: AttributeValue | JSON) -> Recorded:
    """Return the JSON that an attribute holds: structured already, as JSON text, as a Python repr, or as plain text.

    JSON text that a length limit cut off, or that is too large or too deep to be read, is not recorded.
    """
    if value is None:
        return NOT_RECORDED
    if not isinstance(value, str):
        return plain(value)
    if value in _REDACTED:
        return NOT_RECORDED
    value = _encodable(value)
    parsed = parsed_text(value)
    if parsed is NOT_RECORDED and not _is_unreadable(value):
        return value
    return parsed


def parsed_text(value: str) -> Recorded:
    """Return the JSON or Python literal that a text spells; NOT_RECORDED when it is neither."""
    if len(value) > MAX_PARSED_CHARS:
        return NOT_RECORDED
    parsed = _json(value)
    if parsed is _UNDECODED and value.lstrip().startswith(_OPENING):
        parsed = _python_literal(value)
    return NOT_RECORDED if parsed is _UNDECODED else parsed


def literal(value: str) -> Recorded:
    """Return the Python literal that a text spells, a quoted string too; NOT_RECORDED when it is none."""
    parsed = _python_literal(value)
    return NOT_RECORDED if parsed is _UNDECODED else parsed


def arguments(value: AttributeValue | JSON) -> Recorded:
    """Return the arguments of a call, or NOT_RECORDED when they are missing, redacted, cut, or bare text."""
    content = decoded(value)
    if isinstance(content, str) and content.lstrip().startswith("{"):
        content = parsed_text(content)  # JSON text within JSON text, one level
    return NOT_RECORDED if content is None or isinstance(content, str) else content


def sole_argument(value: AttributeValue) -> str | None:
    """Return the bare text that stands where arguments should; None for objects, whole or cut, and redaction marks."""
    if not isinstance(value, str) or value in _REDACTED or value.lstrip().startswith(_OBJECT) or _is_unreadable(value):
        return None
    return value


def field(value: Recorded, *path: str) -> Recorded:
    """Return what stands at a path of object keys; NOT_RECORDED when any of them is missing."""
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return NOT_RECORDED
        value = value[key]
    return value


def string(value: Recorded) -> str | None:
    """Return a JSON string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def identifier(value: AttributeValue) -> str | None:
    """Return an id; None for the placeholders that stand for "there was none"."""
    found = unquoted(value)
    return None if found is None or found.startswith("<") else found


def error(span: Span) -> str | None:
    """Return a short text when the span says that it failed: by its status, an exception event, or `error.type`.

    It begins with the `error_type`.
    """
    kind = error_type(span)
    raised = exception(span)
    if raised is not None:
        return kind if kind is not None and raised == _UNNAMED else named(kind, raised)
    if span.status_code == StatusCode.ERROR:
        return named(kind, span.status_message) or text(span.attributes.get(_ERROR_TYPE)) or "error"
    return short(text(span.attributes.get(_ERROR_TYPE)) or "") or None


def error_type(span: Span) -> str | None:
    """Return what the span calls the kind of its failure: its `error.type`, or else its first exception's type."""
    kind = text(span.attributes.get(_ERROR_TYPE))
    return exception_type(span) if kind is None or kind in _NO_TYPE else kind


def exception(span: Span) -> str | None:
    """Return a short text of the first exception event of a span: what follows wraps it. None when there is none."""
    for event in span.events:
        if event.name == "exception":
            kind = text(event.attributes.get("exception.type"))
            message = text(event.attributes.get("exception.message"))
            return named(kind, message or "") or _UNNAMED
    return None


def exception_type(span: Span) -> str | None:
    """Return the type of the first exception event of a span."""
    for event in span.events:
        if event.name == "exception":
            return text(event.attributes.get("exception.type"))
    return None


def named(kind: str | None, message: str) -> str:
    """Return a short text that begins with the kind of the error; a message that names it already stays as it is."""
    message = message.strip()
    if kind is None or _begins_with(message, kind):
        return short(message)
    # The exception's own type is the same name with its modules in front: what follows it is the message.
    first, _, rest = message.partition(": ")
    if first.endswith(f".{kind}"):
        message = rest
    return short(f"{kind}: {message}" if message else kind)


def _begins_with(message: str, kind: str) -> bool:
    after = message[len(kind) : len(kind) + 1]
    return message.startswith(kind) and not (after.isalnum() or after == "_")


def short(message: str) -> str:
    """Return the first line of a message, cut to a length that fits a table and an attribute."""
    return message.strip().partition("\n")[0][:MAX_ERROR_CHARS]


def _json(value: str) -> Any:
    if _BARE_TEXT.match(value):  # most results: to learn it from the decoder's exception takes ten times as long
        return _UNDECODED
    try:
        content = _DECODER.decode(value)
    except (ValueError, RecursionError):
        return _UNDECODED
    return plain(content) if "\\u" in value else content


def _is_unreadable(value: str) -> bool:
    """Tell whether a text is JSON that cannot be read: the beginning of an object or array, or too large or too deep.

    A long text that only begins like one counts too: to find out would cost what the limit saves.
    """
    if not value.lstrip().startswith(_OPENING):
        return False
    if len(value) > MAX_PARSED_CHARS:
        return True
    try:
        json.loads(value)
    except json.JSONDecodeError as error:
        is_in_escape = error.msg.startswith("Invalid \\u") and len(value) - error.pos < _ESCAPE_CHARS
        is_in_string = is_in_escape or error.msg.startswith("Unterminated string")
        return is_in_string or _CUT_TOKEN.fullmatch(value, error.pos) is not None
    except (ValueError, RecursionError):  # an integer of thousands of digits, or nesting of thousands of levels
        return True
    return False


def _refuse_constant(token: str) -> float:
    raise ValueError(token)


def _finite(token: str) -> float:
    number = float(token)
    if not math.isfinite(number):
        raise ValueError(token)
    return number


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _python_literal(value: str) -> Any:
    if not is_parsable(value):
        return _UNDECODED
    try:
        content = ast.literal_eval(value.strip())
        return plain(content) if _is_finite(content) else _UNDECODED
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _UNDECODED


def _is_finite(content: Any) -> bool:
    """Return whether no number in a literal was too large for a float, as 1e999 is."""
    pending = [content]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += value
            pending += value.values()
        elif isinstance(value, (list, tuple, set)):
            pending += value
        elif isinstance(value, float) and not math.isfinite(value):
            return False
    return True


def is_parsable(value: str) -> bool:
    """Return whether Python's parser may be given a text: it is neither long nor deep, and no warning comes of it."""
    is_safe = len(value) <= MAX_PARSED_CHARS and not _FOREIGN_ESCAPE.search(value) and _depth(value) <= MAX_DEPTH
    return is_safe and not _is_warned_of(value)


def _is_warned_of(value: str) -> bool:
    """Tell whether ast may warn of a text, on the standard error of whoever runs us; never so of what repr() writes.

    It warns of a number with a word at its end, as in `1or 2`, and of escapes of Unicode in bytes. Within quotes
    nothing is special.
    """
    for quoted in _QUOTED.finditer(value):
        if value[quoted.start() - 1 : quoted.start()] in ("b", "B") and _UNICODE_ESCAPE.search(quoted[0]):
            return True
    outside = _QUOTED.sub("''", value)
    return "#" in outside or _NUMBER_AND_WORD.search(outside) is not None


def _depth(value: str) -> int:
    """Return an upper bound of the nesting, so that the parser's C stack is never at risk."""
    depth = deepest = 0
    for character in value:
        if character in "{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}])":
            depth -= 1
    return deepest


def plain(value: Any, depth: int = 0) -> JSON:
    """Return a value as JSON: tuples and sets as lists, bytes and unknown things as text, no lone surrogates."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, Mapping):
        return {_encodable(str(key)): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, str):
        return _encodable(value)
    return _plain_scalar(value)


def _encodable(value: str) -> str:
    """Return a text without lone surrogates, which no encoding can write."""
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def _plain_scalar(value: Any) -> JSON:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def reparsed(value: Recorded) -> JSON:
    """Return recorded content for a result: text that spells JSON is decoded, None where nothing was recorded."""
    if isinstance(value, str):
        parsed = parsed_text(value)
        return value if parsed is NOT_RECORDED else parsed
    return None if value is NOT_RECORDED else value
