"""The base of all sections of the configuration: strict, immutable, with a documentation of each key."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

from spanscore.config._docstrings import field_docs


def _completed(schema: dict[str, Any], section: type[Section]) -> None:
    """Allow an empty section, as everywhere in the Collector's configuration, and add the documentation of each key.

    Documentation is in source, which takes longer to read than most configurations take to be checked.
    """
    schema["type"] = ["object", "null"]
    for key, text in section.docs().items():
        if key in schema.get("properties", {}):
            schema["properties"][key].setdefault("description", text)


class Section(BaseModel):
    """A mapping with known keys. Strict: no other keys, no converted types."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        validate_default=True,
        allow_inf_nan=False,
        json_schema_extra=_completed,
    )

    documented: ClassVar[Callable[[], Mapping[str, str]]] = dict
    """Returns the documentation of keys that come from another class, by key."""

    @classmethod
    def docs(cls) -> Mapping[str, str]:
        """Return the documentation of each key, as the source has it."""
        return {**field_docs(cls), **cls.documented()}


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
