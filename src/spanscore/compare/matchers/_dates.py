"""`$date`: points in time as RFC 3339 writes them, compared as instants."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from spanscore.compare.differences import shown
from spanscore.compare.matchers._scalars import exactly
from spanscore.compare.matchers.base import Matcher, Test
from spanscore.contracts.settings import seconds

_DAY: Final = 86_400
_INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,30}))?(?:[Zz]|([+-])(\d\d):(\d\d)))?", re.ASCII
)
_DURATION: Final = re.compile(r"(?:(\d{1,9})d)?(.*)", re.ASCII)
_DAYS_IN: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY: Final = 2
_HIGHEST: Final = (23, 59, 60, 23, 59)
"""Of hour, minute, second, and of hours and minutes of the offset."""


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
    """Return the seconds since the year 0; None where a value is no date or time of RFC 3339."""
    found = _INSTANT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    year, month, day = (int(found[group]) for group in (1, 2, 3))
    clock = [int(found[group] or 0) for group in (4, 5, 6, 9, 10)]
    if not 1 <= month <= len(_DAYS_IN) or not 1 <= day <= _days(year, month):
        return None
    if any(value > highest for value, highest in zip(clock, _HIGHEST, strict=True)):
        return None
    hour, minute, second, offset_hours, offset_minutes = clock
    offset = (offset_hours * 60 + offset_minutes) * 60 * (-1 if found[8] == "-" else 1)
    fraction = Fraction(f"0.{found[7]}") if found[7] else Fraction(0)
    return _days_before(year, month, day) * _DAY + hour * 3600 + minute * 60 + second - offset + fraction


def _days_before(year: int, month: int, day: int) -> int:
    before = year - 1
    leap_days = before // 4 - before // 100 + before // 400
    return 365 * year + leap_days + sum(_days(year, earlier) for earlier in range(1, month)) + day


def _days(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _DAYS_IN[month - 1] + (month == _FEBRUARY and is_leap)


def _within(duration: Any) -> Fraction:
    message = f"'within' must be a duration such as '1d', '2h' or '1m30s', not {shown(duration)}"
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if found is None or not found[0]:
        raise ValueError(message)
    try:
        return Fraction(int(found[1] or 0)) * _DAY + (exactly(seconds(found[2])) if found[2] else 0)
    except ValueError as error:
        raise ValueError(message) from error
