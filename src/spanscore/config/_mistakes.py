"""Takes pydantic's errors apart: which part of the data each is about, and which of several are worth telling."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from spanscore.config._tree import Node, Path
from spanscore.settings import DURATION, ENDPOINT, SIZE, URL

WANTS_TEXT: Final = {
    "not_a_duration": DURATION,
    "not_an_endpoint": ENDPOINT,
    "path_type": "text",
    "not_a_secret": "text",
    "not_a_size": SIZE,
    "string_type": "text",
    "not_a_url": URL,
}
"""Pydantic's names for: this should be text. What the text should say."""

_KINDS: Final = {
    **WANTS_TEXT,
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "frozen_set_type": "a list",
    "int_type": "an integer",
    "list_type": "a list",
    "model_type": "a mapping",
    "none_required": "null",
    "tuple_type": "a list",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing that a model does not allow."""

    path: Path
    """The part of the data it is about."""
    type: str
    """Pydantic's name for it."""
    context: Mapping[str, Any]
    """The numbers and words that belong to it."""
    missing: str | int | None = None
    """What is missing at `path`."""
    wanted: tuple[str, ...] = ()
    """Where the kind of value is wrong: the kinds that are allowed."""


def mistakes(error: ValidationError, node: Node) -> Iterator[Mistake]:
    """Yield what is wrong with the data, one mistake for one place where the model offers several types."""
    choices: dict[Path, dict[str | int, list[Mistake]]] = {}
    for each in error.errors(include_url=False, include_input=False):
        kind, context, location = each["type"], each.get("ctx", {}), list(each["loc"])
        missing = location.pop() if kind == "missing" else None
        path: Path = ()
        choice: tuple[Path, str | int] | None = None  # where the model offers several types, and which of them it is
        for step in location:
            if node.find(path).has(step):
                path = (*path, step)
            elif choice is None and step != "[key]":
                choice = path, step
        mistake = Mistake(
            path=path,
            type="key" if location[-1:] == ["[key]"] else kind,
            context=context,
            missing=missing,
            wanted=(context["expected"],) if kind == "literal_error" else tuple(filter(None, [_KINDS.get(kind)])),
        )
        if choice is None:
            yield mistake
        else:
            choices.setdefault(choice[0], {}).setdefault(choice[1], []).append(mistake)
    for path, members in choices.items():
        yield from _settled(path, members.values())


def _settled(path: Path, members: Collection[list[Mistake]]) -> Iterable[Mistake]:
    """Choose the type that the user meant: one whose mistakes lie inside the data, else one of the right kind."""
    for inside in members:
        if all(each.path != path or each.missing is not None for each in inside):
            return inside
    for right_kind in members:
        if not any(each.wanted and each.path == path for each in right_kind):
            return right_kind
    at_path = (each for member in members for each in member if each.path == path)
    wanted = tuple(dict.fromkeys(kind for each in at_path for kind in each.wanted))
    return (Mistake(path=path, type="choice", context={}, wanted=wanted),)
