"""Scores as JSON Lines."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias

from spanscore.contracts import Host
from spanscore.contracts.settings import Example, FilePath
from spanscore.emitters._waiting_lines import WaitingLines
from spanscore.emitters.sending.outbox import Outbox
from spanscore.errors import OutputError
from spanscore.messages.faults import reason_of
from spanscore.model import Report
from spanscore.reports.serialization import report_line, report_object

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)  # Windows would change line ends
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe without a reader fails with it, and would wait for one without it. Windows has no such pipes."""
_LOOKED_BACK: Final = 16 * 2**20
_OWNER_ONLY: Final = 0o600  # tool arguments and results are in the lines

_Line: TypeAlias = tuple[Any, ...]
"""The parts by which a line is recognised that was written before; a line with further calls is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonlExporter:
    """Appends one JSON object for each run to a file, with the arguments and results of its tool calls."""

    path: Annotated[FilePath, Example("scores.jsonl")]
    """The file."""


class Jsonl:
    """A JSON Lines file.

    Appends a line of JSON for each run to a file, in the form of `spanscore score --format json`.

    The attributes of the run, which may hold all that a user said, are in it only with `tool_content: true`.

    Each line is written at once and whole, so that it can be followed with `tail -f`. When the file is moved away or
    deleted, as log rotation does, a new one is begun. After a crash, a line that is there is not written again.

    The path may be a pipe or a terminal: a thread writes, so that a reader that does not read holds nothing up. Up to
    10,000 lines and 32 MiB wait for it; further ones are left out, and counted as `queue_full`. Lines that wait are in
    memory only: a kill loses them, with `storage` or Kafka too, as spans are not kept for them.

    Args:
        path: the file; its directory must exist.

    Raises:
        OSError: the file cannot be opened.
    """

    Settings: ClassVar = JsonlExporter

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._repeated: set[bytes] = set()
        self._torn = _ends_torn(path)
        self._file = self._open()
        self._waiting = WaitingLines("jsonl", self._write) if _may_wait(self._file) else None

    @classmethod
    def configured(cls, settings: JsonlExporter, host: Host) -> Self:  # noqa: ARG003 - a file is a file everywhere
        """Open the file."""
        try:
            return cls(settings.path)
        except OSError as error:
            is_unread = error.errno == errno.ENXIO  # of pipes
            why = "it is a pipe that nobody reads" if is_unread else reason_of(error)
            raise OutputError(f"path: cannot write to {settings.path}: {why}") from error

    def emit(self, report: Report) -> None:
        """Write a line.

        Raises:
            OSError: it could not be written, or not whole.
        """
        if not report.trajectory.recognised:
            return
        if report.trajectory.trace_id in self._repeated and _line(report_object(report)) in self._written:
            return
        # Half of a surrogate pair is written as the escape that JSON has for it.
        line = f"{report_line(report, attributes=report.tool_content)}\n".encode(errors="backslashreplace")
        if self._waiting is None:
            self._write(line)
        else:
            self._waiting.put(line)

    @property
    def outbox(self) -> Outbox | None:
        """Lines that wait for the reader of a pipe; None for a file."""
        return None if self._waiting is None else self._waiting.outbox

    def expect_repeats(self, trace_ids: Collection[bytes]) -> None:
        """Do not repeat lines of these traces that were written before the process was killed."""
        self._repeated.update(trace_ids)

    def flush(self, timeout_s: float) -> bool:
        """Wait until the reader of a pipe has taken all lines."""
        return self._waiting is None or self._waiting.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Close the file. A pipe whose reader does not read stays open until the process ends."""
        flushed = self.flush(timeout_s)
        if self._waiting is not None:
            self._waiting.end()
        if self._waiting is None or not self._waiting.outbox.size:
            os.close(self._file)
        return flushed

    def _write(self, line: bytes) -> None:
        if self._was_moved():
            opened = self._open()
            if self._waiting is None and _may_wait(opened):
                os.close(opened)
                raise OSError(errno.ENXIO, "it has become a pipe, which needs a restart", str(self._path))
            os.close(self._file)
            self._file, self._torn = opened, False
        if self._torn:  # what is there of the last line must not spoil this one
            line = b"\n" + line
        written = 0
        try:
            written = os.write(self._file, line)
            while written < len(line) and self._waiting is not None:  # a signal may cut a write short
                written += os.write(self._file, line[written:])
        finally:
            if written:
                self._torn = written < len(line)
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))

    @cached_property
    def _written(self) -> frozenset[_Line]:
        return frozenset(_lines(self._path))

    def _open(self) -> int:
        file = os.open(self._path, _FLAGS | _NO_WAIT, _OWNER_ONLY)
        if sys.platform != "win32":
            os.set_blocking(file, True)
        return file

    def _was_moved(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return True
        return not os.path.samestat(there, os.fstat(self._file))


def _may_wait(file: int) -> bool:
    """Return whether writing may wait for a reader."""
    return stat.S_ISFIFO(os.fstat(file).st_mode) or os.isatty(file)


def _ends_torn(path: Path) -> bool:
    """Return whether the last line is not whole: its writer was killed, or the disk was full."""
    return _tail(path, 1) not in {b"", b"\n"}


def _lines(path: Path) -> Iterator[_Line]:
    for line in _tail(path, _LOOKED_BACK).splitlines():
        with suppress(ValueError, AttributeError):  # not whole, or not ours
            yield _line(json.loads(line))


def _line(report: Mapping[str, Any]) -> _Line:
    calls, turns = report.get("tool_calls") or (), report.get("turns") or ()
    keys = ("unit", "trace_id", "root_span_id", "revision", "verdict", "finished")
    return *map(report.get, keys), "paused" in report, len(calls), len(turns)


def _tail(path: Path, size: int) -> bytes:
    if not path.is_file():  # opening a pipe would wait for its reader
        return b""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read(size)
    except OSError:
        return b""
