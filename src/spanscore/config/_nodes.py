"""A configuration as read: plain data of which every part knows its place in the file, and what is wrong there.

Values from callers and from telemetry become such data, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.errors import ConfigError
from spanscore.model import JSON

Path: TypeAlias = "tuple[str | int, ...]"

MAX_DEPTH: Final = 64
_INDEX: Final = re.compile(r"\[([0-9]{1,9})\]")
_LONGEST_KEY: Final = 100
_MOST_SHOWN: Final = 100
_BARE_KEY: Final = re.compile(r"\$?[\w-]+")


class Place(NamedTuple):
    """A place in a file: line and column, counted from 1."""

    line: int = 0
    column: int = 0


class Problem(NamedTuple):
    """One thing that is wrong."""

    place: Place
    path: Path
    message: str
    elsewhere: str = ""
    """File and line, where it is wrong in another file than the configuration; `place` says where that is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value of the file: a scalar, a list of nodes, or a mapping of nodes by key."""

    place: Place
    value: bool | int | float | str | list[Node] | dict[str, Node] | None
    key_places: dict[str, Place] = field(default_factory=dict)
    """The places of the keys of a mapping."""
    written: str | None = None
    """The text in the file, where `${env:NAME}` in it was replaced: what messages show in place of the value."""
    text: str | None = None
    """The value before it was read as a number, a boolean or null, where `${env:NAME}` in it was replaced."""

    @classmethod
    def of(cls, data: JSON, place: Place) -> Node:
        """Make nodes of plain data, all at one place."""
        if isinstance(data, list):
            return cls(place=place, value=[cls.of(item, place) for item in data])
        if isinstance(data, dict):
            items = {key: cls.of(item, place) for key, item in data.items()}
            return cls(place=place, value=items, key_places=dict.fromkeys(items, place))
        return cls(place=place, value=data)

    def data(self) -> JSON:
        """Return the plain value."""
        if isinstance(self.value, list):
            return [item.data() for item in self.value]
        if isinstance(self.value, dict):
            return {key: item.data() for key, item in self.value.items()}
        return self.value

    def find(self, path: Path) -> Node:
        """Return the node at a path, or the nearest one above it that exists."""
        node = self
        for step in path:
            below = node._below(step)
            if below is None:
                break
            node = below
        return node

    def has(self, step: str | int) -> bool:
        """Return whether there is a value under a key or at an index."""
        return self._below(step) is not None

    def mapping(self, key: str) -> dict[str, Node]:
        """Return the mapping under a key; an empty one where there is none."""
        below = self._below(key)
        return below.value if below is not None and isinstance(below.value, dict) else {}

    def key_place(self, path: Path) -> Place:
        """Return where the key at the end of a path stands; for an item of a list, the item."""
        *above, last = path
        parent = self.find(tuple(above))
        return parent.key_places[last] if last in parent.key_places else self.find(path).place

    def named_in(self, message: str) -> tuple[Path, str]:
        """Split a message that starts with a path below this node, as in `tool_calls[0].name: must be text`."""
        path: Path = ()
        node, rest = self, message
        while not rest.startswith(": "):
            step, rest = node._first_step(rest)
            if step is None:
                return (), message
            path, node = (*path, step), node.find((step,))
        return path, rest.removeprefix(": ")

    def expanded(self) -> Iterator[Node]:
        """Yield every scalar in which `${env:NAME}` was replaced."""
        if isinstance(self.value, list):
            for item in self.value:
                yield from item.expanded()
        elif isinstance(self.value, dict):
            for item in self.value.values():
                yield from item.expanded()
        elif self.written is not None:
            yield self

    def _first_step(self, text: str) -> tuple[str | int | None, str]:
        if isinstance(self.value, dict):
            for key in sorted(self.value, key=len, reverse=True):
                for written in (key, f".{key}", f"[{key!r}]"):
                    if text.startswith(written) and text[len(written) : len(written) + 1] in (".", "[", ":"):
                        return key, text.removeprefix(written)
        elif isinstance(self.value, list) and (index := _INDEX.match(text)) and int(index[1]) < len(self.value):
            return int(index[1]), text[index.end() :]
        return None, text

    def _below(self, step: str | int) -> Node | None:
        if isinstance(self.value, dict) and isinstance(step, str):
            return self.value.get(step)
        if isinstance(self.value, list) and isinstance(step, int) and step < len(self.value):
            return self.value[step]
        return None


def dotted(path: Path) -> str:
    """Return a path as people write it: `evaluators.golden.match['service.name']`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif len(step) > _LONGEST_KEY or not _BARE_KEY.fullmatch(step):
            text += f"[{step[:_LONGEST_KEY]!r}]"
        else:
            text += f".{step}" if text else step
    return text


def first_causes(problems: Iterable[Problem], unread: Sequence[Problem], root: Node) -> Iterator[Problem]:
    """Yield the problems without those of a section as a whole, if they may only follow from an unread part of it."""
    above = {each.path[:end] for each in unread for end in range(1, len(each.path))}
    for each in problems:
        is_whole = each.path in above and not each.elsewhere and each.place == root.find(each.path).place
        if each in unread or not is_whole:
            yield each


def one_error(problems: list[Problem], source: str) -> ConfigError:
    """Make one error of all problems, in the order of the file. A second one at a place only follows from the first."""
    told: dict[tuple[Place, str], str] = {}
    for each in sorted(problems, key=lambda each: each.place):
        at = each.elsewhere or f"{source}:{each.place.line}:{each.place.column}"
        path = f" {dotted(each.path)}" if each.path else ""
        told.setdefault((each.place, f"{at}{path}"), f"{at}{path}: {each.message}")
    lines = list(dict.fromkeys(told.values()))  # several evaluators may use one dataset
    more = [f"... and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
    return ConfigError("\n".join([*lines[:_MOST_SHOWN], *more]))


def plain(value: Any, path: Path = ()) -> tuple[JSON, list[Problem]]:
    """Return the value as JSON, and problems for parts that are not JSON. Tuples and sets become lists."""
    problems: list[Problem] = []
    return _plain(value, path, problems), problems


def _plain(value: Any, path: Path, problems: list[Problem]) -> JSON:
    match value:
        case float() if not math.isfinite(value):
            refused = "must be a finite number"
        case str() if not is_unicode(value):
            refused = "must not hold half of a surrogate pair"
        case None | bool() | int() | float() | str():
            return value
        case Mapping() if not all(isinstance(key, str) and is_unicode(key) for key in value):
            refused = "must have keys that are text"
        case Mapping() | list() | tuple() | set() | frozenset() if len(path) >= MAX_DEPTH:
            refused = f"must not be nested more than {MAX_DEPTH} levels deep"
        case Mapping():
            return {key: _plain(item, (*path, key), problems) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            return [_plain(item, (*path, index), problems) for index, item in enumerate(items)]
        case _:
            refused = f"must be JSON, not {type(value).__name__}"
    problems.append(Problem(Place(), path, refused))
    return None


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded: it has no lone surrogate."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
