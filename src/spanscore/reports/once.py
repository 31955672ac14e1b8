"""Texts and numbers of a report that several emitters ask for, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from spanscore.model import Report

_T = TypeVar("_T")


def once_a_report(make: Callable[[Report], _T]) -> Callable[[Report], _T]:
    """Return a function that remembers what it made of the last report: each report goes to all emitters in turn.

    The result must not be changed. It and the report are kept until the next report.
    """
    last: tuple[Report, _T] | None = None

    @wraps(make)
    def made(report: Report) -> _T:
        nonlocal last
        if (known := last) is not None and known[0] is report:
            return known[1]
        found = make(report)
        last = report, found
        return found

    return made
