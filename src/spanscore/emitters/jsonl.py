"""Scores as JSON Lines."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from spanscore.model import Report
from spanscore.serialization import report_line

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
_OWNER_ONLY: Final = 0o600  # tool arguments and results are in the lines


class Jsonl:
    """Appends a line of JSON for each trajectory to a file, in the form of `spanscore score --format json`.

    Each line is written at once and whole, so that it can be followed with `tail -f`. When the file is moved away or
    deleted, as log rotation does, a new one is begun.

    Args:
        path: the file; its directory must exist.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._torn = False
        self._file = self._open()

    def emit(self, report: Report) -> None:
        """Write a line.

        Raises:
            OSError: it could not be written, or not whole.
        """
        if self._was_moved():
            moved, self._file = self._file, self._open()
            os.close(moved)
            self._torn = False
        # Half of a surrogate pair is written as the escape that JSON has for it.
        line = f"{report_line(report)}\n".encode(errors="backslashreplace")
        if self._torn:  # what is there of the last line must not spoil this one
            line = b"\n" + line
        written = os.write(self._file, line)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits
        """Do nothing: every line was written when it was emitted."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - closing does not wait
        """Close the file."""
        os.close(self._file)
        return True

    def _open(self) -> int:
        return os.open(self._path, _FLAGS, _OWNER_ONLY)

    def _was_moved(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return True
        return not os.path.samestat(there, os.fstat(self._file))
