"""Parses texts: JSON, a Python literal, or objects that Python printed; shared by dialects.

NOT_RECORDED means "none of these". Texts are untrusted: none is given to a parser that would exhaust the stack, take
quadratic time, or write warnings to the standard error.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final

import msgspec

from spanscore.model import JSON, NOT_RECORDED, Recorded, is_too_long

MAX_PARSED_CHARS: Final = 256 * 1024
"""Longer texts are not parsed: they cost time and are no arguments."""
MAX_DEPTH: Final = 200
LONGEST_KEPT: Final = 4_096
"""Characters of a text whose value is kept until the other dialects of its span have asked for it, too."""

# Only what repr() itself writes: ast would warn on stderr about any other escape.
_FOREIGN_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\'\"nrtxuU]")
_NUMBER_AND_WORD: Final = re.compile(r"(?:(?<!\w)|\.)\d[\w.]*?(?:and|else|for|if|i[ns]|not|or)")
# To the end where no quote closes: looked for again at each later quote, that would take quadratic time.
_QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)""", re.DOTALL)
_UNICODE_ESCAPE: Final = re.compile(r"\\[uUN]")
_ESCAPE_CHARS: Final = len("\\uD83D\\uDE00")
_CUT_TOKEN: Final = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\.|[eE][+-]?)?\s*")
_BARE_TEXT: Final = re.compile(r"[^\s\d{\[\"tfn-]")
_BRACKET: Final = re.compile(r"[][(){}]")
_OPENING: Final = ("{", "[", "(")
_ENUM: Final = re.compile(r"<[A-Za-z_][\w.]*: ('[^'\\]*'|\d+)>")
_UNPARSABLE: Final = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


def parsed_text(value: str) -> Recorded:
    """Return the JSON or Python literal that a text spells. Never change it: the next dialect is given the same."""
    if len(value) <= LONGEST_KEPT:
        return _known(value)
    return _parsed(value) if len(value) <= MAX_PARSED_CHARS else NOT_RECORDED


def _parsed(value: str) -> Recorded:
    parsed = _json(value)
    return literal(value) if parsed is NOT_RECORDED and value.lstrip().startswith(_OPENING) else parsed


_known: Final = lru_cache(maxsize=32)(_parsed)


def items_in_json(value: str) -> list[bytes] | None:
    """Return the JSON of each item of a list, not parsed yet; None if a text is too long, or not the JSON of a list."""
    if len(value) > MAX_PARSED_CHARS:
        return None
    try:
        return list(map(bytes, _ITEMS_DECODER.decode(value)))
    except _NO_QUICK_JSON:
        return None


def parsed_item(item: bytes) -> Recorded:
    """Return the value of an item; NOT_RECORDED if the whole list is parsed in another way."""
    try:
        content: JSON = _QUICK_DECODER.decode(item)
    except _NO_QUICK_JSON:
        return NOT_RECORDED
    return content


def literal(value: str) -> Recorded:
    """Return the Python literal that a text spells, a quoted string too."""
    if not _is_parsable(value):
        return NOT_RECORDED
    try:
        content = ast.literal_eval(value.strip())
        return plain(content) if _is_finite(content) else NOT_RECORDED
    except _UNPARSABLE:
        return NOT_RECORDED


def printed(value: str) -> Recorded:
    """Return objects that were printed as `ToolCall(name='x', arguments={...})`: their fields by name.

    Members of enumerations are their values. NOT_RECORDED when the text is anything else, or was cut.
    """
    if not _is_parsable(value):
        return NOT_RECORDED
    try:
        return _printed(ast.parse(_ENUM.sub(r"\1", value.strip()), mode="eval").body)
    except _UNPARSABLE:
        return NOT_RECORDED


def is_unreadable(value: str) -> bool:
    """Return whether a text is JSON that cannot be read: the beginning of an object or array, or too large or too deep.

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


def plain(value: Any, depth: int = 0) -> JSON:
    """Return a value as JSON: tuples and sets as lists, bytes and unknown things as text, no lone surrogates.

    Sets are sorted: their order differs between processes.

    Raises:
        ValueError: an integer has too many digits to be written.
    """
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, int) and is_too_long(value):
        raise ValueError("an integer is too long")
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [plain(item, depth + 1) for item in value]
        return items if isinstance(value, (list, tuple)) else sorted(items, key=repr)
    if isinstance(value, Mapping):
        return {encodable(str(key)): plain(item, depth + 1) for key, item in value.items()}
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def encodable(value: str) -> str:
    """Return a text without lone surrogates, which no encoding can write."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


def _json(value: str) -> Recorded:
    if _BARE_TEXT.match(value):  # most results: to learn it from the decoder's exception takes ten times as long
        return NOT_RECORDED
    try:
        content: JSON = _QUICK_DECODER.decode(value)
    except _NO_QUICK_JSON:
        return _json_of_any_kind(value)
    return content


def _json_of_any_kind(value: str) -> Recorded:
    """Return the JSON that a text spells, with lone surrogates, and integers of any length, as `json` reads them."""
    try:
        content = _DECODER.decode(value)
    except (ValueError, RecursionError):
        return NOT_RECORDED
    return plain(content) if "\\u" in value else content


def _refuse_constant(token: str) -> float:
    raise ValueError(token)


def _finite(token: str) -> float:
    number = float(token)
    return number if math.isfinite(number) else _refuse_constant(token)


_QUICK_DECODER: Final = msgspec.json.Decoder()
"""Takes a third of the time. What it reads, `json` reads the same; it refuses more."""
_ITEMS_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw])
_NO_QUICK_JSON: Final = (msgspec.MsgspecError, ValueError, RecursionError)
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def _printed(node: ast.expr) -> JSON:
    match node:
        case ast.Constant(value=value):  # most nodes: literal_eval takes ten times as long
            return hex(value) if isinstance(value, int) and is_too_long(value) else plain(value)
        case ast.Call(args=[], keywords=fields):
            return {field.arg: _printed(field.value) for field in fields if field.arg}
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_printed(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {str(_printed(key)): _printed(item) for key, item in zip(keys, values, strict=True) if key}
    try:
        return plain(ast.literal_eval(node))
    except ValueError:  # a date, an id: as it was printed
        return ast.unparse(node)


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


def _is_parsable(value: str) -> bool:
    """Return whether Python's parser may be given a text: it is neither long nor deep, and no warning comes of it."""
    if len(value) > MAX_PARSED_CHARS or ("\\" in value and _FOREIGN_ESCAPE.search(value)):
        return False
    return _depth(value) <= MAX_DEPTH and not _is_warned_of(value)


def _is_warned_of(value: str) -> bool:
    """Return whether ast may warn about a text on the standard error; False for everything that repr() writes.

    It warns of a number with a word at its end, as in `1or 2`, and of escapes of Unicode in bytes. Within quotes
    nothing is special.
    """
    for quoted in _QUOTED.finditer(value) if _UNICODE_ESCAPE.search(value) else ():
        if value[quoted.start() - 1 : quoted.start()] in ("b", "B") and _UNICODE_ESCAPE.search(quoted[0]):
            return True
    outside = _QUOTED.sub("''", value)
    return "#" in outside or _NUMBER_AND_WORD.search(outside) is not None


def _depth(value: str) -> int:
    """Return an upper bound of the nesting, so that the parser's C stack is never at risk."""
    brackets = sum(map(value.count, _OPENING))
    if brackets <= MAX_DEPTH:
        return brackets
    steps = (1 if bracket in _OPENING else -1 for bracket in _BRACKET.findall(value))
    return max(accumulate(steps), default=0)
