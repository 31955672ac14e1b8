"""Dates and times are compared as instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.matchers._scalars import instant
from spanscore.compare.matchers.base import EarlierResults
from spanscore.compare.matchers.compiler import matcher


def matches(expected: Any, actual: Any) -> bool:
    """Compare."""
    return matcher(expected).matches(actual, EarlierResults.nothing())


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("2026-11-01T09:30:00Z", True),
        ("2026-11-01t10:30:00.000+01:00", True),
        ("2026-11-01 09:30:00z", True),
        ("2026-11-01T09:30:01Z", False),
        ("2026-11-01T09:30:00", False),
        ("2026-11-01", False),
        (1793525400, False),
        (None, False),
    ],
)
def test_equal_instants(actual: Any, *, expected: bool) -> None:
    """However they are written; a time without an offset is none of RFC 3339."""
    assert expected == matches({"$date": "2026-11-01T09:30:00Z"}, actual)


def test_the_year_0() -> None:
    """A leap year, which RFC 3339 has and Python has not."""
    assert matches({"$date": "0001-01-01"}, "0000-12-31T22:00:00-02:00")
    assert matches({"$date": "0000-02-29", "within": "1d"}, "0000-03-01")


@pytest.mark.parametrize(
    ("within", "actual", "expected"),
    [
        ("1d", "2026-11-02", True),
        ("1d", "2026-10-31T00:00:00Z", True),
        ("1d", "2026-11-02T00:00:00.001Z", False),
        ("1d1h30m", "2026-11-02T01:30:00Z", True),
        ("500ms", "2026-11-01T00:00:00.5Z", True),
        ("500ms", "2026-11-01T00:00:00.500000001Z", False),
    ],
)
def test_within(within: str, actual: str, *, expected: bool) -> None:
    """The end is included; a date alone is its midnight in UTC."""
    assert expected == matches({"$date": "2026-11-01", "within": within}, actual)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-29",
        "2026-13-01",
        "2026-00-01",
        "2026-01-00",
        "2100-02-29",
        "2026-01-01T24:00:00Z",
        "2026-1-1",
        "2026-01-01T00:61:00Z",
        "2026-01-01T00:00:00+24:00",
        "x" * 100_000,
        "2026-01-01T00:00:00." + "1" * 5_000 + "Z",
    ],
)
def test_what_is_no_date(text: str) -> None:
    """It matches nothing, and cannot be expected."""
    assert instant(text) is None
    with pytest.raises(ValueError, match=r"^a\.\$date: must be a date or a time of RFC 3339"):
        matcher({"a": {"$date": text}})


@pytest.mark.parametrize("within", ["", "1", "1x", 1, None, "-1d", "d"])
def test_what_is_no_duration(within: Any) -> None:
    """It is refused, with what is allowed."""
    with pytest.raises(ValueError, match="'within' must be a duration such as '1d'"):
        matcher({"$date": "2026-11-01", "within": within})


OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS)  # noqa: DTZ001 - they get one


@given(TIMES, TIMES)
def test_as_a_library_counts(one: datetime, other: datetime) -> None:
    """The time between two instants is what Python's calendar says."""
    first, second = instant(one.isoformat()), instant(other.isoformat())

    assert first is not None
    assert second is not None
    between = one.astimezone(UTC) - other.astimezone(UTC)
    assert between == timedelta(microseconds=int((first - second) * 10**6))
