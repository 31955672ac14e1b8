"""Python values, from callers and from telemetry, to plain JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from spanscore.config._nodes import Path, Place, Problem
from spanscore.model import JSON

MAX_DEPTH: Final = 64


def plain(value: Any, path: Path = ()) -> tuple[JSON, list[Problem]]:
    """Return the value as JSON, and problems for parts that are not JSON. Tuples and sets become lists."""
    problems: list[Problem] = []
    return _plain(value, path, problems), problems


def _plain(value: Any, path: Path, problems: list[Problem]) -> JSON:
    match value:
        case float() if not math.isfinite(value):
            refused = "must be a finite number"
        case str() if not is_unicode(value):
            refused = "must not hold half of a surrogate pair"
        case None | bool() | int() | float() | str():
            return value
        case Mapping() if not all(isinstance(key, str) and is_unicode(key) for key in value):
            refused = "must have keys that are text"
        case Mapping() | list() | tuple() | set() | frozenset() if len(path) >= MAX_DEPTH:
            refused = f"must not be nested more than {MAX_DEPTH} levels deep"
        case Mapping():
            return {key: _plain(item, (*path, key), problems) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            return [_plain(item, (*path, index), problems) for index, item in enumerate(items)]
        case _:
            refused = f"must be JSON, not {type(value).__name__}"
    problems.append(Problem(Place(), path, refused))
    return None


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: it has no lone surrogate."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
