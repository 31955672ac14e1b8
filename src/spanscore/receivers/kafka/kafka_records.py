"""The values exchanged between Kafka and the owner of its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class KafkaRecord(NamedTuple):
    """One record of the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


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


class Changes(Protocol):
    """Callbacks for assigned and revoked partitions; `GroupMember.read` and `close` call them."""

    def assigned(self, partitions: Sequence[int]) -> None:
        """Called when partitions were assigned to this member."""
        ...

    def revoked(self, partitions: Sequence[int]) -> None:
        """Called before partitions are revoked; they can be committed until this returns."""
        ...

    def lost(self, partitions: Sequence[int]) -> None:
        """Called when partitions were lost; another member may own them already."""
        ...
