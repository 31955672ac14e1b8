"""Matchers of arrays and mappings: plain ones with matchers in them, `$subset`, `$unordered` and `$contains`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

from spanscore.compare.bipartite import maximum_matching
from spanscore.compare.differences import ABSENT, Described, Difference, cut, differences, shown
from spanscore.compare.matchers.base import EarlierResults, Matcher, Mismatch, Path
from spanscore.compare.matching import json_key, positions


class Exact(Matcher):
    """A plain value, equal as JSON."""

    minds_missing = True

    def __init__(self, value: Any) -> None:
        self.value: Final = value
        self.key: Final[Hashable] = json_key(value)
        self.is_text = isinstance(value, str)

    @property
    def words(self) -> str:
        return shown(self.value)

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend(1 + len(actual) if isinstance(actual, (dict, list)) else 1)
        return json_key(actual) == self.key

    def mismatches(self, actual: Any, seen: EarlierResults, path: Path = ()) -> Iterator[Mismatch]:
        if not self.matches(actual, seen):
            yield from (each._replace(path=(*path, *each.path)) for each in differences(self.value, actual))


class Keys(Matcher):
    """A mapping, key by key.

    Args:
        keys: the expectation of each key.
        missing: whether a missing key counts.
        extra: whether an unexpected key counts.
        mappings_only: whether other values never match. If False, they match if nothing is expected and extra keys do
            not count, as in the comparisons without matchers.
    """

    minds_missing = True

    def __init__(
        self, keys: Mapping[str, Matcher], *, missing: bool = True, extra: bool = True, mappings_only: bool = False
    ) -> None:
        self.keys: Final = keys
        self.parts = tuple(keys.values())
        self._missing: Final = missing
        self._extra: Final = extra
        self._fits_others: Final = not (keys or extra or mappings_only)

    @property
    def is_whole(self) -> bool:
        """Whether all keys count."""
        return self._missing and self._extra

    @property
    def words(self) -> str:
        return cut("{" + ", ".join(f"{shown(key)}: {part.words}" for key, part in self.keys.items()) + "}")

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        if not isinstance(actual, dict):
            return self._fits_others
        if self._extra and not actual.keys() <= self.keys.keys():
            return False
        return all(self.fits(key, actual, seen) for key in self.keys)

    def fits(self, key: str, actual: Mapping[str, Any], seen: EarlierResults) -> bool:
        """Return whether a key that is expected matches, there or not."""
        if key in actual:
            return self.keys[key].matches(actual[key], seen)
        return not self._missing or self.keys[key].fits_missing

    def share(self, actual: Any, seen: EarlierResults) -> float:
        """Return the share of the expected keys that match, there or not."""
        if not self.keys or not isinstance(actual, dict):
            return float(self.matches(actual, seen))
        return sum(self.fits(key, actual, seen) for key in self.keys) / len(self.keys)

    def mismatches(self, actual: Any, seen: EarlierResults, path: Path = ()) -> Iterator[Mismatch]:
        if not isinstance(actual, dict):
            if not self.matches(actual, seen):
                yield Difference(path, Described(self.words), actual)
            return
        for key, part in self.keys.items():
            if key in actual:
                yield from part.mismatches(actual[key], seen, (*path, key))
            elif self._missing and not part.fits_missing:
                yield Difference((*path, key), part.value if isinstance(part, Exact) else Described(part.words), ABSENT)
        if self._extra:
            yield from (Difference((*path, key), ABSENT, actual[key]) for key in actual if key not in self.keys)


class Items(Matcher):
    """An array, item by item."""

    minds_missing = True

    def __init__(self, items: Sequence[Matcher]) -> None:
        self.parts = tuple(items)

    @property
    def words(self) -> str:
        return _listed(self.parts)

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        if not isinstance(actual, list) or len(actual) != len(self.parts):
            return False
        return all(part.matches(item, seen) for part, item in zip(self.parts, actual, strict=True))

    def mismatches(self, actual: Any, seen: EarlierResults, path: Path = ()) -> Iterator[Mismatch]:
        if not isinstance(actual, list) or len(actual) != len(self.parts):
            yield Difference(path, Described(self.words), actual)
            return
        for index, (part, item) in enumerate(zip(self.parts, actual, strict=True)):
            yield from part.mismatches(item, seen, (*path, index))


class Unordered(Matcher):
    """`$unordered`: an array whose items match these in some order, each one of them."""

    def __init__(self, items: Sequence[Matcher]) -> None:
        self.parts = tuple(items)
        self._places: Final = positions(part.key for part in items if isinstance(part, Exact))
        self._others: Final = tuple((place, part) for place, part in enumerate(items) if not isinstance(part, Exact))

    @property
    def words(self) -> str:
        return f"{_listed(self.parts)} in any order"

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        if not isinstance(actual, list) or len(actual) != len(self.parts):
            return False
        seen.run.spend(len(actual))
        keys = [json_key(item) for item in actual]
        if not self._others:
            return Counter(keys) == {key: len(places) for key, places in self._places.items()}
        # An exact item is represented by its key, so equal ones are interchangeable; any other by its place.
        wanted: list[Hashable] = [(True, part.key) if isinstance(part, Exact) else (False, place)
                                  for place, part in enumerate(self.parts)]  # fmt: skip
        partners: dict[Hashable, list[Hashable]] = {}
        for key, item in zip(keys, actual, strict=True):
            if key not in partners:
                exact: list[Hashable] = [(True, key)] if key in self._places else []
                partners[key] = exact + [(False, place) for place, part in self._others if part.matches(item, seen)]
        return len(maximum_matching(keys, wanted, partners)) == len(actual)


class Contains(Matcher):
    """`$contains`: a string with this in it, or an array with an item that matches."""

    def __init__(self, part: Matcher) -> None:
        self.parts = (part,)
        self._text: Final = part.value if isinstance(part, Exact) and isinstance(part.value, str) else None
        self.is_text = self._text is not None

    @property
    def words(self) -> str:
        return f"a value that contains {self.parts[0].words}"

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        seen.run.spend()
        if isinstance(actual, str):
            return self._text is not None and self._text in actual
        return isinstance(actual, list) and any(self.parts[0].matches(item, seen) for item in actual)


def _listed(parts: Sequence[Matcher]) -> str:
    return cut("[" + ", ".join(part.words for part in parts) + "]")
