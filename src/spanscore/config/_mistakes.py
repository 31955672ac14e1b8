"""Takes pydantic's errors apart: which part of the data each is about, and which of several are worth telling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
    choice: Path | None = None
    """Where the model offers several types on the way to `path`: the data there."""
    member: str | int = ""
    """Which of these types this mistake comes from."""


def mistakes(error: ValidationError, node: Node) -> Iterator[Mistake]:
    """Yield what is wrong with the data, one mistake for one place where the model offers several types."""
    choices: dict[Path, list[Mistake]] = {}
    for each in _apart(error, node):
        if each.choice is None:
            yield each
        else:
            choices.setdefault(each.choice, []).append(each)
    for path, group in choices.items():
        yield from _settled(path, group)


def _apart(error: ValidationError, node: Node) -> Iterator[Mistake]:
    for each in error.errors(include_url=False, include_input=False):
        location = list(each["loc"])
        missing = location.pop() if each["type"] == "missing" else None
        path: Path = ()
        choice: Path | None = None
        member: str | int = ""
        for step in location:
            if node.find(path).has(step):
                path = (*path, step)
            elif choice is None and step != "[key]":
                choice, member = path, step
        yield Mistake(
            path=path,
            type="key" if location[-1:] == ["[key]"] else each["type"],
            context=each.get("ctx", {}),
            missing=missing,
            wanted=_wanted(each),
            choice=choice,
            member=member,
        )


def _wanted(error: Mapping[str, Any]) -> tuple[str, ...]:
    if error["type"] == "literal_error":
        return (error["ctx"]["expected"],)
    return (_KINDS[error["type"]],) if error["type"] in _KINDS else ()


def _settled(path: Path, group: list[Mistake]) -> Iterable[Mistake]:
    """Choose the type that the user meant: one whose mistakes lie inside the data, else one of the right kind."""
    members: dict[str | int, list[Mistake]] = {}
    for each in group:
        members.setdefault(each.member, []).append(each)
    for inside in members.values():
        if all(each.path != path or each.missing is not None for each in inside):
            return inside
    for right_kind in members.values():
        if not any(each.wanted and each.path == path for each in right_kind):
            return right_kind
    wanted = tuple(dict.fromkeys(kind for each in group if each.path == path for kind in each.wanted))
    return (Mistake(path=path, type="choice", context={}, wanted=wanted),)
