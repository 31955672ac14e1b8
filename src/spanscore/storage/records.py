"""The format of the log's files: a header, then records, each with a checksum of its own.

Pure: bytes in, bytes and places out. Whatever the bytes are, reading ends, and what is damaged costs itself only.
"""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple
from zlib import crc32

VERSION: Final = 1

_FILE_MAGIC: Final = b"\x89SPNLOG\n"
_FILE: Final = struct.Struct("<8sBB2xQ")  # magic, version, has_gaps, run; a CRC follows
_CRC: Final = struct.Struct("<I")
FILE_HEADER_SIZE: Final = _FILE.size + _CRC.size

_FRAME: Final = struct.Struct("<QI")  # the run, CRC of all that follows
_REST: Final = struct.Struct("<IB3xQQQ")  # length of the body, kind, sequence, wall clock, monotonic clock
_HEADER: Final = struct.Struct("<QIIB3xQQQ")
RECORD_HEADER_SIZE: Final = _HEADER.size
_RUN: Final = struct.Struct("<Q")
_KIND: Final = re.compile(rb"[\x01-\x05]\0{3}")
_KIND_OFFSET: Final = _FRAME.size + 4
_MOST_READ: Final = 8
"""No more checksums are computed than of so many times a file, whatever looks like a record in it."""


class Kind(enum.IntEnum):
    """What the body of a record is."""

    PROTOBUF = 1
    """A request, in protobuf."""
    JSON = 2
    """A request, in JSON."""
    CLOSED = 3
    """The id of a trace that is scored, and its reports are where they were to go."""
    SCORED = 4
    """The id of a trace that is scored, and its reports are on their way."""
    LOGS = 5
    """A request with logs, in protobuf."""


class FileHeader(NamedTuple):
    """What stands at the start of a file."""

    run: int
    """A random number of the process that wrote the file.

    Each record begins with it: no sender can guess it, so that nothing in a request passes for a record. Monotonic
    times compare within one run only.
    """
    has_gaps: bool = False
    """The numbers of its records do not follow each other, so that a gap between them means nothing."""


class Entry(NamedTuple):
    """What a record says about its body."""

    kind: int
    sequence: int
    wall_ns: int
    """When it was received, in nanoseconds since the Unix epoch: for people who look at a file."""
    monotonic_ns: int
    """When it was received, on a clock that does not jump."""


class Record(NamedTuple):
    """One record, and where it lies in its file."""

    offset: int
    entry: Entry
    start: int
    """Where its body begins."""
    end: int


class UnknownVersion(ValueError):  # noqa: N818 - says what was found
    """A file is whole, but of another version of the format."""

    def __init__(self, version: int) -> None:
        super().__init__(f"format version {version}, where this spanscore knows version {VERSION}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What one file holds."""

    header: FileHeader | None
    """None where nothing can be read."""
    records: tuple[Record, ...] = ()
    damaged: int = 0
    """Records that must have been there and cannot be read: at least one for each damaged place."""
    torn: int = 0
    """Bytes at the end that are the beginning of a record: its writer was killed, and told nobody that it was kept."""


def file_header(header: FileHeader) -> bytes:
    """Encode what a file starts with."""
    encoded = _FILE.pack(_FILE_MAGIC, VERSION, header.has_gaps, header.run)
    return encoded + _CRC.pack(crc32(encoded))


def record_header(run: int, entry: Entry, body: bytes) -> bytes:
    """Encode what stands before the body of a record."""
    rest = _REST.pack(len(body), *entry)
    return _FRAME.pack(run, crc32(body, crc32(rest))) + rest


def scan(content: bytes, first: int | None = None) -> Scan:
    """Find the records of a file. A damaged one is skipped: reading goes on with the next whose checksum is right.

    Args:
        content: the file.
        first: the number that its first record had, where that is known.

    Raises:
        UnknownVersion: the file is of another version.
    """
    header = _read_file_header(content)
    if len(content) <= FILE_HEADER_SIZE:
        return Scan(header=header, torn=0 if header else len(content))
    if header is None:
        return _scan_without_header(content, first)
    return _scan_records(content, header, FILE_HEADER_SIZE, None if header.has_gaps else first)


def _scan_without_header(content: bytes, first: int | None) -> Scan:
    if (found := _found_run(content)) is None:
        return Scan(header=None, damaged=1)
    begins, run = found
    scanned = _scan_records(content, FileHeader(run, has_gaps=True), begins, first)
    before = begins != FILE_HEADER_SIZE if first is None else scanned.records[0].entry.sequence - first
    return replace(scanned, damaged=scanned.damaged + max(0, before))


def _scan_records(content: bytes, header: FileHeader, position: int, first: int | None) -> Scan:
    run = _RUN.pack(header.run)
    records: list[Record] = []
    damaged = torn = 0
    following = first  # the number of the next record, where it is known
    while position < len(content):
        record = _record_at(content, position, run)
        if record is None:
            if _is_torn(content, position, run):
                torn = len(content) - position
            record = _next(content, position + 1, run)
            if record is None:
                damaged += not torn
                break
            torn = 0
            damaged += 1 if following is None else max(1, record.entry.sequence - following)
        records.append(record)
        position = record.end
        following = None if header.has_gaps else record.entry.sequence + 1
    return Scan(header=header, records=tuple(records), damaged=damaged, torn=torn)


def read_record(read: Callable[[int, int], bytes], offset: int) -> tuple[int, Entry, bytes] | None:
    """Return the record that lies there, with its run; None where it is damaged. `read` is told where, and how many."""
    header = read(offset, RECORD_HEADER_SIZE)
    if len(header) < RECORD_HEADER_SIZE:
        return None
    run, _, length, *_ = _HEADER.unpack(header)
    body = read(offset + RECORD_HEADER_SIZE, length)
    record = _record_at(header + body, 0, header[: _RUN.size])
    return None if record is None else (run, record.entry, body)


def began(content: bytes) -> tuple[int, int] | None:
    """Return the run of a file and the time of its first record, from its first bytes; None where they do not tell."""
    if len(content) < FILE_HEADER_SIZE + RECORD_HEADER_SIZE or _read_file_header(content) is None:
        return None
    run, *_, monotonic_ns = _HEADER.unpack_from(content, FILE_HEADER_SIZE)
    return run, monotonic_ns


def _read_file_header(content: bytes) -> FileHeader | None:
    if len(content) < FILE_HEADER_SIZE:
        return None
    magic, version, has_gaps, run = _FILE.unpack_from(content)
    (crc,) = _CRC.unpack_from(content, _FILE.size)
    if magic != _FILE_MAGIC or crc != crc32(content[: _FILE.size]):
        return None
    if version != VERSION:
        raise UnknownVersion(version)
    return FileHeader(run, bool(has_gaps))


def _record_at(content: bytes, offset: int, run: bytes) -> Record | None:
    start = offset + RECORD_HEADER_SIZE
    if start > len(content) or not content.startswith(run, offset):
        return None
    _, crc, length, kind, sequence, wall_ns, monotonic_ns = _HEADER.unpack_from(content, offset)
    end = start + length
    if end > len(content) or crc != crc32(memoryview(content)[offset + _FRAME.size : end]):
        return None
    return Record(offset, Entry(kind, sequence, wall_ns, monotonic_ns), start, end)


def _next(content: bytes, position: int, run: bytes) -> Record | None:
    while (offset := content.find(run, position)) >= 0:
        record = _record_at(content, offset, run)
        if record is not None:
            return record
        position = offset + 1
    return None


def _found_run(content: bytes) -> tuple[int, int] | None:
    """Return where the records of a file begin that has lost its header, and their run; None where there are none.

    What a sender wrote may look like records too, but is not followed by others of the same run up to the end.
    """
    run = content[FILE_HEADER_SIZE : FILE_HEADER_SIZE + _RUN.size]
    if _record_at(content, FILE_HEADER_SIZE, run) is not None:  # only the header is damaged
        return FILE_HEADER_SIZE, _RUN.unpack(run)[0]
    work = _MOST_READ * len(content)
    dead: set[int] = set()
    for match in _KIND.finditer(content):
        offset = match.start() - _KIND_OFFSET
        if offset < 0:
            continue
        run = content[offset : offset + _RUN.size]
        end = _end_of_chain(content, offset, run, dead)
        if end is None:
            continue
        work -= min(end, len(content)) - offset
        if work < 0:
            return None
        if _record_at(content, offset, run) is not None:
            return offset, _RUN.unpack(run)[0]
    return None


def _end_of_chain(content: bytes, offset: int, run: bytes, dead: set[int]) -> int | None:
    """Follow what may be records up to the end, and return where the last ends; None where they do not lead there.

    From places that are dead nothing leads to the end. Those found here are added, so that none is passed twice.
    """
    passed = []
    end = offset
    while end not in dead and content.startswith(run, end) and end + RECORD_HEADER_SIZE <= len(content):
        passed.append(end)
        end += RECORD_HEADER_SIZE + _HEADER.unpack_from(content, end)[2]
    if end >= len(content) or (end not in dead and content.startswith(run[: len(content) - end], end)):
        return end
    dead.update(passed)
    return None


def _is_torn(content: bytes, offset: int, run: bytes) -> bool:
    """Whether what is left is the beginning of one record, as a writer leaves it that is killed."""
    left = len(content) - offset
    if left < RECORD_HEADER_SIZE:
        return content.startswith(run[:left], offset)
    _, _, length, *_ = _HEADER.unpack_from(content, offset)
    return content.startswith(run, offset) and bool(length > left - RECORD_HEADER_SIZE)
