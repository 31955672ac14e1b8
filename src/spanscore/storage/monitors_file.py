"""The file with the state of monitors, which is written anew as a whole."""

from __future__ import annotations

import logging
from typing import Final

from spanscore.messages.faults import reason_of
from spanscore.storage.compaction import UNFINISHED
from spanscore.storage.log_file import Disk
from spanscore.storage.records import Entry, FileHeader, Kind, file_header, record_header, scan

MONITORS: Final = ".monitors"
"""The end of the name of the file."""

_NAME: Final = f"{0:016x}{MONITORS}"

_log = logging.getLogger(__name__)


class MonitorsFile:
    """The state of monitors on disk. After a loss of power it may be missing, and the evidence begins anew."""

    def __init__(self, disk: Disk) -> None:
        self.lost = 0
        """The number of states that were damaged."""
        self._disk: Final = disk

    def read(self) -> bytes | None:
        """Return the state that was written last; None if there is none, or if it is damaged."""
        files = self._disk.files
        try:
            content = files.read(_NAME, 0, files.size(_NAME))
        except FileNotFoundError:
            return None
        except OSError as error:
            self.lost += 1
            _log.error("storage: the state of monitors cannot be read: %s", reason_of(error))
            return None
        bodies = [content[each.start : each.end] for each in scan(content).records if each.entry.kind == Kind.MONITORS]
        if not bodies:
            self.lost += 1
            _log.error("storage: the state of monitors is damaged; their evidence begins anew")
        return bodies[-1] if bodies else None

    def write(self, state: bytes) -> None:
        """Write the state in place of the last one.

        Raises:
            OSError: it is not written; the last one is still there.
        """
        disk, files, new = self._disk, self._disk.files, _NAME + UNFINISHED
        files.delete(new)
        file = files.create(new)
        try:
            entry = Entry(Kind.MONITORS, 0, disk.wall_ns(), disk.monotonic_ns())
            header = file_header(FileHeader(disk.run, has_gaps=True))
            files.append(file, [header, record_header(disk.run, entry, state), state])
        finally:
            files.close(file)
        files.rename(new, _NAME)
