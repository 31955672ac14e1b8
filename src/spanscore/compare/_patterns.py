"""Regular expressions of RE2, which takes time linear in the text: patterns and texts may be made to be slow."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]  # has no type information


@lru_cache(maxsize=512)
def compiled(pattern: str) -> Any:
    """Return a pattern of RE2.

    Raises:
        ValueError: it is not one; the message has the reason.
    """
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error
        raise ValueError(f"the pattern {pattern!r} is not one of RE2: {reason}") from error


def is_found(pattern: str, text: str) -> bool:
    """Return whether a pattern matches somewhere in a text."""
    return compiled(pattern).search(_utf8(text)) is not None


def is_whole(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text."""
    return compiled(pattern).fullmatch(_utf8(text)) is not None


def _utf8(text: str) -> str:
    """RE2 reads UTF-8, which half of a surrogate pair is not."""
    return text if text.isascii() else text.encode(errors="replace").decode()
