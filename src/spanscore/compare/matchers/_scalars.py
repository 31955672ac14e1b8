"""Matchers of single values: `$type`, `$glob`, `$regex`, `$ignore_case`, `$near`, `$range`, `$length`, `$date`."""

from __future__ import annotations

import math
import re
from calendar import monthrange, timegm
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from spanscore.compare.differences import json_text, shown
from spanscore.compare.globs import glob_matcher
from spanscore.compare.matchers.base import Matcher, Test
from spanscore.contracts.settings import seconds
from spanscore.messages.nearest import suggestion

_PAIR: Final = 2
_PERCENT: Final = 100
_DAY: Final = 86_400
_400_YEARS: Final = 146_097 * _DAY
_INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,30}))?(?:[Zz]|([+-])(\d\d):(\d\d)))?", re.ASCII
)
_DURATION: Final = re.compile(r"(?:(\d{1,9})d)?(.*)", re.ASCII)
_HIGHEST: Final = (23, 59, 60, 23, 59)
"""Of hour, minute, second, and of hours and minutes of the offset."""


def of_type(types: Any) -> Matcher:
    """`$type`: JSON's types; 1.0 is an integer, as it is equal to 1."""
    named = types if isinstance(types, list) else [types]
    if not named:
        raise ValueError(f"must be one of {', '.join(_TYPES)}, or a list of them")
    for each in named:
        if not isinstance(each, str) or each not in _TYPES:
            near = suggestion(each, _TYPES) if isinstance(each, str) else ""
            raise ValueError(f"must be one of {', '.join(_TYPES)}, or a list of them, not {shown(each)}{near}")
    checks = [_TYPES[each] for each in named]
    return Test(" or ".join(named), lambda actual: any(check(actual) for check in checks))


def glob(pattern: Any) -> Matcher:
    """`$glob`: the whole string, `*` for any run of characters and `?` for one."""
    text = _text(pattern)
    matches = glob_matcher(text)
    return Test(f"text like {shown(text)}", lambda actual: isinstance(actual, str) and matches(actual), is_text=True)


def regex(pattern: Any) -> Matcher:
    """`$regex`: the whole string, by a pattern of RE2."""
    from spanscore.compare._patterns import compiled, is_whole  # noqa: PLC0415 - few expectations need RE2

    text = _text(pattern)
    compiled(text)
    words = f"text matching {text if len(text) < _PERCENT else shown(text)}"
    return Test(words, lambda actual: isinstance(actual, str) and is_whole(text, actual), is_text=True)


def ignore_case(wanted: Any) -> Matcher:
    """`$ignore_case`: the whole string, in capitals or not."""
    text = _text(wanted)
    folded = text.casefold()
    words = f"{shown(text)} in any case"
    return Test(words, lambda actual: isinstance(actual, str) and actual.casefold() == folded, is_text=True)


def near(wanted: Any, options: Mapping[str, Any]) -> Matcher:
    """`$near`: a number no farther away than `within`, or than `percent` of the one expected.

    Numbers are compared as they are written: 1.1 is within 0.1 of 1, although the nearest binary fraction is not.
    """
    if not is_number(wanted):
        raise ValueError(f"must be a number, not {shown(wanted)}")
    if len(options) != 1:
        raise ValueError("needs how far away a number may be: either 'within' or 'percent'")
    (option, distance), *_ = options.items()
    if not is_number(distance) or distance < 0:
        raise ValueError(f"{option!r} must be a number of at least 0, not {shown(distance)}")
    middle, far = exactly(wanted), exactly(distance)
    if option == "percent":
        far = abs(middle) * far / _PERCENT
    words = f"{json_text(wanted)} ± {json_text(distance)}{' %' if option == 'percent' else ''}"
    low, high = middle - far, middle + far
    return Test(words, lambda actual: is_number(actual) and low <= exactly(actual) <= high)


def in_range(bounds: Any) -> Matcher:
    """`$range`: a number from one to the other, ends included; null is open."""
    low, high = _bounds(bounds, is_number, "numbers or null, such as [0, 100]")

    def passes(actual: Any) -> bool:
        return is_number(actual) and (low is None or low <= actual) and (high is None or actual <= high)

    return Test(_span(low, high) or "a number", passes)


def of_length(wanted: Any) -> Matcher:
    """`$length`: of a string in characters, of an array or a mapping; a number, or from one to the other."""
    if not isinstance(wanted, list) and not _is_size(wanted):
        raise ValueError(f"must be a whole number of at least 0, or two of them such as [1, 5], not {shown(wanted)}")
    bounds = wanted if isinstance(wanted, list) else [wanted, wanted]
    low, high = _bounds(bounds, _is_size, "whole numbers of at least 0 or null, such as [1, 5]")

    def passes(actual: Any) -> bool:
        if not isinstance(actual, (str, list, dict)):
            return False
        return (low is None or low <= len(actual)) and (high is None or len(actual) <= high)

    return Test(f"length {json_text(low) if low == high and low is not None else _span(low, high) or 'of any'}", passes)


def is_number(value: Any) -> bool:
    """Return whether a value is a number as JSON has them: no boolean, no NaN."""
    return type(value) is int or (type(value) is float and math.isfinite(value))


def exactly(number: float) -> Fraction:
    """Return a number as it is written in decimals."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"must be a text, not {shown(value)}"
        raise ValueError(message)  # noqa: TRY004 - one kind of error for everything wrong with an expectation
    return value


def _bounds(bounds: Any, fits: Callable[[Any], bool], what: str) -> tuple[Any, Any]:
    if isinstance(bounds, list) and len(bounds) == _PAIR and all(each is None or fits(each) for each in bounds):
        low, high = bounds
        if low is None or high is None or low <= high:
            return low, high
        raise ValueError(f"the first of {shown(bounds)} must not be greater than the second")
    raise ValueError(f"must be two {what}, not {shown(bounds)}")


def _span(low: Any, high: Any) -> str:
    if low is None or high is None:
        return (
            f"at most {json_text(high)}"
            if high is not None
            else f"at least {json_text(low)}"
            if low is not None
            else ""
        )
    return f"{json_text(low)} to {json_text(high)}"


def date(wanted: Any, options: Mapping[str, Any]) -> Matcher:
    """`$date`: the same instant, or one that is not farther away than `within`. A date alone is its midnight in UTC."""
    middle = instant(wanted)
    if middle is None:
        raise ValueError(
            f"must be a date or a time of RFC 3339, such as '2026-11-01' or '2026-11-01T09:30:00Z', not {shown(wanted)}"
        )
    far = _within(options["within"]) if "within" in options else Fraction(0)

    def passes(actual: Any) -> bool:
        found = instant(actual)
        return found is not None and abs(found - middle) <= far

    return Test(f"{wanted} ± {options['within']}" if options else f"the time {wanted}", passes, is_text=True)


def instant(text: Any) -> Fraction | None:
    """Return the seconds since 1970; None where a value is no date or time of RFC 3339."""
    found = _INSTANT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    year, month, day = (int(found[group]) for group in (1, 2, 3))
    clock = [int(found[group] or 0) for group in (4, 5, 6, 9, 10)]
    if any(value > highest for value, highest in zip(clock, _HIGHEST, strict=True)):
        return None
    try:
        if not 1 <= day <= monthrange(year, month)[1]:
            return None
        *time, offset_hours, offset_minutes = clock
        offset = (offset_hours * 60 + offset_minutes) * 60 * (-1 if found[8] == "-" else 1)
        # Python has no year 0, but dates repeat after 400 years.
        seconds = timegm((year or 400, month, day, *time)) - (0 if year else _400_YEARS)
        return seconds - offset + Fraction(f"0.{found[7] or 0}")
    except ValueError:  # no such month or year
        return None


def _within(duration: Any) -> Fraction:
    message = f"'within' must be a duration such as '1d', '2h' or '1m30s', not {shown(duration)}"
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if found is None or not found[0]:
        raise ValueError(message)
    try:
        return Fraction(int(found[1] or 0)) * _DAY + (exactly(seconds(found[2])) if found[2] else 0)
    except ValueError as error:
        raise ValueError(message) from error
