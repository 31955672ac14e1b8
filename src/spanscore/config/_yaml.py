"""Reads YAML text into located nodes. Refuses surprising or dangerous parts of YAML.

Read as the core schema of YAML 1.2: only `true`, `false`, `null`, decimal integers and decimal floats are not text, so
that `on`, `12:30:45` and `0o17` stay what was written. Anchors, aliases, merge keys, duplicate keys, tags outside the
core schema and further documents are refused. Nodes are made from the parser's events, and by PyYAML's own scanner:
composing them first would recurse into deep nesting, and libyaml crashes on it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from spanscore.config._nodes import Node, Path, Place, Problem, is_unicode

MAX_BYTES: Final = 1 << 20
MAX_DEPTH: Final = 64
MAX_VALUES: Final = 100_000

_MAX_DIGITS: Final = 4000  # Python refuses to convert integers of more than 4,300 digits

_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9]+")
_DOLLAR: Final = re.compile(r"\$(?:\$|\{(?P<inside>[^{}]*)\}|\{)")
_INSIDE: Final = re.compile(r"env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_LONGEST_SHOWN: Final = 60
_CORE: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
}


def read(
    text: str, environment: Mapping[str, str] | None, most_values: int = MAX_VALUES
) -> tuple[Node | None, list[Problem]]:
    """Return the only document in the text (None if there is none or it cannot be read), and all problems.

    Without an environment for `${env:NAME}`, a dollar is only a dollar. A text with more values than `most_values` is
    refused.
    """
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_BYTES:
        return None, [Problem(Place(1, 1), (), f"must not be larger than 1 MiB, but has {size} bytes")]
    try:
        loader = yaml.SafeLoader(text)
    except yaml.reader.ReaderError as error:
        message = f"not valid YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        return None, [Problem(place_in(text, error.position), (), message)]
    reader = _NodeReader(loader, environment, most_values)
    try:
        return reader.document(), reader.problems
    except yaml.MarkedYAMLError as error:
        reader.problems.append(_syntax(error))
    except _UnreadableError as error:
        reader.problems += error.args
    except (ValueError, OverflowError):  # PyYAML passes the number of an escape such as \UFFFFFFFF to chr() unchecked
        reader.problems.append(Problem(_place(loader.get_mark()), (), "not valid YAML: no such character in Unicode"))
    return None, reader.problems


def place_in(text: str, index: int) -> Place:
    """Return the place of the character at an index."""
    line_start = text.rfind("\n", 0, index) + 1
    return Place(text.count("\n", 0, index) + 1, index - line_start + 1)


def resolve(text: str) -> bool | int | float | str | None:
    """Return the value of a plain scalar.

    Raises:
        ValueError: it is a number that is too large.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text) and len(text) <= _MAX_DIGITS:
        return int(text)
    if _FLOAT.fullmatch(text) and not _LEADING_ZERO.fullmatch(text):
        value = float(text)
        if math.isinf(value) or _INTEGER.fullmatch(text):
            raise ValueError("the number is too large; put it in quotes if text is meant")
        return value
    return text


class _UnreadableError(Exception):
    """A problem ends the reading."""


class _NodeReader:
    """Makes nodes of a loader's events, and notes what is refused. Recurses no deeper than `MAX_DEPTH`."""

    def __init__(self, loader: Any, environment: Mapping[str, str] | None, most_values: int) -> None:
        self._loader = loader
        self._next: Final[Callable[[], Any]] = loader.get_event
        self._environment = environment
        self._most_values: Final = most_values
        self._values = 0
        self.problems: list[Problem] = []

    def document(self) -> Node | None:
        self._next()
        if self._loader.check_event(yaml.StreamEndEvent):
            return None
        self._next()
        node = self._node(())
        self._next()
        if not self._loader.check_event(yaml.StreamEndEvent):
            place = _place(self._next().start_mark)
            raise _UnreadableError(Problem(place, (), "only one YAML document is allowed in a file"))
        return node

    def _refuse(self, place: Place, path: Path, message: str) -> None:
        self.problems.append(Problem(place, path, message))

    def _node(self, path: Path) -> Node:
        event = self._next()
        place = _place(event.start_mark)
        self._values += 1
        if self._values > self._most_values:
            raise _UnreadableError(Problem(place, path, f"must not hold more than {self._most_values} values"))
        if event.anchor is not None:
            self._refuse(place, path, "anchors and aliases (&name, *name) are not allowed; write the value out")
        if isinstance(event, yaml.AliasEvent):
            return Node(place=place, value=None)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place, path)
        if len(path) >= MAX_DEPTH:
            raise _UnreadableError(Problem(place, path, f"must not be nested more than {MAX_DEPTH} levels deep"))
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (None, "!", _CORE + ("seq" if is_list else "map")):
            self._refuse(place, path, f"the tag {_tag(event.tag)!r} is not allowed here; leave it out")
        return self._list(place, path) if is_list else self._mapping(place, path)

    def _list(self, place: Place, path: Path) -> Node:
        items: list[Node] = []
        while not self._loader.check_event(yaml.SequenceEndEvent):
            items.append(self._node((*path, len(items))))
        self._next()
        return Node(place=place, value=items)

    def _mapping(self, place: Place, path: Path) -> Node:
        items: dict[str, Node] = {}
        places: dict[str, Place] = {}
        while not self._loader.check_event(yaml.MappingEndEvent):
            key_place = _place(self._loader.peek_event().start_mark)
            key = self._key(key_place, path)
            value = self._node((*path, key or "?"))
            if key is None:
                continue
            if key in items:
                first = f"it is already on line {places[key].line}"
                self._refuse(key_place, (*path, key), f"the key is given twice; {first}")
                continue
            items[key], places[key] = value, key_place
        self._next()
        return Node(place=place, value=items, key_places=places)

    def _key(self, place: Place, path: Path) -> str | None:
        if not self._loader.check_event(yaml.ScalarEvent):
            self._node((*path, "?"))
            self._refuse(place, path, "a key must be text, not a list, a mapping or an alias")
            return None
        event = self._next()
        key: str = event.value
        if event.implicit[0] and key == "<<":
            self._refuse(place, path, "merge keys (<<) are not allowed; write the keys out")
        elif event.anchor is not None or event.tag not in (None, "!", _CORE + "str"):
            self._refuse(place, path, "a key must not have an anchor or a tag")
        elif not is_unicode(key):
            self._refuse(place, path, "a key must not hold half of a surrogate pair")
        else:
            return key
        return None

    def _scalar(self, event: yaml.ScalarEvent, place: Place, path: Path) -> Node:
        written: str = event.value
        try:
            text = written if self._environment is None else expand(written, self._environment)
            is_replaced = text != written and has_reference(written)
            value = _typed(event.tag, text, is_plain=event.implicit[0] or is_replaced)
        except ValueError as error:
            self._refuse(place, path, str(error))
            return Node(place=place, value=None)
        if is_replaced:
            return Node(place=place, value=value, written=written, text=text)
        return Node(place=place, value=value)


def _typed(tag: str | None, text: str, *, is_plain: bool) -> bool | int | float | str | None:
    """Return the value of a scalar: as in the Collector, quotes do not turn the value of a variable into text."""
    if not is_unicode(text):
        raise ValueError("must not hold half of a surrogate pair")
    if tag in (None, "!"):
        return resolve(text) if is_plain else text
    if tag == _CORE + "str":
        return text
    allowed = _SCALAR_TAGS.get(tag.removeprefix(_CORE))
    if allowed is None:
        raise ValueError(f"the tag {_tag(tag)!r} is not allowed here; leave it out")
    value = resolve(text)
    if type(value) not in allowed:
        raise ValueError(f"the value does not fit its tag {_tag(tag)!r}")
    return value


def _tag(tag: str) -> str:
    return "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _syntax(error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    problem = error.problem or error.context or "cannot be read"
    if mark and mark.buffer and mark.buffer[mark.pointer - 1 : mark.pointer + 1] == "${":
        problem = "inside { } and [ ] a value with ${env:NAME} must be in quotes"
    elif "'\\t'" in problem:
        problem = "a tab cannot indent or start a value; use spaces"
    elif problem.startswith("expected <block end>"):
        problem = "this line does not fit the mapping or list above it; check its indentation"
    elif error.context and error.problem:
        problem = f"{error.context}, {error.problem}"
    return Problem(_place(mark) if mark else Place(1, 1), (), f"not valid YAML: {problem}")


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return the text with its references replaced and each `$$` made one dollar; what is put in is not read again.

    Raises:
        ValueError: a reference is malformed, or names a variable that is not set. The message holds no value.
    """
    return _DOLLAR.sub(lambda found: _replacement(found, environment), text)


def has_reference(text: str) -> bool:
    """Return whether the text holds a reference to be replaced."""
    return any(found["inside"] is not None for found in _DOLLAR.finditer(text))


def _replacement(found: re.Match[str], environment: Mapping[str, str]) -> str:
    if found[0] == "$$":
        return "$"
    inside = _INSIDE.fullmatch(found["inside"] or "")
    if inside is None:
        shown = repr(found[0][:_LONGEST_SHOWN])
        message = f"{shown} must be ${{env:NAME}} or ${{env:NAME:-default}}; write $${{ where it is meant as text"
        raise ValueError(message)
    name, default = inside["name"], inside["default"]
    value = environment.get(name, default)
    if value is None:
        message = f"the environment variable {name!r} is not set; give it a default with ${{env:{name}:-default}}"
        raise ValueError(message)
    if not is_unicode(value):
        raise ValueError(f"the environment variable {name!r} is not UTF-8")
    return value
