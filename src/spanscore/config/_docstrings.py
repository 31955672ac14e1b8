"""The documentation of a class and of its fields, as its source has it."""

from __future__ import annotations

import ast
import inspect
import textwrap


def docstring(documented: type) -> str:
    """Return the class docstring, unindented; empty when there is none of its own.

    A dataclass without one gets its signature for a docstring, which says nothing to a user.
    """
    text = inspect.cleandoc(documented.__doc__ or "")
    return "" if text.startswith(f"{documented.__name__}(") else text


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring on one line."""
    paragraph = " ".join(text.split("\n\n", 1)[0].split())
    sentence, stop, _ = paragraph.partition(". ")
    return sentence + stop.strip()


def field_docs(documented: type) -> dict[str, str]:
    """Return the string below each annotated field of a class and of the classes it derives from, on one line."""
    docs: dict[str, str] = {}
    for each in reversed(documented.__mro__[:-1]):
        docs |= _own_field_docs(each)
    return docs


def _own_field_docs(documented: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(documented))
        definition = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):  # compiled, or made at run time: there is no source to look at
        return {}
    if not isinstance(definition, ast.ClassDef):
        return {}
    docs = {}
    for statement, below in zip(definition.body, definition.body[1:], strict=False):
        match statement, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                docs[name] = " ".join(text.split())
    return docs
