from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.storage.records import (
    FILE_HEADER_SIZE,
    RECORD_HEADER_SIZE,
    Entry,
    FileHeader,
    Kind,
    UnknownVersion,
    file_header,
    record_header,
    scan,
)

RUN = 0x0123456789ABCDEF
BODIES = [b"first", b"", b"x" * 3_000, b"last"]


def record(sequence: int, body: bytes, run: int = RUN) -> bytes:
    """Return a record as it is written."""
    return record_header(run, Entry(Kind.PROTOBUF, sequence, 10 * sequence, 20 * sequence), body) + body


def content_of(bodies: Sequence[bytes], *, compacted: bool = False) -> bytes:
    """Return a file with these requests, numbered from 1."""
    records = [record(number, body) for number, body in enumerate(bodies, 1)]
    return file_header(FileHeader(RUN, compacted)) + b"".join(records)


def bodies_in(content: bytes) -> list[bytes]:
    """Return the requests that are found in a file."""
    return [content[found.start : found.end] for found in scan(content).records]


def test_what_is_written_is_read() -> None:
    """A file gives back its header, and each record's place, numbers and body."""
    content = content_of(BODIES)
    found = scan(content)

    assert (FileHeader(RUN, has_gaps=False), 0, 0) == (found.header, found.damaged, found.torn)
    assert BODIES == bodies_in(content)
    assert [Entry(Kind.PROTOBUF, n, 10 * n, 20 * n) for n in (1, 2, 3, 4)] == [each.entry for each in found.records]
    assert FILE_HEADER_SIZE == found.records[0].offset


LAST = len(record(4, BODIES[3]))


def tells_what_was_lost(content: bytes) -> bool:
    """Return whether of a file without its beginning the whole records are read, and the others counted."""
    found = scan(content, first=1)
    whole = bodies_in(content)
    return (
        (BODIES[-len(whole) :], len(BODIES) - len(whole), 0) == (whole, found.damaged, found.torn)
        and found.header is not None
        and found.header.run == RUN
    )


def test_a_file_that_was_cut_at_the_front_tells_what_was_lost() -> None:
    """Wherever its beginning ends, the whole records behind are read, and those before are counted."""
    content = content_of(BODIES)

    assert [] == [size for size in range(1, len(content) - LAST) if not tells_what_was_lost(content[size:])]


def test_what_a_sender_wrote_is_not_taken_for_records_where_the_front_is_cut_off() -> None:
    """Records of an invented run in the body of a request are not followed by others of theirs."""
    invented = record(7, b"invented", run=5) * 2
    content = content_of([b"first", b"begins" + invented + b"ends", b"last"])
    assert [b"last"] == bodies_in(content[content.index(b"begins") :])


def is_only_torn(content: bytes) -> bool:
    """Return whether of a file without its end the whole records are read, and what is behind them counts as torn."""
    found = scan(content)
    whole = bodies_in(content)
    size = FILE_HEADER_SIZE + found.torn + sum(RECORD_HEADER_SIZE + len(body) for body in whole)
    return (BODIES[: len(whole)], 0, len(content)) == (whole, found.damaged, size)


def test_a_torn_end_is_no_damage() -> None:
    """Wherever a write is cut off, the whole records before are read, and what is left of the last one is only torn."""
    content = content_of(BODIES)

    assert [] == [size for size in range(FILE_HEADER_SIZE + 1, len(content)) if not is_only_torn(content[:size])]


def test_a_file_without_records_is_empty() -> None:
    """A file that ends within its header, or behind it, holds nothing and lacks nothing."""
    content = content_of(BODIES)
    found = {size: scan(content[:size]) for size in range(FILE_HEADER_SIZE + 1)}

    assert [] == [size for size, each in found.items() if each.records or each.damaged]


def with_damage(content: bytes, offset: int) -> bytes:
    """Return a file with a wrong byte."""
    return content[:offset] + bytes([content[offset] ^ 0xFF]) + content[offset + 1 :]


def costs_itself_only(content: bytes, offset: int) -> bool:
    """Return whether of a file with a wrong byte the record there is counted as damaged, and all others are read."""
    hit = next(index for index, each in enumerate(scan(content).records) if offset < each.end)
    damaged = with_damage(content, offset)
    found = scan(damaged)
    # A last record whose length is wrong looks like one that is cut off.
    is_counted = found.damaged == 1 or (hit == len(BODIES) - 1 and found.torn > 0)
    return is_counted and BODIES[:hit] + BODIES[hit + 1 :] == bodies_in(damaged)


def test_a_damaged_record_costs_itself_only() -> None:
    """Whichever byte of a record is wrong, that record is counted as damaged, and all others are read."""
    content = content_of(BODIES)
    offsets = range(FILE_HEADER_SIZE, len(content))

    assert [] == [offset for offset in offsets if not costs_itself_only(content, offset)]


def test_neighbours_that_are_damaged_are_all_counted() -> None:
    """The numbers of the records around a damaged place tell how many were there."""
    content = bytearray(content_of(BODIES))
    records = scan(bytes(content)).records
    content[records[1].offset : records[2].end] = bytes(records[2].end - records[1].offset)

    assert 2 == scan(bytes(content)).damaged


def test_gaps_in_a_compacted_file_are_no_damage() -> None:
    """Where records were left out on purpose, a damaged place counts as one."""
    content = bytearray(
        file_header(FileHeader(RUN, has_gaps=True)) + record(1, b"a") + record(90, b"b") + record(99, b"c")
    )
    damaged = scan(bytes(content)).records[1]
    content[damaged.start] ^= 0xFF

    assert 1 == scan(bytes(content)).damaged


def test_a_damaged_header_costs_nothing() -> None:
    """The records behind a damaged header are read all the same, whichever of its bytes is wrong."""
    content = content_of(BODIES)
    offsets = range(FILE_HEADER_SIZE)

    assert [] == [offset for offset in offsets if bodies_in(with_damage(content, offset)) != BODIES]


def test_another_version_is_refused() -> None:
    """A whole header of another version is not guessed at."""
    from zlib import crc32  # noqa: PLC0415 - to make a header that is right but for its version

    content = bytearray(content_of(BODIES))
    content[8] = 2
    content[FILE_HEADER_SIZE - 4 : FILE_HEADER_SIZE] = crc32(content[: FILE_HEADER_SIZE - 4]).to_bytes(4, "little")

    with pytest.raises(UnknownVersion, match=r"^format version 2, where this spanscore knows version 1$"):
        scan(bytes(content))


def test_a_request_cannot_pass_for_a_record() -> None:
    """A sender that puts whole records into a request, and is lucky enough to have it damaged, gains nothing."""
    forged = record(5, b"forged", run=RUN ^ 1)
    content = bytearray(content_of([b"a", forged, b"b"]))
    content[scan(bytes(content)).records[1].offset + 8] ^= 0xFF

    assert [b"a", b"b"] == bodies_in(bytes(content))


def test_a_file_of_zeros_is_read_at_once() -> None:
    """What a file system leaves of a file it lost is no log, and takes no time."""
    assert 1 == scan(bytes(64 * 2**20)).damaged


class Counted(bytes):
    """Bytes that count how often something looks what stands at a place."""

    looks = 0

    def startswith(self, *arguments: Any) -> bool:
        """Look."""
        self.looks += 1
        return super().startswith(*arguments)


def test_what_looks_like_many_records_is_followed_once() -> None:
    """A sender fills a request with headers of records, and file and request lose theirs: it is read soon."""
    forged = record(1, b"x" * 10, run=RUN ^ 1) * 2_000 + b"no record follows"
    content = content_of([forged, b"b"])
    lost = FILE_HEADER_SIZE + RECORD_HEADER_SIZE
    counted = Counted(bytes(lost) + content[lost:])

    assert [b"b"] == [content[found.start : found.end] for found in scan(counted).records]
    assert counted.looks < 5 * 2_000


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 3_200), st.integers(0, 255)), max_size=20))
def test_whatever_is_there_is_read(end: bytes, changes: list[tuple[int, int]]) -> None:
    """Any bytes give records that lie inside the file, one behind the other."""
    content = bytearray(content_of(BODIES) + end)
    for offset, byte in changes:
        content[offset % len(content)] = byte
    try:
        found = scan(bytes(content))
    except UnknownVersion:
        return
    places = [(each.offset, each.end) for each in found.records]
    assert places == sorted(places)
    assert all(start < end for start, end in places)
    assert not places or places[-1][1] <= len(content)
