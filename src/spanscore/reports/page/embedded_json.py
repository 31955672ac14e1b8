"""JSON that is safe inside a page."""

from __future__ import annotations

import json
from typing import Any, Final

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ESCAPES: Final = {ord("<"): r"\u003c", 0x2028: r"\u2028", 0x2029: r"\u2029"}
"""In an element `script` a `<` may end it, or begin a comment that hides its end; the other two end a line of JS."""


def embedded(value: Any) -> str:
    """Return a value as JSON for an element `script`, in as few characters as possible.

    A lone surrogate stays unchanged: `encoded` writes it as an escape of JSON.
    """
    text = _ENCODER.encode(value)
    return text if text.isascii() and "<" not in text else text.translate(_ESCAPES)


def encoded(text: str) -> bytes:
    """Return a page, or a part of it, as its bytes."""
    return text.encode("utf-8", "backslashreplace")


def size_of(text: str) -> int:
    """Return how many bytes a text has in a page."""
    return len(text) if text.isascii() else len(encoded(text))
