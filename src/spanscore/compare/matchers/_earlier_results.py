"""`$from`: a value that the result of an earlier call has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from spanscore.compare.differences import ABSENT, Described, Difference, shown
from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.matchers.base import CHARS_A_STEP, EarlierResults, Index, Matcher, Results
from spanscore.compare.matching import json_key
from spanscore.compare.paths import Path, value_at
from spanscore.model import NOT_RECORDED

_DEEPEST: Final = 64
"""Values nested deeper in a result are not looked at without a `path`."""
_LOOKED_AT: Final = 10
"""So many results are looked at for the text of a difference."""
_SHOWN: Final = 3
_ESCAPE: Final = re.compile("~(?![01])")


class FromEarlier(Matcher):
    """A value that the result of an earlier call of a tool has: at a JSON Pointer, or without one anywhere in it.

    The pointer leads into texts of JSON, too.
    """

    looks_back = True

    def __init__(self, tool: str, pointer: str | None) -> None:
        self._tool: Final = tool
        self._pointer: Final = pointer
        self._steps: Final = None if pointer is None else _steps(pointer)
        self.is_source: Final = glob_matcher(tool)
        """Returns whether it reads the results of a tool."""

    @property
    def words(self) -> str:
        of = "any earlier result" if self._tool == "*" else f"an earlier result of {self._tool}"
        return f"a value of {of}{f' at {self._pointer}' if self._pointer else ''}"

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        if actual is NOT_RECORDED:
            return False
        first = seen.run.index((self._tool, self._pointer), self._index).get(json_key(actual))
        return first is not None and first < seen.before

    def mismatches(self, actual: Any, seen: EarlierResults, path: tuple[str | int, ...] = ()) -> Iterator[Difference]:
        if not self.matches(actual, seen):
            yield Difference(path, Described(f"{self.words}{self._what_there_was(seen)}"), actual)

    def _what_there_was(self, seen: EarlierResults) -> str:
        """Return the latest values that could match, or why none could; empty without a path: there may be many."""
        latest = (result for tool, result in reversed(seen.run.results[: seen.before]) if self.is_source(tool))
        looked_at = list(islice(latest, _LOOKED_AT))
        if not looked_at:
            return " (no such call was made before)"
        found = seen.run.index((self._tool, self._pointer), self._index)
        if all(first >= seen.before for first in found.values()):
            return f" (no result before has {self._pointer})" if self._pointer else " (no result before was recorded)"
        if not self._steps:
            return ""
        values = (_value_at(result, self._steps, seen.run) for result in looked_at if result is not NOT_RECORDED)
        texts = list(dict.fromkeys(shown(value) for value in values if value is not ABSENT))
        return f" ({', '.join(texts[:_SHOWN])}{', …' if len(texts) > _SHOWN else ''})" if texts else ""

    def _index(self, run: Results) -> Index:
        """Look at each result once, whatever the number of calls that are compared with it."""
        found: Index = {}
        for call, (tool, result) in enumerate(run.results):
            run.spend()
            if result is NOT_RECORDED or not self.is_source(tool):
                continue
            if self._steps is None:
                for value in _values(result, run):
                    found.setdefault(json_key(value), call)
            elif (value := _value_at(result, self._steps, run)) is not ABSENT:
                found.setdefault(json_key(value), call)
        return found


def from_earlier(tool: Any, options: Mapping[str, Any], normalise: Callable[[str], str]) -> FromEarlier:
    """`$from`: names of tools are compared as everywhere, globs with the names that come out of that."""
    if not isinstance(tool, str) or not tool:
        raise ValueError(f"must be the name of a tool, a glob, or '*' for any, not {shown(tool)}")
    pointer = options.get("path")
    is_pointer = isinstance(pointer, str) and (not pointer or pointer.startswith("/")) and not _ESCAPE.search(pointer)
    if "path" in options and not is_pointer:
        raise ValueError(f"'path' must be a JSON Pointer such as '/items/0/id', not {shown(pointer)}")
    return FromEarlier(tool if is_glob(tool) else normalise(tool), pointer)


def _steps(pointer: str) -> Path:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def _value_at(result: Any, steps: Path, run: Results) -> Any:
    """Return the value at a path; a result, or a part of one, that is JSON text is parsed, too."""
    value = result
    for step in steps:
        if isinstance(value, str):
            value = _parsed(value, run)
        value = value_at(value, (step,))
    return value


def _parsed(text: str, run: Results) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return text
    run.spend(len(text) // CHARS_A_STEP)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return text


def _values(result: Any, run: Results) -> Iterator[Any]:
    pending = [(result, 0)]
    while pending:
        value, depth = pending.pop()
        run.spend()
        yield value
        if depth < _DEEPEST and isinstance(value, (dict, list)):
            inner = value.values() if isinstance(value, dict) else value
            pending += ((item, depth + 1) for item in inner)
