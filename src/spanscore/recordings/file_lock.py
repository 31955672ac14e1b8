"""Locks between processes. A lock ends with its file: when it is closed, and when its process ends."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

# Of the standard library: Windows has the second, all other systems the first.
_FCNTL: Final[Any] = import_module("fcntl") if find_spec("fcntl") else None
_MSVCRT: Final[Any] = None if _FCNTL else import_module("msvcrt")
_BEHIND_ALL: Final = 2**30  # Windows locks bytes, which no other process can read then


def lock(file: int, *, wait: bool = False) -> None:
    """Lock an open file for this process alone. With `wait`, wait for other processes, on Windows for 10 s.

    Raises:
        BlockingIOError: another process has it locked.
        OSError: the file system has no locks.
    """
    if _FCNTL:
        _FCNTL.flock(file, _FCNTL.LOCK_EX if wait else _FCNTL.LOCK_EX | _FCNTL.LOCK_NB)
        return
    os.lseek(file, _BEHIND_ALL, os.SEEK_SET)
    try:
        _MSVCRT.locking(file, _MSVCRT.LK_LOCK if wait else _MSVCRT.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from error
    finally:
        os.lseek(file, 0, os.SEEK_SET)
