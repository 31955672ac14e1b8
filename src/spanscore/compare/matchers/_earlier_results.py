"""`$from`: a value that the result of an earlier call has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from spanscore.compare.differences import ABSENT, Described, Difference, shown
from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.matchers.base import CHARS_A_STEP, EarlierResults, Index, Matcher, Results
from spanscore.compare.matching import json_key
from spanscore.compare.paths import Path, value_at
from spanscore.model import NOT_RECORDED

_DEEPEST: Final = 64
"""Values nested deeper in a result are not looked at without a `path`."""
_LOOKED_AT: Final = 100
"""So many calls before one are looked at for the text of its difference."""
_SHOWN: Final = 3
_ESCAPE: Final = re.compile("~(?![01])")


class _NotFound(NamedTuple):
    """A search in earlier results that did not find a value."""

    words: str
    """The values that there were, or why there were none; they follow the words of the matcher."""
    why: str
    """Why the value was not found, without content."""


class FromEarlier(Matcher):
    """A value that the result of an earlier call of a tool has: at a JSON Pointer, or without one anywhere in it.

    The pointer leads into texts of JSON, too.
    """

    looks_back = True

    def __init__(self, tool: str, pointer: str | None, normalise: Callable[[str], str]) -> None:
        self.tool: Final = tool
        """The tool, or a glob, as it was given."""
        self._of: Final = "" if tool == "*" else f" of {tool}"
        self._pointer: Final = pointer
        self._steps: Final = None if pointer is None else _steps(pointer)
        self.is_source: Final = glob_matcher(tool if is_glob(tool) else normalise(tool))
        """Returns whether it reads the results of a tool."""

    @property
    def words(self) -> str:
        return f"a value of {'an' if self._of else 'any'} earlier result{self._of}{self._at}"

    def words_for(self, seen: EarlierResults) -> str:
        return f"{self.words}{self._sought_in(seen).words}"

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        if actual is NOT_RECORDED:
            return False
        first = self._found(seen).first.get(json_key(actual))
        return first is not None and first < seen.before

    def mismatches(self, actual: Any, seen: EarlierResults, path: tuple[str | int, ...] = ()) -> Iterator[Difference]:
        if not self.matches(actual, seen):
            sought = self._sought_in(seen)
            yield Difference(path, Described(f"{self.words}{sought.words}"), actual, why=sought.why)

    @property
    def _at(self) -> str:
        return f" at {self._pointer}" if self._pointer else ""

    def _found(self, seen: EarlierResults) -> Index:
        return seen.run.index((self.tool, self._pointer), self._index)

    def _sought_in(self, seen: EarlierResults) -> _NotFound:
        """Return what is known of the earlier results when a value is not one of theirs."""
        found = self._found(seen)
        if found.called >= seen.before:
            return _NotFound(" (no such call was made before)", f"no earlier call{self._of}")
        if next(iter(found.first.values()), seen.before) < seen.before:
            return _NotFound(self._latest(found, seen), f"differs from earlier results{self._of}")
        if found.succeeded >= seen.before:
            return _NotFound(" (every such call before failed)", f"every earlier call{self._of} failed")
        if self._pointer:
            return _NotFound(
                f" (no result before has {self._pointer})", f"no {self._pointer} in earlier results{self._of}"
            )
        return _NotFound(" (no result before was recorded)", f"no earlier result{self._of}")

    def _latest(self, found: Index, seen: EarlierResults) -> str:
        """Return the latest values that could match; empty without a path: there may be many."""
        texts: list[str] = []
        for call in range(seen.before - 1, max(-1, seen.before - 1 - _LOOKED_AT), -1):
            if call in found.values and (text := shown(found.values[call])) not in texts:
                texts.append(text)
            if len(texts) > _SHOWN:
                break
        if len(texts) > _SHOWN or (texts and seen.before > _LOOKED_AT):
            texts[_SHOWN:] = ["…"]
        return f" ({', '.join(texts)})" if texts else ""

    def _index(self, run: Results) -> Index:
        """Look at each result once, whatever the number of calls that are compared with it."""
        run.spend(len(run.results))
        sources = [call for call, (tool, _) in enumerate(run.results) if self.is_source(tool)]
        succeeded = (call for call in sources if call not in run.failed)
        found = Index({}, {}, next(iter(sources), len(run.results)), next(succeeded, len(run.results)))
        for call in sources:
            _, result = run.results[call]
            if result is NOT_RECORDED:
                continue
            if self._steps is None:
                for value in _values(result, run):
                    found.first.setdefault(json_key(value), call)
            elif (value := _value_at(result, self._steps, run)) is not ABSENT:
                found.first.setdefault(json_key(value), call)
                found.values[call] = value
        return found


def from_earlier(tool: Any, options: Mapping[str, Any], normalise: Callable[[str], str]) -> FromEarlier:
    """`$from`: names of tools are compared as everywhere, globs with the names that come out of that."""
    if not isinstance(tool, str) or not tool:
        raise ValueError(f"must be the name of a tool, a glob, or '*' for any, not {shown(tool)}")
    pointer = options.get("path")
    is_pointer = isinstance(pointer, str) and (not pointer or pointer.startswith("/")) and not _ESCAPE.search(pointer)
    if "path" in options and not is_pointer:
        raise ValueError(f"'path' must be a JSON Pointer such as '/items/0/id', not {shown(pointer)}")
    return FromEarlier(tool, pointer, normalise)


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
