"""Text from outside, made safe to print: names, errors and explanations may hold anything."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

NAME_WIDTH: Final = 60
MAX_LABEL_CHARS: Final = 128
PATH_WIDTH: Final = 4_096
_DIGITS: Final = 8
_ERROR_TYPE: Final = re.compile(r"[\w.:$<>*-]{1,100}")


def printable(text: str, width: int = NAME_WIDTH) -> str:
    """Return text as one line without anything that moves the cursor, cut to a width."""
    shown = text[: width + 1]  # a name may be a megabyte long
    if not shown.isprintable():
        shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in shown)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def cannot_be_read(path: object, why: str | None) -> str:
    """Return the message about a file that cannot be read."""
    return f"{printable(str(path), PATH_WIDTH)}: cannot be read: {why}"


def encodable(text: str) -> str:
    """Return text that UTF-8 can encode: one half of a surrogate pair would fail the export of a whole batch."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def label(name: str) -> str:
    """Return a name as the value of a metric label: no control characters, NFC, at most `MAX_LABEL_CHARS`."""
    if len(name) <= MAX_LABEL_CHARS and name.isascii() and name.isprintable():
        return name
    # Only the beginning is looked at: a name may be a megabyte long.
    shown = "".join(filter(str.isprintable, name[: 2 * MAX_LABEL_CHARS]))
    return unicodedata.normalize("NFC", shown)[:MAX_LABEL_CHARS]


def label_apart(text: str) -> str:
    """Return a text as `label` does; a longer one is cut to 119 characters, `~` and 8 hexadecimal digits.

    The digits are of the SHA-256 of the whole text, so that long texts that differ stay different.
    """
    if len(text) <= MAX_LABEL_CHARS:
        return label(text)
    digits = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{label(text)[: MAX_LABEL_CHARS - 1 - _DIGITS]}~{digits}"


def error_type_or_error(error_type: str | None) -> str:
    """Return a type of error if it looks like the name of one; else `error`, as it may be a text that quotes data."""
    return error_type if error_type is not None and _ERROR_TYPE.fullmatch(error_type) else "error"
