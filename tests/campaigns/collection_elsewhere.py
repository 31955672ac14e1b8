"""A plug-in of pytest: tests are collected as on another day, from a disk that lists files the other way round.

It is for the second half of `collection.py`, which says why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

DAYS: Final = 400

_scandir, _listdir = os.scandir, os.listdir


class _Backwards:
    """What `os.scandir` returns, but in the opposite order: the order is up to the file system."""

    def __init__(self, *path: Any) -> None:
        with _scandir(*path) as entries:
            self._entries: Iterator[Any] = reversed(list(entries))

    def __iter__(self) -> Iterator[Any]:
        return self._entries

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: what was listed is here."""


def _later(clock: Callable[[], Any], by: int) -> Callable[[], Any]:
    return lambda: clock() + by


time.time = _later(time.time, DAYS * 86_400)
time.time_ns = _later(time.time_ns, DAYS * 86_400 * 10**9)
os.scandir = _Backwards  # type: ignore[assignment]
os.listdir = lambda *path: _listdir(*path)[::-1]  # type: ignore[assignment]
