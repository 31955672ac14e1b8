"""The format of the log's files: a header, then records, each with a checksum of its own.

Pure: bytes in, bytes and offsets out. Reading ends for any bytes, and a damaged record costs only itself.
"""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from zlib_ng.zlib_ng import crc32  # as zlib's, in an eighth of the time

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
_KIND: Final = re.compile(rb"[\x01-\x08]\0{3}")
_KIND_OFFSET: Final = _FRAME.size + 4
_MOST_READ: Final = 8
"""No more checksums are computed than of so many times a file, whatever looks like a record in it."""


class Kind(enum.IntEnum):
    """The type of a record's body."""

    PROTOBUF = 1
    """A request, in protobuf."""
    JSON = 2
    """A request, in JSON."""
    CLOSED = 3
    """The id of a trace that is scored and whose reports were sent."""
    SCORED = 4
    """The id of a trace that is scored, and its reports are on their way."""
    LOGS = 5
    """A request with logs, in protobuf."""
    TURN = 6
    """A turn of a conversation."""
    FINISHED = 7
    """The ids of a finished conversation and of its turns."""
    MONITORS = 8
    """The state of monitors."""


class FileHeader(NamedTuple):
    """The header of a file."""

    run: int
    """A random number of the process that wrote the file.

    Each record begins with it: no sender can guess it, so that nothing in a request passes for a record. Monotonic
    times compare within one run only.
    """
    has_gaps: bool = False
    """The numbers of its records do not follow each other, so that a gap between them means nothing."""


class Entry(NamedTuple):
    """The header of a record, without length and checksum."""

    kind: int
    sequence: int
    wall_ns: int
    """The time of receipt in nanoseconds since the Unix epoch, for people who inspect a file."""
    monotonic_ns: int
    """The time of receipt in nanoseconds of a monotonic clock."""


class Record(NamedTuple):
    """One record, and its place in its file."""

    offset: int
    entry: Entry
    start: int
    """The offset of its body."""
    end: int


class UnknownVersion(ValueError):  # noqa: N818 - names the finding
    """A file is whole, but of another version of the format."""

    def __init__(self, version: int) -> None:
        super().__init__(f"format version {version}, where this spanscore knows version {VERSION}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The content of one file."""

    header: FileHeader | None
    """None if nothing can be read."""
    records: tuple[Record, ...] = ()
    damaged: int = 0
    """Records that must have been there and cannot be read: at least one for each damaged place."""
    torn: int = 0
    """The bytes of an incomplete record at the end: its writer was killed before it acknowledged the request."""


def file_header(header: FileHeader) -> bytes:
    """Encode the header of a file."""
    encoded = _FILE.pack(_FILE_MAGIC, VERSION, header.has_gaps, header.run)
    return encoded + _CRC.pack(crc32(encoded))


def record_header(run: int, entry: Entry, body: bytes) -> bytes:
    """Encode the header of a record."""
    rest = _REST.pack(len(body), *entry)
    return _FRAME.pack(run, crc32(body, crc32(rest))) + rest


def scan(content: bytes, first: int | None = None) -> Scan:
    """Find the records of a file. Damaged ones are skipped up to the next record with a correct checksum.

    Args:
        content: the file.
        first: the number of its first record, if known.

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
    following = first  # the number of the next record, if known
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
    """Return the record at an offset, with its run; None if it is damaged. `read` takes an offset and a size."""
    header = read(offset, RECORD_HEADER_SIZE)
    if len(header) < RECORD_HEADER_SIZE:
        return None
    run, _, length, *_ = _HEADER.unpack(header)
    body = read(offset + RECORD_HEADER_SIZE, length)
    record = _record_at(header + body, 0, header[: _RUN.size])
    return None if record is None else (run, record.entry, body)


def began(content: bytes) -> tuple[int, int] | None:
    """Return the run of a file and the time of its first record, from its first bytes; None if they are damaged."""
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
    """Return the offset of the first record of a file without header, and the run; None if there is none.

    Data of a sender may look like a record, too, but no chain of records of one run leads from it to the end.
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
    """Follow possible records to the end, and return the end of the last one; None if they do not lead to the end.

    No chain leads from the offsets in `dead` to the end. New ones are added, so that none is followed twice.
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
    """Return whether the rest is the beginning of one record, left by a writer that was killed."""
    left = len(content) - offset
    if left < RECORD_HEADER_SIZE:
        return content.startswith(run[:left], offset)
    _, _, length, *_ = _HEADER.unpack_from(content, offset)
    return content.startswith(run, offset) and bool(length > left - RECORD_HEADER_SIZE)
