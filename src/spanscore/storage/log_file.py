"""The writer of one file of the log."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from spanscore.storage.directory import Files
from spanscore.storage.records import FILE_HEADER_SIZE, Entry, FileHeader, file_header, record_header
from spanscore.storage.syncer import Syncer


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The dependencies of the log's files: directory, syncer, run number and clocks."""

    files: Files
    syncer: Syncer
    run: int
    """The random number of this process; not 0."""
    wall_ns: Callable[[], int] = time.time_ns
    monotonic_ns: Callable[[], int] = time.monotonic_ns


class LogFile:
    """Appends records to a new file.

    A file in which a write or a sync failed is never written again: its owner begins a new one. `has_gaps` means that
    the numbers of its records need not be consecutive.

    Raises:
        OSError: the file or its header cannot be written; then there is no such file.
    """

    def __init__(self, disk: Disk, name: str, *, has_gaps: bool) -> None:
        self.name: Final = name
        self.file: Final = disk.files.create(name)
        self.size = FILE_HEADER_SIZE
        self.writes = 0
        """The number of the last write, as the syncer counts."""
        self._disk: Final = disk
        try:
            disk.files.append(self.file, [file_header(FileHeader(disk.run, has_gaps))])
        except OSError:
            with suppress(OSError):
                disk.files.delete(name)
            disk.files.close(self.file)
            raise
        disk.syncer.names_changed()

    def append(self, kind: int, sequence: int, body: bytes) -> int:
        """Write a record, and return its offset.

        Raises:
            OSError: it is not written; a part of it is truncated, or skipped by readers.
        """
        disk = self._disk
        header = record_header(disk.run, Entry(kind, sequence, disk.wall_ns(), disk.monotonic_ns()), body)
        offset = self.size
        try:
            disk.files.append(self.file, [header, body])
        except OSError:
            with suppress(OSError):
                disk.files.truncate(self.file, offset)
            raise
        self.size = offset + len(header) + len(body)
        self.writes = disk.syncer.written(self.file)
        return offset

    def close(self) -> None:
        """Write no more."""
        self._disk.syncer.close(self.file)
