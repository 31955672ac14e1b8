"""The base of all sections of the configuration: strict, immutable, with a documentation of each key."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from types import ModuleType
from typing import Annotated, Any, ClassVar, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

_FOR_CALLERS: Final = re.compile(r"\n\n(?:Args|Raises):\n")


def docstring(documented: type) -> str:
    """Return the class docstring, unindented and without its sections for callers; empty if the class has none.

    A dataclass without one gets its signature for a docstring, which is useless for a user.
    """
    text = _FOR_CALLERS.split(inspect.cleandoc(documented.__doc__ or ""), maxsplit=1)[0]
    return "" if text.startswith(f"{documented.__name__}(") else text


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring on one line."""
    paragraph = " ".join(text.split("\n\n", 1)[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return sentence + stop.strip()


def field_docs(documented: type) -> dict[str, str]:
    """Return the string below each annotated field of a class and of the classes it derives from, on one line."""
    return {name: text for each in reversed(documented.__mro__[:-1]) for name, text in _own_field_docs(each).items()}


def _own_field_docs(documented: type) -> Mapping[str, str]:
    if "__annotations__" in vars(documented):
        with suppress(KeyError, OSError, TypeError, SyntaxError):  # compiled, or made at run time: there is no source
            return _docs_by_class(sys.modules[documented.__module__])[documented.__qualname__]
    return {}


@lru_cache(maxsize=256)
def _docs_by_class(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Return the documented fields of all classes of a module: its source is parsed once."""
    return {name: dict(_docs_in(body)) for name, body in _classes_in(ast.parse(inspect.getsource(module)))}


def _classes_in(node: ast.AST, inside: str = "") -> Iterator[tuple[str, list[ast.stmt]]]:
    """Yield the qualified name and the body of each class."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ClassDef(name=name, body=body):
                yield inside + name, body
                yield from _classes_in(child, f"{inside}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _classes_in(child, f"{inside}{name}.<locals>.")
            case ast.stmt() | ast.ExceptHandler():
                yield from _classes_in(child, inside)


def _docs_in(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for pair in pairwise(body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                yield name, " ".join(text.split())


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
        defer_build=True,
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
