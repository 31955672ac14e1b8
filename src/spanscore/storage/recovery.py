"""Finds the files of an earlier process, and reads them."""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from spanscore.messages.faults import reason_of
from spanscore.storage import records
from spanscore.storage.compaction import UNFINISHED
from spanscore.storage.directory import Files, StorageError
from spanscore.storage.id_log import CLOSED, FINISHED, IdFile
from spanscore.storage.monitors_file import MONITORS
from spanscore.storage.records import FILE_HEADER_SIZE, RECORD_HEADER_SIZE, Kind, Record, Scan, UnknownVersion, scan
from spanscore.storage.request_log import REQUESTS
from spanscore.storage.turn_log import TURNS

_ENDED: Final = ".ended"
"""The end of the name of a note that earlier versions left, and that means nothing any more."""
_NAME: Final = re.compile(
    rf"(0[0-9a-f]{{15}})({'|'.join(map(re.escape, (REQUESTS, CLOSED, TURNS, FINISHED, MONITORS, _ENDED)))})"
)

_NO_FILE: Final = frozenset({errno.ELOOP, errno.EINVAL, errno.ENXIO})
"""Why links, pipes and directories, and sockets, are not read."""
_BLOCK: Final = 2**20
_SHOWN: Final = 5

_log = logging.getLogger(__name__)


class Found(NamedTuple):
    """The files of the log that were there at the start, by kind, from old to new."""

    requests: Sequence[str]
    closed: Sequence[str]
    turns: Sequence[str] = ()
    finished: Sequence[str] = ()
    unreadable: int = 0
    """The number of files that are left alone, as they cannot be opened."""


def find(files: Files) -> Found:
    """Find the files of the log, and leave all others alone.

    Raises:
        StorageError: one is of another version, or the directory cannot be read; then nothing was changed.
    """
    try:
        names = sorted(files.names())
    except OSError as error:
        raise StorageError(f"storage.directory: cannot be read: {reason_of(error)}") from error
    named = [name for name in names if _NAME.fullmatch(name)]
    ours = [name for name in named if _is_readable(files, name)]
    strays = [name for name in names if not _NAME.fullmatch(name.removesuffix(UNFINISHED))]
    if strays:
        _log.warning("storage.directory: left alone, as it is not ours: %s", ", ".join(map(repr, strays[:_SHOWN])))
    for name in names:
        if name.endswith((UNFINISHED, _ENDED)) and name not in strays:
            with suppress(OSError):
                files.delete(name)

    def of_kind(ending: str) -> Sequence[str]:
        return [name for name in ours if name.endswith(ending)]

    unreadable = len(named) - len(ours)
    return Found(of_kind(REQUESTS), of_kind(CLOSED), of_kind(TURNS), of_kind(FINISHED), unreadable)


def closed_in(name: str, content: bytes, records: Iterable[Record]) -> tuple[IdFile, list[tuple[int, bytes, int]]]:
    """Return a file of closed traces, and of each the kind of its record, its id, and the number of the last request.

    A damaged record is not among them: its trace, if anything of it is left, is scored once more.
    """
    entries = [record for record in records if record.entry.kind in {Kind.CLOSED, Kind.SCORED}]
    found = [(entry.entry.kind, content[entry.start : entry.end], entry.entry.sequence) for entry in entries]
    closed = len({trace_id for kind, trace_id, _ in found if kind == Kind.CLOSED})
    last = max((sequence for _, _, sequence in found), default=0)
    return IdFile(name, number_of(name), len(content), ids=len(found), new=closed, last_sequence=last), found


class Ages:
    """The ages of requests, in files from old to new, at the end of the last process, however long ago that is."""

    def __init__(self, files: Files, names: Sequence[str]) -> None:
        began: dict[int, int] = {}
        ended: dict[int, int] = {}
        self._left_ns: dict[int, int] = {}
        for name in reversed(names):
            head = records.began(_read(files, name, 0, FILE_HEADER_SIZE + RECORD_HEADER_SIZE))
            if head is None:
                head = _began_without_header(read_all(files, name))
            if head is None:
                continue
            run, began[run] = head
            if run not in ended:
                found = scan(read_all(files, name)).records
                if found:
                    ended[run] = found[-1].entry.monotonic_ns
        later_ns = 0
        for run, ended_ns in ended.items():  # from new to old
            self._left_ns[run] = ended_ns + later_ns
            later_ns += max(0, ended_ns - began[run])

    def of(self, run: int, monotonic_ns: int) -> float:
        """Return the age, in seconds, of a request that this run received then."""
        return max(0, self._left_ns.get(run, monotonic_ns) - monotonic_ns) / 1e9


def _began_without_header(content: bytes) -> tuple[int, int] | None:
    found = scan(content)
    return (found.header.run, found.records[0].entry.monotonic_ns) if found.header and found.records else None


def damaged_in(found: Scan, first: int, following: int) -> int:
    """Return how many requests of a file cannot be read. If all are lost, the number after the file shows how many."""
    if not found.damaged or found.records or (found.header is not None and found.header.has_gaps):
        return found.damaged
    return max(1, following - first)


def number_of(name: str) -> int:
    """Return the number that a file is named with."""
    return int(name.partition(".")[0], 16)


def read_all(files: Files, name: str) -> bytes:
    """Return the content of a file, with zeros in place of unreadable blocks."""
    try:
        size = files.size(name)
    except FileNotFoundError:
        return b""
    except OSError as error:
        _log.error("storage: %s cannot be read: %s", name, reason_of(error))
        return bytes(FILE_HEADER_SIZE + 1)
    return b"".join(_read(files, name, start, min(_BLOCK, size - start)) for start in range(0, size, _BLOCK))


def _read(files: Files, name: str, start: int, size: int) -> bytes:
    try:
        return files.read(name, start, size)
    except OSError as error:
        _log.error("storage: %s cannot be read: %s", name, reason_of(error))
        return bytes(size)


def _is_readable(files: Files, name: str) -> bool:
    try:
        scan(files.read(name, 0, FILE_HEADER_SIZE))
    except UnknownVersion as error:
        message = f"storage.directory: {name!r} is of {error}: start the spanscore that wrote it, or another directory"
        raise StorageError(message) from error
    except OSError as error:
        if error.errno in _NO_FILE:
            message = f"storage.directory: {name!r} is a link, or no file: nothing is read through it; remove it"
            raise StorageError(message) from error
        if name.endswith(MONITORS):  # told and counted when it is read
            return True
        _log.error("storage: %s cannot be read: %s", name, reason_of(error))
        return error.errno == errno.EIO
    return True
