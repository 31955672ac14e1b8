"""Looks into type hints: which sections a key may hold, and what stands below a key or an index."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from spanscore.config._section import Section


def sections_in(hint: Any) -> list[type[Section]]:
    """Return the sections that a value of this type may be."""
    return [member for member in _members(hint) if isinstance(member, type) and issubclass(member, Section)]


def below(hint: Any, step: str | int) -> tuple[Any, ...]:
    """Return the types of what stands under a key or at an index; none where that is not known."""
    found: list[Any] = [
        section.model_fields[str(step)].annotation for section in sections_in(hint) if str(step) in section.model_fields
    ]
    for member in _members(hint):
        origin, arguments = get_origin(member), get_args(member)
        if origin in (dict, Mapping):
            found.append(arguments[1])
        elif origin is not Literal:
            found += arguments
    return tuple(found)


def _members(hint: Any) -> Iterator[Any]:
    """Yield the types of a union, or of a tuple of types, without their annotations."""
    origin = get_origin(hint)
    if isinstance(hint, tuple):
        for member in hint:
            yield from _members(member)
    elif origin is Annotated:
        yield from _members(get_args(hint)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(hint):
            yield from _members(member)
    else:
        yield hint
