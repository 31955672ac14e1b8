"""Checks located data against a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path as FilePath
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from spanscore.config._mistakes import LONGEST_SHOWN, WANTS_TEXT, Mistake, message, mistakes, shown
from spanscore.config._nodes import Node, Path, Problem
from spanscore.config._section import Section, below, is_on_by_default, sections_in
from spanscore.messages.nearest import nearest
from spanscore.model import JSON

Model = TypeVar("Model", bound=Section)

_TEXTS: Final = frozenset(WANTS_TEXT.values())
_SECRETS: Final = "headers"
"""The key below which no message shows a value."""
_ABOUT_THE_KEY: Final = frozenset({"missing", "extra_forbidden", "key"})


def check(model: type[Model], root: Node, *, at: Path = (), directory: FilePath) -> Model | list[Problem]:
    """Return a part of the data as a model has it, or everything that is wrong with it.

    The data is checked as JSON: that is strict about scalars, but takes a list for a tuple. Relative paths in it are
    relative to `directory`.
    """
    node = root.find(at)
    data: Any = _filled(node.data(), model)
    found = _checked(model, data, node, directory)
    if isinstance(found, BaseModel):
        return found
    # As in the Collector, what a variable holds is text where text is wanted, even if it looks like a number.
    wants_text = [each.path for each in found if not _TEXTS.isdisjoint(each.wanted)]
    texts = [path for path in wants_text if node.find(path).text is not None]
    for *above, last in texts:
        reduce(getitem, above, data)[last] = node.find((*above, last)).text
    if texts:
        found = _checked(model, data, node, directory)
        if isinstance(found, BaseModel):
            return found
    meant = {name for each in found if each.type == "extra_forbidden" for name in _meant(each, model)}
    told = (each for each in found if (*each.path, each.missing) not in meant)
    return [_problem(each, model, root, at) for each in told if not _follows_from_another(each, node)]


def _checked(model: type[Model], data: JSON, node: Node, directory: FilePath) -> Model | list[Mistake]:
    try:
        return model.model_validate_json(json.dumps(data), context=directory)
    except ValidationError as error:
        return list(mistakes(error, node))


def _filled(data: JSON, hint: Any) -> JSON:
    """Read `key:` with nothing behind it as an empty section, as the Collector does.

    Where a section is on by default, that switches it off.
    """
    if hint == ():  # any JSON: there is no section in it
        return data
    if data is None and sections_in(hint):
        return {}
    if isinstance(data, dict):
        return {
            key: None if value is None and is_on_by_default(hint, key) else _filled(value, below(hint, key))
            for key, value in data.items()
        }
    if isinstance(data, list):
        of_items = below(hint, 0)
        return [_filled(value, of_items) for value in data]
    return data


def _meant(unknown: Mistake, model: type[BaseModel]) -> Iterator[Path]:
    """Yield the key that an unknown one is taken for: it is not missing, too."""
    *above, key = unknown.path
    yield from ((*above, name) for name in nearest(str(key), _keys(model, tuple(above))))


def _follows_from_another(mistake: Mistake, node: Node) -> bool:
    """Return whether a list is too short only because pydantic left its wrong items out."""
    items = node.find(mistake.path).value
    return mistake.type == "too_short" and isinstance(items, list) and len(items) >= mistake.context["min_length"]


def _problem(mistake: Mistake, model: type[BaseModel], root: Node, at: Path) -> Problem:
    path = (*at, *mistake.path)
    node = root.find(path)
    if _SECRETS in path:
        node = replace(node, written="***")
    place = root.key_place(path) if mistake.type in _ABOUT_THE_KEY and path else node.place
    text = message(mistake, node, _keys(model, mistake.path[:-1]))
    named = path if mistake.missing is None else (*path, mistake.missing)
    if mistake.type == "value_error":  # a class may name the key below it that it is about
        below_it, text = node.named_in(text)
        named, place = (*path, *below_it), node.find(below_it).place
    return Problem(place, named, without_values(text, node))


def without_values(text: str, node: Node) -> str:
    """Take what environment variables hold out of a message about a node."""
    return taking_out_values(node)(text)


def taking_out_values(node: Node) -> Callable[[str], str]:
    """Return a function that replaces values of environment variables by their references, in messages about a node."""
    names: dict[str, str] = {}
    for each in node.expanded():
        if each.text:
            names[each.text] = str(each.written)[:LONGEST_SHOWN]
            names[repr(each.text)] = shown(each)
    # In one pass, as a reference may hold a default that is the value of another; the longest first.
    values = re.compile("|".join(re.escape(value) for value in sorted(names, key=len, reverse=True)))
    return (lambda text: values.sub(lambda found: names[found[0]], text)) if names else str


def _keys(hint: Any, path: Path) -> set[str]:
    for step in path:
        hint = below(hint, step)
    return {key for section in sections_in(hint) for key in section.model_fields}
