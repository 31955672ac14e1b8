"""Batches of records that the client cannot read: how often one is tried, and where it ends. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

_TRIES: Final = 3
"""The bytes may have been damaged on their way to us."""


class UnreadableRecords(NamedTuple):
    """Records that are passed over."""

    partition: int
    first: int
    last: int


@dataclass(slots=True)
class _EndSought:
    first: int
    """The offset of the first record of the batch."""
    start: int
    """The offset at which the batch was read first: a commit may be inside it."""
    inside: int
    """The last offset that is known to be in the batch."""
    behind: int
    """The first offset that is known to be behind it."""
    position: int
    """The offset that is being read."""
    tries: int = 1
    step: int = 1


class UnreadableBatches:
    """Finds the end of each batch that cannot be read, by partition.

    Kafka returns the whole batch for each offset in it, and the client reports its first offset only. So the end is
    sought from offset to offset, by steps that double, and then halve.
    """

    def __init__(self) -> None:
        self._sought: Final[dict[int, _EndSought]] = {}

    def __contains__(self, partition: int) -> bool:
        return partition in self._sought

    def forget(self, partition: int) -> None:
        """Forget a partition that was assigned anew."""
        self._sought.pop(partition, None)

    def failed(self, partition: int, first: int, end: int, due: int = 0) -> int | None:
        """Return where to read on after the batch from `first` on could not be read; None is to try again.

        Args:
            partition: its partition.
            first: the offset of the first record of the batch.
            end: the offset after the last record of the partition.
            due: the offset to read next, as far as it is known; records below it are never read again, or counted.
        """
        sought = self._sought.get(partition)
        if sought is None or first < sought.first:
            start = due if first < due < end else first
            self._sought[partition] = _EndSought(first, start, start, max(end, start + 1), start)
            return None
        if first > sought.first:  # another such batch, behind it
            sought.behind = min(sought.behind, first)
            return self._next(sought)
        sought.tries += 1
        if sought.tries < _TRIES:
            return None
        sought.inside = max(sought.inside, sought.position)
        return self._next(sought)

    def read(self, partition: int, offset: int) -> int | None:
        """Return where to read on in place of a record that was read; None is to take this record."""
        sought = self._sought.get(partition)
        if sought is None or offset < sought.position:
            return None
        if sought.position == sought.start:  # it could be read this time
            del self._sought[partition]
            return None
        return self._is_behind(sought)

    def ended(self, partition: int, end: int) -> int | None:
        """Return where to read on after no record was found up to the end of the partition; None is to wait there.

        Records of transactions may be behind a batch, which the client never returns.
        """
        sought = self._sought.get(partition)
        if sought is None or end < sought.position or sought.position == sought.start:
            return None
        return self._is_behind(sought)

    def passed(self, partition: int) -> UnreadableRecords | None:
        """Return the records of a batch whose end was found, once."""
        sought = self._sought.get(partition)
        if sought is None or not sought.position == sought.behind == sought.inside + 1:
            return None
        del self._sought[partition]
        return UnreadableRecords(partition, sought.start, sought.inside)

    def _is_behind(self, sought: _EndSought) -> int | None:
        sought.behind = sought.position
        return None if sought.behind == sought.inside + 1 else self._next(sought)

    def _next(self, sought: _EndSought) -> int:
        sought.position = min(sought.inside + sought.step, (sought.inside + sought.behind + 1) // 2)
        sought.step *= 2
        return sought.position
