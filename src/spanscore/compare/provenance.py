"""Whether a value of an argument occurred before, exactly or in another form, in texts that appear one by one."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import accumulate, islice
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from spanscore.compare.effort import Effort, TooMuchWorkError

Grade: TypeAlias = Literal["exact", "derived", "unseen"]
Leaf: TypeAlias = str | int | float
_Day: TypeAlias = tuple[int, int, int]

LONGEST: Final = 16 * 1024 * 1024
"""The most characters of sources that are searched, as many as a trace may have; more cannot be checked."""
MOST_LEAVES: Final = 100_000
"""So many leaves of one value are looked at."""

_WORK: Final = 1_000_000_000
"""So many characters are looked through in all: about a second."""
_OCCURRENCES: Final = 1_000
_NUMBERS: Final = 200_000
_MOST_DAYS: Final = 31
_SHORTEST_PART: Final = 4
_LONGEST_NUMBER: Final = 40
_MOST_BITS: Final = 1_024
_NEVER: Final = 1 << 62
_BETWEEN: Final = "\0"
_NUMBER: Final = re.compile(r"(?:(?<!\w)[-+])?(?<!\w)\d(?:[\d.,']*\d)?")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH: Final = rf"({'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_DATES: Final = (
    re.compile(r"(?<!\d)(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<!\d)(?P<d>\d{1,2})[./](?P<m>\d{1,2})[./](?P<y>\d{4})(?!\d)"),
    re.compile(r"(?<!\d)(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})(?!\d)"),
    re.compile(rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)? (?P<m>{_MONTH}) (?P<y>\d{{4}})(?!\d)", re.IGNORECASE),
    re.compile(rf"(?P<m>{_MONTH}) (?P<d>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<y>\d{{4}})(?!\d)", re.IGNORECASE),
)
_MIDNIGHT: Final = re.compile(r"[T ]00:00(?::00(?:\.0+)?)?(?:Z|[+-]\d\d:\d\d)?$", re.IGNORECASE)


class Sources:
    """Texts in the order in which they become known, and from which of them on a value has been seen.

    Args:
        parts: the texts of each part, of which the first few are known at a time.

    Raises:
        TooMuchWorkError: they are longer than can be looked through.
    """

    def __init__(self, parts: Iterable[Iterable[str]]) -> None:
        self._whole: Final[dict[str, int]] = {}
        joined = []
        for number, part in enumerate(parts):
            found = tuple(part)
            joined.append(_BETWEEN.join(found) + _BETWEEN)
            for text in found:
                self._whole.setdefault(text, number)
        if sum(map(len, joined)) > LONGEST:
            raise TooMuchWorkError(f"the texts to look through have more than {LONGEST} characters")
        self._exact: Final = _JoinedText.of(joined)
        self._folded: Final = _JoinedText.of([text.casefold() for text in joined])
        self._seen: Final[dict[tuple[type, Leaf], tuple[int, int]]] = {}
        self._effort: Final = Effort(_WORK, "there are too many values and texts to look through")

    def grade(self, leaf: Leaf, known: int) -> Grade:
        """Return how a value is found in the first `known` parts.

        Raises:
            TooMuchWorkError: there is no work left to find out.
        """
        # Most values are copied whole from a result: they need no search.
        if isinstance(leaf, str) and self._whole.get(leaf, _NEVER) < known:
            return "exact"
        key = type(leaf), leaf
        if key not in self._seen:
            self._effort.spend(3 * len(self._exact.text))
            self._seen[key] = self._of_text(leaf) if isinstance(leaf, str) else self._of_number(leaf)
        exact, derived = self._seen[key]
        return "exact" if exact < known else "derived" if derived < known else "unseen"

    def _of_text(self, leaf: str) -> tuple[int, int]:
        """Return the first part with a text exactly, and the first with another form of it."""
        exact = self._exact.words(leaf)
        trimmed = leaf.strip().casefold()
        forms = [self._folded.words(trimmed)]
        if len(trimmed) >= _SHORTEST_PART:
            forms.append(self._folded.anywhere(trimmed))
        if _NUMBER.fullmatch(trimmed):
            forms += [found.get(number, _NEVER) for number in _readings(trimmed) for found in self._numbers]
        forms += [self._days.get(day, _NEVER) for day in _days(_MIDNIGHT.sub("", trimmed))]
        return exact, min(forms)

    def _of_number(self, leaf: float) -> tuple[int, int]:
        plain, formatted = self._numbers
        number = Decimal(repr(leaf))
        return plain.get(number, _NEVER), formatted.get(number, _NEVER)

    @cached_property
    def _numbers(self) -> tuple[dict[Decimal, int], dict[Decimal, int]]:
        """The first part with each number: for numbers as JSON writes them, and for numbers with other separators."""
        plain: dict[Decimal, int] = {}
        formatted: dict[Decimal, int] = {}
        for match in islice(_NUMBER.finditer(self._exact.text), _NUMBERS):
            readings = _readings(match[0])
            part = self._exact.part(match.start())
            if readings and _is_plain(match[0]):
                plain.setdefault(readings[0], part)
            for number in readings:
                formatted.setdefault(number, part)
        return plain, formatted

    @cached_property
    def _days(self) -> dict[_Day, int]:
        found: dict[_Day, int] = {}
        for at, day in _dated(self._exact.text):
            found[day] = min(self._exact.part(at), found.get(day, _NEVER))
        return found


class _JoinedText(NamedTuple):
    text: str
    ends: list[int]
    """The end of each part."""

    @classmethod
    def of(cls, texts: Sequence[str]) -> _JoinedText:
        return cls("".join(texts), list(accumulate(map(len, texts))))

    def part(self, at: int) -> int:
        """Return the part with a position."""
        return bisect_right(self.ends, at)

    def words(self, needle: str) -> int:
        """Return the first part with a text in whole words. The search ends after too many matches inside words."""
        if not needle:
            return _NEVER
        at = -1
        for _ in range(_OCCURRENCES):
            at = self.text.find(needle, at + 1)
            if at < 0:
                break
            end = at + len(needle)
            starts = not at or not (self.text[at - 1].isalnum() and needle[0].isalnum())
            if starts and not (self.text[end].isalnum() and needle[-1].isalnum()):
                return self.part(at)
        return _NEVER

    def anywhere(self, needle: str) -> int:
        """Return the first part with a text."""
        at = self.text.find(needle)
        return _NEVER if at < 0 else self.part(at)


def leaves(value: Any, effort: Effort) -> Iterator[tuple[tuple[str | int, ...], Leaf]]:
    """Yield the texts and numbers in a JSON value with their paths, in order; no empty text, no boolean, no null.

    Raises:
        TooMuchWorkError: there is no work left for one of its values.
    """
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    for _ in range(MOST_LEAVES):
        if not pending:
            return
        effort.spend()
        path, node = pending.pop()
        if isinstance(node, dict):
            pending.extend(((*path, key), item) for key, item in reversed(node.items()))
        elif isinstance(node, list):
            pending.extend(((*path, index), item) for index, item in reversed(list(enumerate(node))))
        elif (isinstance(node, str) and node.strip()) or _is_number(node):
            yield path, node


def texts(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value: its leaves, and the keys of its objects, which are ids as often as names."""
    pending = [value]
    for _ in range(MOST_LEAVES):
        if not pending:
            return
        node = pending.pop()
        if isinstance(node, dict):
            yield from (key for key in node if isinstance(key, str))
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, str):
            yield node
        elif _is_number(node):
            yield repr(node)


def _is_number(value: Any) -> bool:
    """Return whether it is a number that can be written: an integer may be too long for that."""
    if isinstance(value, int):
        return not isinstance(value, bool) and value.bit_length() <= _MOST_BITS
    return isinstance(value, float)


def _is_plain(text: str) -> bool:
    return "," not in text and "'" not in text and text.count(".") <= 1


def _readings(text: str) -> list[Decimal]:
    """Return the numbers that a text may mean: with a point for the fraction, or with a comma."""
    if len(text) > _LONGEST_NUMBER:
        return []
    spellings = [text.replace(",", "").replace("'", "")]
    if "," in text or text.count(".") > 1:
        spellings.append(text.replace(".", "").replace("'", "").replace(",", "."))
    return list(dict.fromkeys(number for each in spellings for number in _decimal(each)))


def _decimal(text: str) -> Iterator[Decimal]:
    try:
        yield Decimal(text)
    except InvalidOperation:
        return


def _dated(text: str) -> Iterator[tuple[int, _Day]]:
    for pattern in _DATES:
        for match in islice(pattern.finditer(text), _NUMBERS):
            yield from ((match.start(), day) for day in _day(match))


def _days(text: str) -> list[_Day]:
    matches = [pattern.fullmatch(text) for pattern in _DATES]
    return [day for match in matches if match for day in _day(match)]


def _day(match: re.Match[str]) -> Iterator[_Day]:
    month = match["m"]
    number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
    day = int(match["d"])
    if 1 <= number <= len(_MONTHS) and 1 <= day <= _MOST_DAYS:
        yield int(match["y"]), number, day
