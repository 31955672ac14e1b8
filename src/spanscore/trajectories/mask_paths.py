"""Masks as ends of paths of keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.paths import parsed_path
from spanscore.errors import InputError
from spanscore.trajectories.message_keys import ENVELOPES

Keys: TypeAlias = tuple[str, ...]

_FEWEST_LETTERS: Final = 2
_WILD: Final = re.compile(r"[*?]+")
_OF_OTHER_PATHS: Final = re.compile(r"[,$\[(]")
"""Characters of lists, JSONPath and calls, which are in no key that a mask could mean."""
_BEGIN: Final = r"(?:(?<!\w)|(?<=\\[nrtbfv]))"
"""The begin of a word, also behind an escaped end of a line."""
_LETTER: Final = re.compile(r"\w")


class Step(NamedTuple):
    """A key of a mask, or a glob for one."""

    pattern: str
    matches: Callable[[str], bool]

    def is_in(self, text: str) -> bool:
        """Return whether a text may have a key of this step."""
        return all(part in text for part in _WILD.split(self.pattern))

    def is_before_a_value(self, text: str) -> bool:
        """Return whether a text that is no JSON has a key of this step, and further words."""
        if is_glob(self.pattern):
            return self.is_in(text)
        found = re.search(rf"{_BEGIN}{re.escape(self.pattern)}(?!\w)", text)
        return found is not None and _LETTER.search(text, found.end()) is not None


def steps_of(mask: str) -> Sequence[Step]:
    """Return the keys of a mask, the outer ones first.

    Raises:
        InputError: it is no path of keys.
    """
    try:
        path = parsed_path(mask)
    except ValueError:
        path = ()
    if not path or _OF_OTHER_PATHS.search(mask):
        message = f"mask {mask!r} must be one key, such as 'email', or keys joined by dots, such as 'card.number'"
        raise InputError(message)
    if len("".join(_WILD.split(path[-1]))) < _FEWEST_LETTERS or any(map(str.isdecimal, path)):
        message = (
            f"mask {mask!r} must end in a key with at least {_FEWEST_LETTERS} letters, and have no index of a list"
        )
        raise InputError(message)
    if path[0] in ENVELOPES:
        message = f"mask {mask!r} must begin inside arguments or results: leave out {path[0]!r}"
        raise InputError(message)
    return [Step(step, glob_matcher(step)) for step in path]


def ends(path: Keys, steps: Sequence[Step]) -> bool:
    """Return whether a path ends in these keys."""
    if len(path) < len(steps):
        return False
    return all(step.matches(key) for step, key in zip(reversed(steps), reversed(path), strict=False))


def keys_of(key: str) -> Keys:
    """Return the keys in a key with dots; indexes of lists are left out."""
    return tuple(step for step in key.split(".") if step and not step.isdecimal())
