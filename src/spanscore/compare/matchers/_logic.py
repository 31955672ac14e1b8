"""Matchers of matchers: `$any`, `$absent`, `$optional`, `$one_of`, `$all_of` and `$not`.

Only they can match a missing key. A plain value does not match it, so `$not` of a value does; other matchers, also
`$any`, need the key, even after `$not`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanscore.compare.matchers.base import EarlierResults, Matcher
from spanscore.compare.matchers.structures import Exact
from spanscore.compare.matching import json_key
from spanscore.model import NOT_RECORDED


class AnyValue(Matcher):
    """`$any`: every recorded value, null too."""

    words = "any value"

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        return actual is not NOT_RECORDED


class Absent(Matcher):
    """`$absent`: the key is not there."""

    words = "no such key"
    fits_missing = True
    minds_missing = True

    def matches(self, actual: Any, seen: EarlierResults) -> bool:  # noqa: ARG002 - whatever it is, it is there
        seen.run.spend()
        return False


class Optional(Matcher):
    """`$optional`: the key is not there, or its value matches."""

    fits_missing = True
    minds_missing = True

    def __init__(self, part: Matcher) -> None:
        self.parts = (part,)
        self.is_text = part.is_text

    @property
    def words(self) -> str:
        return f"nothing or {self.parts[0].words}"

    def words_for(self, seen: EarlierResults) -> str:
        return f"nothing or {self.parts[0].words_for(seen)}"

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        return self.parts[0].matches(actual, seen)


class OneOf(Matcher):
    """`$one_of`: at least one of them matches."""

    def __init__(self, parts: Sequence[Matcher]) -> None:
        self.parts = tuple(parts)
        self.is_text = all(part.is_text for part in parts)
        self.fits_missing = any(part.fits_missing for part in parts)
        self.minds_missing = all(part.minds_missing for part in parts)
        self._keys = frozenset(part.key for part in parts if isinstance(part, Exact))
        self._others = tuple(part for part in parts if not isinstance(part, Exact))

    @property
    def words(self) -> str:
        return "one of " + ", ".join(part.words for part in self.parts)

    def words_for(self, seen: EarlierResults) -> str:
        return "one of " + ", ".join(part.words_for(seen) for part in self.parts)

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        """Return whether a value matches one of them; of many plain values none is looked at by itself."""
        seen.run.spend()
        if self._keys and json_key(actual) in self._keys:
            return True
        return any(part.matches(actual, seen) for part in self._others)


class AllOf(Matcher):
    """`$all_of`: each of them matches."""

    def __init__(self, parts: Sequence[Matcher]) -> None:
        self.parts = tuple(parts)
        self.is_text = any(part.is_text for part in parts)
        self.fits_missing = all(part.fits_missing for part in parts)
        self.minds_missing = all(part.minds_missing for part in parts)

    @property
    def words(self) -> str:
        return " and ".join(part.words for part in self.parts)

    def words_for(self, seen: EarlierResults) -> str:
        return " and ".join(part.words_for(seen) for part in self.parts)

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        return all(part.matches(actual, seen) for part in self.parts)


class Not(Matcher):
    """`$not`: it does not match."""

    negates = True

    def __init__(self, part: Matcher) -> None:
        self.parts = (part,)
        self.is_text = part.is_text
        self.minds_missing = part.minds_missing
        self.fits_missing = part.minds_missing and not part.fits_missing

    @property
    def words(self) -> str:
        return f"not {self.parts[0].words}"

    def words_for(self, seen: EarlierResults) -> str:
        return f"not {self.parts[0].words_for(seen)}"

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        return actual is not NOT_RECORDED and not self.parts[0].matches(actual, seen)
