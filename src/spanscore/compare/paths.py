"""Paths into arguments and results: the value at a path, and copies without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from spanscore.compare.differences import ABSENT

Path: TypeAlias = tuple[str, ...]
"""Keys of objects, or indexes of lists, from the top."""

_MAX_STEPS: Final = 64
_MAX_INDEX_DIGITS: Final = 9


def parsed_path(text: str) -> Path:
    """Return the steps of a dotted path.

    Raises:
        ValueError: a step is empty, or there are too many.
    """
    steps = tuple(text.split("."))
    if not all(steps) or len(steps) > _MAX_STEPS:
        message = f"{text!r} must be keys joined by dots, such as 'filter.dates.0', and at most {_MAX_STEPS} of them"
        raise ValueError(message)
    return steps


def value_at(value: Any, path: Path) -> Any:
    """Return the value at a path, or `ABSENT`."""
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and (index := _index(value, step)) is not None:
            value = value[index]
        else:
            return ABSENT
    return value


def without(value: Any, paths: Sequence[Path]) -> Any:
    """Return a copy without the values at the paths. An item of a list becomes null, so others keep their index."""
    for path in paths:
        value = _without(value, path)
    return value


def _without(value: Any, path: Path) -> Any:
    """Copy only the values on the path. Recurses no deeper than the path is long."""
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and step in value:
        if rest:
            return {**value, step: _without(value[step], rest)}
        return {key: item for key, item in value.items() if key != step}
    if isinstance(value, list) and (index := _index(value, step)) is not None:
        return [*value[:index], _without(value[index], rest) if rest else None, *value[index + 1 :]]
    return value


def _index(items: list[Any], step: str) -> int | None:
    is_index = step.isascii() and step.isdecimal() and len(step) <= _MAX_INDEX_DIGITS
    return int(step) if is_index and int(step) < len(items) else None
