"""Python values, from callers and from telemetry, to plain JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from spanscore.config._tree import Path, Place, Problem
from spanscore.model import JSON

MAX_DEPTH: Final = 64


def plain(value: Any, path: Path = ()) -> tuple[JSON, list[Problem]]:
    """Return the value as JSON, and what in it is none. Tuples and sets become lists."""
    problems: list[Problem] = []
    return _plain(value, path, problems), problems


def _plain(value: Any, path: Path, problems: list[Problem]) -> JSON:
    refused = _refusal(value, path)
    if refused:
        problems.append(Problem(Place(), path, refused))
        return None
    if isinstance(value, Mapping):
        return {key: _plain(item, (*path, key), problems) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=repr)
    if isinstance(value, (list, tuple)):
        return [_plain(item, (*path, index), problems) for index, item in enumerate(value)]
    found: JSON = value
    return found


def _refusal(value: Any, path: Path) -> str:
    """Return why a value cannot be JSON, looking no deeper; empty when it can be."""
    match value:
        case None | bool() | int():
            return ""
        case float():
            return "" if math.isfinite(value) else "must be a finite number"
        case str():
            return "" if is_unicode(value) else "must not hold half of a surrogate pair"
        case Mapping():
            if not all(isinstance(key, str) and is_unicode(key) for key in value):
                return "must have keys that are text"
        case list() | tuple() | set() | frozenset():
            pass
        case _:
            return f"must be JSON, not {type(value).__name__}"
    return "" if len(path) < MAX_DEPTH else f"must not be nested more than {MAX_DEPTH} levels deep"


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: it holds no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
