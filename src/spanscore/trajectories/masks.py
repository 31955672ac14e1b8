"""Masks: which values of arguments and results are replaced by marks, in texts and in JSON.

A mask is the end of a path of keys: `email`, `card.number`, `*_token`. Lists have no step of their own. Each
instrumentation writes calls in another form, as JSON in JSON or as prose. So a mask goes by keys alone, wherever they
are. A text that has the keys of a mask and cannot be parsed is replaced as a whole, and so are arguments without keys.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

from spanscore.compare.globs import is_glob
from spanscore.dialects import parsed_text
from spanscore.errors import InputError
from spanscore.messages.nearest import suggestion
from spanscore.model import NOT_RECORDED
from spanscore.trajectories.mask_paths import Keys, Step, ends, keys_of, steps_of
from spanscore.trajectories.masked import TEXT, VALUE
from spanscore.trajectories.message_keys import AROUND

_DIGEST_BYTES: Final = 6
_PATHS_KEPT: Final = 10_000
_TEXTS_KEPT: Final = 1_000
_SHORTEST_KEPT: Final = 4
"""Shorter texts and numbers stand in every recording."""
_LONGEST_KEPT: Final = 100
_ESCAPE: Final = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U000([0-9a-fA-F]{5}))")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_ONE_WORD: Final = re.compile(r"[\w./-]*")
_OF_CALLS: Final = re.compile(r"[{\[=]")
"""A text without any of these has no call that a dialect could read."""
_INPUT: Final = re.compile(
    r"(?:.*[._])?(?:args|arguments|inputs?|input_str|input\.value|kwargs|parameters|params|prompt)"
    r"|.*[a-z](?:Args|Arguments|Inputs?|Parameters)"
)
"""Ends of paths at which a text or a list may be the only argument of a tool, and an item an argument by its place."""
_BY_PLACE: Final = "args"
_KEYS_OF_A_MESSAGE: Final = frozenset({"role", "content", "parts", "type", "lc"})
_NAME: Final = re.compile(r"(?:.*_)?(?:name|id|type|model)|.*[a-z](?:Name|Id|Type)")
"""Keys of names, which stay although they may be several words: without its name, a call is another one."""


class Masks:
    """Replaces values by marks. Equal values have equal marks, so that calls stay as equal or different as they were.

    Args:
        masks: each the end of a path of keys.
        key: 16 random bytes; without it, nobody can find out by trying which value has a mark.
        read: the keys of attributes that dialects read; no mask may replace their values.
        named: whether arguments have names: then no key means that a text or an item of a list is one without.

    Raises:
        InputError: a mask is no path of keys, or would replace keys around calls, such as names of tools.
    """

    def __init__(self, masks: Sequence[str], key: bytes, read: Iterable[str] = (), *, named: bool = False) -> None:
        self._key: Final = key
        self._named: Final = named
        self._masks: Final = {mask: steps_of(mask) for mask in masks}
        self.counts: Final = Counter[str](dict.fromkeys(masks, 0))
        """The number of values and texts that each mask has replaced."""
        self.replaced: Final[dict[str, None]] = {}
        """Values and texts that were replaced where arguments have no names, in recordings; of many the first."""
        self._longest: Final = max(map(len, self._masks.values()))
        self._matched: Final[set[str]] = set()
        self._paths: Final[dict[Keys, None]] = {}
        """Ends of paths that were seen while a mask matched none; of many the first."""
        paths = [keys_of(attribute.removesuffix("*")) for attribute in sorted(read)]
        for mask, steps in self._masks.items():
            outer = steps[-2].pattern if len(steps) > 1 else ""
            is_around = any(map(steps[-1].matches, AROUND)) and (not outer or is_glob(outer) or outer in AROUND)
            found = next((path for path in paths if any(ends(path[:end], steps) for end in range(len(path) + 1))), ())
            if is_around or found:
                where = f" ({'.'.join(found)})" if found else ""
                message = (
                    f"mask {mask!r} would also replace what names and surrounds calls{where}: put the key above it in"
                    " your data before it, such as 'customer.name'"
                )
                raise InputError(message)

    def is_masked(self, path: Keys, start: int = 0) -> bool:
        """Return whether the value at a path is replaced, as it or one of its keys from `start` on ends a mask."""
        found = self._note(path, start)
        self.counts.update(found[:1])
        return bool(found)

    @property
    def has_unmatched(self) -> bool:
        """Whether a mask has matched no key yet."""
        return len(self._matched) < len(self._masks)

    def unmatched(self) -> Iterator[tuple[str, str]]:
        """Yield each mask that has matched no key, with the reason in words."""
        for mask, steps in self._masks.items():
            if mask not in self._matched:
                known = {path[-len(steps) :] for path in self._paths if len(path) >= len(steps)}
                usable = [".".join(path) for path in known if AROUND.isdisjoint(path)]
                near = suggestion(mask, usable)
                if not near and any(ends(path, steps[1:]) for path in self._paths if len(steps) > 1):
                    near = f"; did you mean {mask.partition('.')[2]!r}? Leave the tool out"
                yield mask, f"no run has {'this key' if len(steps) == 1 else 'these keys'}{near}"

    def look(self, value: Any, path: Keys) -> None:
        """Look for the keys of masks in a value that is replaced as a whole, or in which there are none."""
        pending = [(value, path)] if self.has_unmatched else []
        while pending:
            value, path = pending.pop()
            path = path[-self._longest :]
            if isinstance(value, str):
                value = parsed_text(value)
            if isinstance(value, dict):
                inner = [(item, path + keys_of(key)) for key, item in value.items()]
                for _, below in inner:
                    self._note(below, len(path))
                pending += inner
            elif isinstance(value, list):
                pending += [(item, path) for item in value]

    def _note(self, path: Keys, start: int) -> list[str]:
        """Return the masks of which a key of a path, from `start` on, is the end, and keep the path."""
        begins = [path[:end] for end in range(start + 1, len(path) + 1)]
        if self.has_unmatched and len(self._paths) < _PATHS_KEPT:
            self._paths.update(dict.fromkeys(each[-self._longest :] for each in begins))
        found = [mask for mask, steps in self._masks.items() if any(ends(each, steps) for each in begins)]
        self._matched.update(found)
        return found

    def below(self, path: Keys, key: str) -> tuple[Keys, bool]:
        """Return the path of a key below a path, and whether the value there is replaced."""
        inner = path + keys_of(key)
        return inner, self.is_masked(inner, len(path))

    def text(self, text: str, path: Keys) -> str:
        """Return a text without masked values: JSON or a Python literal as JSON, other text with the keys as a mark."""
        try:
            return self._text(text, path, is_nested=False)
        except RecursionError:
            return self._mark(TEXT, text)

    def value(self, value: Any, path: Keys) -> Any:
        """Return a copy of JSON without masked values."""
        if isinstance(value, str):
            return self._text(value, path, is_nested=True)
        if isinstance(value, list):
            return [
                self.mark(item) if not self._named and is_unnamed(item, path) else self.value(item, path)
                for item in value
            ]
        if not isinstance(value, dict):
            return value
        masked = {}
        for key, item in value.items():
            inner, is_masked = self.below(path, key)
            if is_masked:
                self.look(item, inner)
            masked[key] = self.mark(item) if is_masked else self.value(item, inner)
        return masked

    def mark(self, value: Any) -> Any:
        """Return the mark of a value: an object in place of an object, so that a schema stays one, else a text."""
        if not self._named:
            for text in leaves(value):
                if _SHORTEST_KEPT <= len(text) <= _LONGEST_KEPT and len(self.replaced) < _TEXTS_KEPT:
                    self.replaced[text] = None
        mark = self._mark(VALUE, value)
        return {mark: True} if isinstance(value, dict) else mark

    def _text(self, text: str, path: Keys, *, is_nested: bool) -> str:
        unescaped = _ESCAPE.sub(lambda escape: chr(int(escape[1] or escape[2] or escape[3], 16)), text)
        bare = _COLOUR.sub(" ", unescaped)
        has_keys = any(all(step.is_in(bare) for step in rest) for _, rest in self._rests(path))
        is_input = bool(text) and not self._named and _is_input(path)
        if not is_input and not has_keys:
            self.look(text, path)
            return text
        parsed = parsed_text(text)
        if isinstance(parsed, (dict, list, str)):
            masked = self.value(parsed, path)
            if masked == parsed and (not has_keys or _has_unique_keys(text)):
                return text
            # Written again, a text within JSON would be another value.
            return self._mark(VALUE, text) if masked == parsed and is_nested else json.dumps(masked)
        if is_input or (parsed is NOT_RECORDED and self._is_replaced(text, bare, path)):
            return self._mark(TEXT if _OF_CALLS.search(text) else VALUE, text)
        return text

    def _is_replaced(self, text: str, bare: str, path: Keys) -> bool:
        """Return whether a text that cannot be parsed, also given without escapes, is replaced as a whole."""
        if _ONE_WORD.fullmatch(text) or is_name(path):
            return False
        found = [mask for mask, rest in self._rests(path) if all(step.is_before_a_value(bare) for step in rest)]
        self._matched.update(found)
        self.counts.update(found[:1])
        return bool(found)

    def _rests(self, path: Keys) -> Iterable[tuple[str, Sequence[Step]]]:
        """Yield the steps of each mask that may follow in a text at this path."""
        for mask, steps in self._masks.items():
            for taken in range(len(steps)):
                if ends(path, steps[:taken]):
                    yield mask, steps[taken:]

    def _mark(self, kind: str, value: Any) -> str:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        content = json.dumps(value, sort_keys=True).encode()
        return f"{kind}{blake2b(content, digest_size=_DIGEST_BYTES, key=self._key).hexdigest()}]"


def leaves(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value, as texts."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, (dict, list)):
            pending += each.values() if isinstance(each, dict) else each
        elif isinstance(each, (str, int, float)) and not isinstance(each, bool):
            yield str(each)


def is_unnamed(item: Any, path: Keys) -> bool:
    """Return whether an item of a list at a path may be an argument by its place, and so may have any name.

    A text is not decided here: it may be JSON with the arguments by name.
    """
    if item is None or isinstance(item, str) or not _is_input(path):
        return False
    if path[-1] == _BY_PLACE:
        return True
    return not (isinstance(item, list) or (isinstance(item, dict) and not _KEYS_OF_A_MESSAGE.isdisjoint(item)))


def is_name(path: Keys) -> bool:
    """Return whether a path ends in the key of a name or an id."""
    return bool(path) and _NAME.fullmatch(path[-1]) is not None


def _is_input(path: Keys) -> bool:
    return _INPUT.fullmatch(".".join(path[-2:])) is not None


def _has_unique_keys(text: str) -> bool:
    """Return whether a text is JSON without repeated keys: of those, only the last value was looked at."""
    try:
        json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        return False
    return True


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError
