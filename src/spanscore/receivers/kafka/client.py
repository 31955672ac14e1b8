"""A member of a consumer group."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from spanscore.receivers.kafka.kafka_records import Changes, Commit, KafkaRecord, Progress
from spanscore.receivers.kafka.librdkafka import library, made
from spanscore.receivers.kafka.settings import KafkaReceiver
from spanscore.receivers.kafka.unreadable import UnreadableBatches

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, TopicPartition

_BUFFER_KIB: Final = 32 * 1024
_LOOK_S: Final = 2.0
_ASK_S: Final = 10.0
_TEXT_TOO_LARGE: Final = "OFFSET_METADATA_TOO_LARGE"
_UNREADABLE: Final = frozenset({"_BAD_COMPRESSION", "_BAD_MSG"})
"""Errors of a batch of records that the library reads again and again."""
_END: Final = "_PARTITION_EOF"
"""The client is at the end of a partition."""
_ABOUT_CONNECTIONS: Final = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT"})

_log = logging.getLogger(__name__)


class GroupMember:
    """Reads a topic together with the other members of its group. Belongs to one thread.

    Raises:
        ConfigError: the library is missing, or refuses the settings.
    """

    def __init__(self, settings: KafkaReceiver, changes: Changes) -> None:
        self.commit_failures: Final[Counter[str]] = Counter()
        """By the name of the error."""
        self.removed = 0
        """Records that the topic removed before they were read."""
        self.unreadable = 0
        """Records of batches that cannot be read."""
        self._batches: Final = UnreadableBatches()
        self._next: Final[dict[int, int]] = {}
        """By partition, the offset after the last record read."""
        self._settings: Final = settings
        self._library: Final = library()
        self.is_alarmed = False
        """Whether the library has reported an error since the last call of `trouble`."""
        self._refused = ""
        self._told: Final[set[str]] = set()
        self._paused = False
        self._text_fits = True
        self._consumer = made(
            self._library.Consumer,
            {"queued.max.messages.kbytes": str(_BUFFER_KIB), "check.crcs": "true", **settings.client},
            {
                "bootstrap.servers": ",".join(settings.brokers),
                "group.id": settings.group_id,
                "partition.assignment.strategy": "cooperative-sticky",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "error_cb": self._hear,
                "on_commit": self._committed,
            },
        )
        self._consumer.subscribe(
            [settings.topic],
            on_assign=lambda _, found: changes.assigned(_numbers(found)),
            on_revoke=lambda _, found: changes.revoked(_numbers(found)),
            on_lost=lambda _, found: changes.lost(_numbers(found)),
        )

    def read(self, most: int, timeout_s: float) -> list[KafkaRecord]:
        """Return records, as many as there are within that time.

        Batches that cannot be read are passed over; a record stands for one behind which there is none. So does one for
        the records before the end that the library does not return, as those that end transactions.
        """
        records: list[KafkaRecord] = []
        moved: set[int | None] = set()
        ends: dict[int, int] = {}
        try:
            messages = self._consumer.consume(most, timeout_s)
        except self._library.KafkaException as error:
            self._hear(error.args[0])
            return records
        for message in messages:
            wrong, partition = message.error(), message.partition()
            if partition in moved:
                continue
            if wrong is None:
                record = self._record(message, ends)
                onward = self._batches.read(record.partition, record.offset)
                if onward is None:
                    records.append(record)
            elif wrong.name() == _END:
                onward = self._ended(message)
            else:
                self._hear(wrong)
                onward = self._behind(message, wrong)
            if onward is not None and partition is not None:
                moved.add(partition)
                self._read_from(partition, onward)
            last = None if partition is None else self._note_passed(partition, wrong)
            if wrong is not None and wrong.name() == _END:
                last = self._before_end(message, records, last)
            if partition is not None and last is not None and wrong is not None:  # else the record behind is enough
                records.append(KafkaRecord(partition, last, None, None, is_passed=True))
        self._note_removed(records)
        return records

    def pause(self) -> None:
        """Have `read` return nothing, so that it can be called all the same."""
        self._consumer.pause(self._consumer.assignment())
        self._paused = True

    def resume(self) -> None:
        """Read on."""
        if self._paused:
            self._consumer.resume(self._consumer.assignment())
            self._paused = False

    def texts(self, partitions: Sequence[int]) -> dict[int, str]:
        """Return the metadata committed with the offsets of partitions; empty if none, or if no broker answers."""
        texts = dict.fromkeys(partitions, "")
        for number in partitions:
            self._next.pop(number, None)
            self._batches.forget(number)
        with suppress(self._library.KafkaException):
            for found in self._consumer.committed([self._place(each) for each in partitions], timeout=_ASK_S):
                if found.error is None and found.offset >= 0:
                    self._next[found.partition] = found.offset
                if found.error is None and found.metadata:
                    texts[found.partition] = found.metadata
        return texts

    def commit(self, commits: Mapping[int, Commit], *, wait: bool = False) -> None:
        """Commit, and count failures: after one, other members read from an earlier offset."""
        places = [self._place(number, *commit) for number, commit in commits.items()]
        if not places:
            return
        try:
            found = self._consumer.commit(offsets=places, asynchronous=not wait)
        except self._library.KafkaException as error:
            self._not_committed(error.args[0])
        else:
            self._committed(None, found or [])

    def progress(self) -> dict[int, Progress]:
        """Return the position and the end of each partition; an unknown offset is less than 0."""
        with suppress(self._library.KafkaException):
            return {
                place.partition: Progress(place.offset, self._consumer.get_watermark_offsets(place, cached=True)[1])
                for place in self._consumer.position(self._consumer.assignment())
            }
        return {}

    def trouble(self) -> str:
        """Ask a broker for the topic, and return the problem; empty if there is none."""
        self.is_alarmed = False
        topic = self._settings.topic
        try:
            found = self._consumer.list_topics(topic, timeout=_LOOK_S).topics[topic].error
        except self._library.KafkaException as error:
            return f"no broker can be reached ({self._refused or error.args[0].str()})"
        refused, self._refused = self._refused, ""
        if found is not None:
            return f"topic {topic!r}: {found.str()}"
        if not refused:
            self._told.clear()
        return refused

    def close(self) -> None:
        """Leave the group."""
        with suppress(self._library.KafkaException, RuntimeError):
            self._consumer.close()

    def _place(self, partition: int, offset: int | None = None, text: str = "") -> TopicPartition:
        place: Callable[..., TopicPartition] = self._library.TopicPartition
        topic = self._settings.topic
        if offset is None:
            return place(topic, partition)
        return place(topic, partition, offset, text) if text and self._text_fits else place(topic, partition, offset)

    def _record(self, message: Message[bytes, bytes], ends: dict[int, int]) -> KafkaRecord:
        """Return a record; `ends` are those of partitions that were asked for."""
        partition, offset = message.partition(), message.offset()
        assert partition is not None  # noqa: S101 - records that were read have one
        assert offset is not None  # noqa: S101 - as above
        if partition not in ends:
            ends[partition] = 0
            with suppress(self._library.KafkaException):  # the partition was revoked
                _, ends[partition] = self._consumer.get_watermark_offsets(self._place(partition), cached=True)
        kind, written_ms = message.timestamp()
        written_at = None if kind == self._library.TIMESTAMP_NOT_AVAILABLE else written_ms / 1e3
        return KafkaRecord(
            partition, offset, message.key(), message.value(), written_at=written_at, end=ends[partition]
        )

    def _behind(self, message: Message[bytes, bytes], wrong: KafkaError) -> int | None:
        """Return where to read on if a batch cannot be read, and None if it is to be read again."""
        partition, first = message.partition(), message.offset()
        if wrong.name() not in _UNREADABLE or partition is None or first is None or first < 0:
            return None
        try:
            _, end = self._consumer.get_watermark_offsets(self._place(partition), timeout=_LOOK_S)
        except self._library.KafkaException:
            return None
        return self._batches.failed(partition, first, end, self._next.get(partition, first))

    def _ended(self, message: Message[bytes, bytes]) -> int | None:
        """Return where to read on after the end of a partition, and None if there is nothing to read before it."""
        partition, end = message.partition(), message.offset()
        return None if partition is None or end is None else self._batches.ended(partition, end)

    def _before_end(
        self, message: Message[bytes, bytes], records: Sequence[KafkaRecord], passed: int | None
    ) -> int | None:
        """Return the last offset before the end of a partition if its record was not read; else None."""
        partition, end = message.partition(), message.offset()
        if partition is None or end is None or partition in self._batches:
            return None
        read = (record.offset + 1 for record in reversed(records) if record.partition == partition)
        return end - 1 if passed is not None or next(read, self._next.get(partition, end)) < end else None

    def _read_from(self, partition: int, offset: int) -> None:
        with suppress(self._library.KafkaException):  # the partition was revoked
            self._consumer.seek(self._place(partition, offset))

    def _note_passed(self, partition: int, wrong: KafkaError | None) -> int | None:
        """Count the records that are passed over, if any, and return the offset of the last."""
        passed = self._batches.passed(partition)
        if passed is None:
            return None
        self.unreadable += passed.last + 1 - passed.first
        _log.error(
            "kafka: records %d to %d of partition %d of topic %r cannot be read and are lost%s",
            passed.first,
            passed.last,
            partition,
            self._settings.topic,
            "" if wrong is None or wrong.name() == _END else f" ({wrong.str()})",
        )
        return passed.last

    def _note_removed(self, records: Iterable[KafkaRecord]) -> None:
        """Count the records before these that the topic no longer has: its retention was shorter than the lag.

        Transactions and compaction leave gaps between offsets, too: there the topic has earlier records.
        """
        gaps: dict[int, tuple[int, int]] = {}
        for record in records:
            due = self._next.get(record.partition, record.offset)
            self._next[record.partition] = record.offset + 1
            if (reached := record.offset + record.is_passed) > due:
                gaps.setdefault(record.partition, (due, reached))
        for partition, (due, offset) in gaps.items():
            with suppress(self._library.KafkaException):
                first, _ = self._consumer.get_watermark_offsets(self._place(partition), timeout=_LOOK_S)
                removed = max(0, min(first, offset) - due)
                if removed and not self.removed:
                    _log.warning(
                        "kafka: partition %d has lost %d records before they were read, as its retention is shorter"
                        " than the lag; further ones are only counted",
                        partition,
                        removed,
                    )
                self.removed += removed

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for each in (error, *(place.error for place in partitions)):
            if each is not None:
                self._not_committed(each)

    def _not_committed(self, error: KafkaError) -> None:
        """Count an error. A group that changes causes some that mean nothing: the next commit does it."""
        self.commit_failures[error.name()] += 1
        if error.name() == _TEXT_TOO_LARGE:
            self._text_fits = False

    def _hear(self, error: KafkaError) -> None:
        """Log an error, the first of its kind since all was well. Whether connections are lost is for `trouble`."""
        name = error.name()
        self.is_alarmed = True
        if name not in _ABOUT_CONNECTIONS:
            self._refused = error.str()
        if name not in self._told:
            self._told.add(name)
            _log.warning("kafka: %s", error.str())


def _numbers(places: Iterable[TopicPartition]) -> tuple[int, ...]:
    return tuple(place.partition for place in places)
