"""Texts that look alike: formats by their names, and numbers and ids by their shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters
from typing import Final

from spanscore.model import JSON

_TIME: Final = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?([Zz]|[+-][0-9]{2}:?[0-9]{2})?"
_FORMATS: Final[Mapping[str, str]] = {
    "date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "date-time": rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_TIME}",
    "time": _TIME,
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "email": r"[^@\s]+@[^@\s]+[.][^@\s]+",
    "uri": r"[A-Za-z][A-Za-z0-9+.-]*:\S+",
}
_PIECES: Final = re.compile(r"[^\W_]+|.", re.DOTALL)
_CLASSES: Final[Sequence[tuple[str, Callable[[str], bool]]]] = (
    ("[0-9]", str.isdecimal),
    ("[0-9a-f]", lambda text: all(each in "0123456789abcdef" for each in text)),
    ("[a-z]", lambda text: text.isalpha() and text.islower()),
    ("[A-Z]", lambda text: text.isalpha() and text.isupper()),
    ("[a-z0-9]", lambda text: text == text.lower()),
    ("[A-Z0-9]", lambda text: text == text.upper()),
    ("[A-Za-z0-9]", str.isalnum),
)
_SPECIAL: Final = re.compile(r"[][.^$*+?{}()|\\]")
_LONGEST_EMAIL: Final = 320
"""64 characters, an @ and 255 more, by RFC 5321."""
_LONGEST: Final = 80
"""An id is no longer."""


def shape_of(texts: Sequence[str]) -> Mapping[str, JSON]:
    """Return the keywords of a JSON Schema for the form of texts: `format` and `pattern`, or none.

    `format` says it to people; the pattern, of RE2, is what is checked.
    """
    for name, pattern in _FORMATS.items():
        if name == "email" and max(map(len, texts)) > _LONGEST_EMAIL:  # matching takes the square of the length
            continue
        if all(re.fullmatch(pattern, text) for text in texts):
            return {"format": name, "pattern": f"^{pattern}$"}
    found = _id_pattern(texts)
    return {} if found is None else {"pattern": f"^{found}$"}


def _id_pattern(texts: Sequence[str]) -> str | None:
    """Return the pattern of ids: texts of the same pieces, of which one always has a digit in it."""
    if not all(text.isascii() and text.isprintable() and 0 < len(text) <= _LONGEST for text in texts):
        return None
    if any(" " in text for text in texts):
        return None
    split = [_PIECES.findall(text) for text in texts]
    if len(set(map(len, split))) > 1:
        return None
    if not any(all(map(_has_digit, pieces)) for pieces in zip(*split, strict=True)):
        return None
    patterns = [_piece(pieces) for pieces in zip(*split, strict=True)]
    return None if None in patterns else "".join(each for each in patterns if each is not None)


def _piece(texts: Sequence[str]) -> str | None:
    """Return the pattern of one piece of all ids; None where it has no form."""
    if len(set(texts)) == 1:
        return _SPECIAL.sub(r"\\\g<0>", texts[0])
    if not all(text.isalnum() for text in texts):
        return None
    prefix = _letters_before(texts)
    rest = [text[len(prefix) :] for text in texts]
    kind = next(pattern for pattern, holds in _CLASSES if all(map(holds, rest)))
    if len({len(text) for text in rest}) == 1:
        return f"{prefix}{kind}{{{len(rest[0])}}}"
    return f"{prefix}{kind}+" if all(map(_has_digit, texts)) else None


def _has_digit(text: str) -> bool:
    return any(each.isdecimal() for each in text)


def _letters_before(texts: Sequence[str]) -> str:
    """Return the common letters before a number in all texts; None if another character follows them."""
    first = texts[0]
    prefix = first[: len(first) - len(first.lstrip(ascii_letters))]
    return prefix if all(text.startswith(prefix) and text[len(prefix) :].isdecimal() for text in texts) else ""
