"""The differences of two JSON values, path by path, and their texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from spanscore.compare.matching import json_equal
from spanscore.messages.alike import apart
from spanscore.model import NOT_RECORDED

MOST: Final = 20
"""No more differences of one value are looked for."""

UNSHOWABLE: Final = "a value that cannot be shown"

DESCRIBED: Final = 200
"""The most characters of an expectation in words that are shown."""

_DEEPEST: Final = 32
_SHOWN: Final = 80
_ALIKE: Final = 40
_BEFORE: Final = 15
_COMPARED: Final = 4 * _SHOWN
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_TYPES: Final[Mapping[type | tuple[type, ...], str]] = {
    bool: "boolean",  # before int, which it is in Python
    (int, float): "number",
    str: "string",
    type(None): "null",
    (list, tuple): "array",
    dict: "object",
}
_PLAIN_STEP: Final = re.compile(r"[^\W\d]\w*|\d+")


class _AbsentType:
    """The type of `ABSENT`: there is nothing at this path, which is not the same as null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _AbsentType()


class Described(str):
    """An expectation that is no value: a text that is shown unquoted."""

    __slots__ = ()


class Difference(NamedTuple):
    """A path at which two values differ."""

    path: tuple[str | int, ...]
    """Keys of objects and indexes of lists, from the top; empty if the values differ as a whole."""
    expected: Any
    """`ABSENT` if nothing is expected, `Described` if it is no single value."""
    actual: Any
    """`ABSENT` where nothing is there."""
    known_path: tuple[str | int, ...] | None = None
    """The path without keys that may come from a user; by default, the part that the expectation has."""
    why: str | None = None
    """Why the values differ, in words without content, for reasons; None if they only have other values."""

    @property
    def words(self) -> str:
        """The expected and the actual value, as text."""
        expected, actual = _shown_apart(self.expected, self.actual)
        if self.expected is ABSENT:
            return f"not expected, got {actual}"
        return f"expected {expected}, got {actual}"

    @property
    def words_without_content(self) -> str:
        """The difference in words without any value; if values are of different types, with the types."""
        if self.expected is ABSENT:
            return "unexpected key"
        if self.actual is ABSENT:
            return "missing"
        if self.why is not None:
            return self.why
        expected, actual = json_type(self.expected), json_type(self.actual)
        return f"expected {expected}, got {actual}" if expected and expected != actual else "not the expected value"

    @property
    def path_without_content(self) -> tuple[str | int, ...]:
        """The part of the path that the expectation has."""
        if self.known_path is not None:
            return self.known_path
        return self.path[:-1] if self.expected is ABSENT else self.path


def differences(expected: Any, actual: Any, *, missing: bool = True, extra: bool = True) -> list[Difference]:
    """Return where two JSON values differ, in the order of the expected one, and at most the first 20.

    The value of a call without arguments is an empty object. `missing` says whether top-level keys count that only the
    expected value has, `extra` whether keys count that only the actual one has.
    """
    expected, actual = ({} if value is NOT_RECORDED else value for value in (expected, actual))
    if isinstance(expected, dict) and isinstance(actual, dict):
        if not missing:
            expected = {key: value for key, value in expected.items() if key in actual}
        if not extra:
            actual = {key: value for key, value in actual.items() if key in expected}
    return list(islice(_differences(expected, actual, (), _DEEPEST), MOST))


def path_text(subject: str, path: Sequence[str | int]) -> str:
    """Return a subject and a path as text: `issue_refund.items.0.sku`; keys that are no words are in brackets."""
    steps = (f".{step}" if _PLAIN_STEP.fullmatch(str(step)) else f"[{json_text(step)}]" for step in path)
    return subject + "".join(steps)


def first_reason(subject: str, found: Sequence[Difference], how: str | None = None) -> str:
    """Return the first of some differences without content: `issue_refund.items.*.sku: missing`.

    Args:
        subject: the tool, before the path. In the path, `*` is an index, or a key that the expectation does not have.
        found: the differences; if there are none, the subject differs as a whole.
        how: how values differ that are there, if they do not know it themselves.
    """
    first = found[0] if found else Difference((), None, None)
    known = first.path_without_content
    if first.known_path is None and first.expected is ABSENT and first.path:
        known = (*known, "*")
    if first.actual is ABSENT:
        how = "missing"
    elif first.why is not None:
        how = first.why
    elif how is None:
        how = "not expected" if first.expected is ABSENT else "other value"
    steps = (".*" if isinstance(step, int) or step == "*" else path_text("", (step,)) for step in known)
    return f"{subject}{''.join(steps)}: {how}"


def json_type(value: Any) -> str | None:
    """Return the type of a value of JSON, with its article: `a string`; None if it is none."""
    name = None if isinstance(value, Described) else type_name(value)
    return name if name in {None, "null"} else f"{'an' if name in {'array', 'object'} else 'a'} {name}"


def type_name(value: Any) -> str | None:
    """Return the type of a value of JSON, without an article; None if it is none."""
    return next((name for kind, name in _TYPES.items() if isinstance(value, kind)), None)


def json_text(value: Any) -> str:
    """Return a value as JSON; `UNSHOWABLE` if a caller in Python passed a value that is not JSON."""
    if value is ABSENT:
        return "nothing"
    if isinstance(value, Described):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (RecursionError, ValueError, TypeError):
        return UNSHOWABLE


def shown(value: Any) -> str:
    """Return a value as JSON, cut if it is long."""
    return cut(json_text(value))


def cut(text: str, most: int = _SHOWN) -> str:
    """Return a text, cut if it is long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _differences(expected: Any, actual: Any, path: tuple[str | int, ...], levels: int) -> Iterator[Difference]:
    if type(expected) is type(actual) and type(expected) in _PLAIN:  # nearly all that there is, and fast to compare
        if expected != actual:
            yield Difference(path, expected, actual)
    elif levels and isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            here = (*path, key)
            if key in expected and key in actual:
                yield from _differences(expected[key], actual[key], here, levels - 1)
            else:
                yield Difference(here, expected.get(key, ABSENT), actual.get(key, ABSENT))
    elif levels and isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(one, other, (*path, index), levels - 1)
    elif not json_equal(expected, actual):
        yield Difference(path, expected, actual)


def _shown_apart(expected: Any, actual: Any) -> tuple[str, str]:
    """Return two values as JSON; if they first differ far from the start, both begin shortly before that place."""
    texts = _written_apart(json_text(expected), json_text(actual))
    alike = _parting(*texts)
    if max(map(len, texts)) <= _SHOWN or alike < _ALIKE:
        return cut(texts[0], DESCRIBED if isinstance(expected, Described) else _SHOWN), cut(texts[1])
    start = alike - _BEFORE
    parts = [text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "") for text in texts]
    return f"…{parts[0]}", f"…{parts[1]}"


def _written_apart(*texts: str) -> tuple[str, str]:
    """Return two texts; if they look alike, escaped, and for long ones only the part around the first difference."""
    begin = max(0, _parting(*texts) - _COMPARED // 2)
    parts = [text[begin : begin + _COMPARED] for text in texts]
    one, other = apart(*parts, are_cut=min(map(len, parts)) == _COMPARED)
    return (texts[0], texts[1]) if [one, other] == parts else (one, other)


def _parting(*texts: str) -> int:
    return next((place for place, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0)
