"""What goes to and fro between Kafka and those who take its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Record(NamedTuple):
    """One record of the topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Commit(NamedTuple):
    """What is to be committed of one partition."""

    offset: int
    text: str = ""
    """Kept beside the offset, for the next owner."""


class PoisonRecord(NamedTuple):
    """A record that cannot be used."""

    record: Record
    reason: str


class Progress(NamedTuple):
    """How far a partition was read."""

    position: int
    """The offset behind the last record read."""
    end: int
    """The offset behind the last record there is."""


class Changes(Protocol):
    """Is told which partitions come and go, while `GroupMember.read` or `close` runs."""

    def assigned(self, partitions: Sequence[int]) -> None:
        """Learn of partitions that are this member's from now on."""
        ...

    def revoked(self, partitions: Sequence[int]) -> None:
        """Learn of partitions that will be somebody else's; they can be committed until this returns."""
        ...

    def lost(self, partitions: Sequence[int]) -> None:
        """Learn of partitions that may be somebody else's already."""
        ...
