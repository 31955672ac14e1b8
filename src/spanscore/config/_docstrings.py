"""The documentation of a class and of its fields, as its source has it."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from types import ModuleType
from typing import Final

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
