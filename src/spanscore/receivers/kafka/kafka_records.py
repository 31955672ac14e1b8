"""The values exchanged between Kafka and the owner of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

MAX_RECORD_SIZE: Final = 64 * 2**20
"""Bytes: the size of the largest OTLP request by default."""


class KafkaRecord(NamedTuple):
    """One record of the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    is_passed: bool = False
    """Whether the record is the last of several that cannot be read, or that the library does not return, as those that
    end transactions; it has neither key nor value, then."""
    written_at: float | None = None
    """In seconds, by the clock of the sender or of the broker; None if unknown."""
    end: int = 0
    """The offset after the last record of the partition, as far as the client knew it."""


class Commit(NamedTuple):
    """A commit of one partition."""

    offset: int
    text: str = ""
    """Kept beside the offset, for the next owner."""


class PoisonRecord(NamedTuple):
    """A record that cannot be used."""

    record: KafkaRecord
    reason: str


class Progress(NamedTuple):
    """The progress of reading a partition."""

    position: int
    """The offset after the last record read."""
    end: int
    """The offset after the last record of the partition."""


class Changes(NamedTuple):
    """Callbacks for the partitions of a member; `GroupMember.read` and `close` call them."""

    assigned: Callable[[Sequence[int]], None]
    revoked: Callable[[Sequence[int]], None]
    """Called before partitions are revoked; they can be committed until this returns."""
    lost: Callable[[Sequence[int]], None]
    """Another member may own these partitions already."""
