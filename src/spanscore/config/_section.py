"""The base of all sections of the configuration: strict, immutable, with a documentation of each key."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict


def _nullable(schema: dict[str, Any]) -> None:
    """Allow an empty `key:`, as everywhere in the Collector's configuration: it means the section's defaults."""
    schema["type"] = ["object", "null"]


class Section(BaseModel):
    """A mapping with known keys. Strict: no other keys, no converted types."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        json_schema_extra=_nullable,
    )


WITHOUT_SOURCE: Final = {"use_attribute_docstrings": False}
"""For sections made at run time: pydantic would look for the descriptions, which they have, in the source of all
callers, for 0.06 s of `spanscore score`, and for longer the more modules are loaded."""


def sections_in(hint: Any) -> list[type[Section]]:
    """Return the sections that a value of this type may be."""
    return [member for member in _members(hint) if isinstance(member, type) and issubclass(member, Section)]


def below(hint: Any, step: str | int) -> tuple[Any, ...]:
    """Return the types of the value under a key or at an index; empty if unknown."""
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


def is_on_by_default(hint: Any, key: str) -> bool:
    """Return whether a key has a default that null, which it allows, takes away."""
    known = (section.model_fields.get(key) for section in sections_in(hint))
    return any(
        field is not None
        and type(None) in _members(field.annotation)
        and field.get_default(call_default_factory=True) is not None
        for field in known
    )


def _members(hint: Any) -> Iterator[Any]:
    """Yield the types of a union, or of a tuple of types, without their annotations."""
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _members(get_args(hint)[0])
    elif isinstance(hint, tuple) or origin in (Union, types.UnionType):
        for member in hint if isinstance(hint, tuple) else get_args(hint):
            yield from _members(member)
    else:
        yield hint
