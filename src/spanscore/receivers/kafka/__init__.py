"""Reads OTLP from a Kafka topic, as the Collector's Kafka exporter writes it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple, Protocol, TypeVar

from spanscore.receivers.kafka.client import GroupMember
from spanscore.receivers.kafka.dead_letters import DeadLetters, producer
from spanscore.receivers.kafka.kafka_records import Changes, Commit, KafkaRecord, PoisonRecord
from spanscore.receivers.kafka.settings import KafkaReceiver

OK: Final = "ok"

_MOST_RECORDS: Final = 256
_READ_S: Final = 0.1
_COMMIT_EVERY_S: Final = 1.0
_LOOK_EVERY_S: Final = 5.0
_LOOK_AGAIN_S: Final = 1.0
_AFTER_A_FAULT_S: Final = 1.0
_REST_S: Final = 5.0

_CONNECTING: Final = "connecting"
_JOINING: Final = "joining the consumer group"
_SHUTTING_DOWN: Final = "shutting down"

_Result = TypeVar("_Result")

_log = logging.getLogger(__name__)


class TakenRecords(NamedTuple):
    """The outcome of offered records."""

    number: int
    """The number of records taken, from the first; the others must be offered again."""
    poison: Sequence[PoisonRecord] = ()
    """The taken records that cannot be used."""


class PartitionOwner(Protocol):
    """Takes records, and knows the offset up to which a partition is finished. Called in the event loop."""

    async def take(self, records: Sequence[KafkaRecord]) -> TakenRecords:
        """Take records, in their order, as many as there is room for. Their content never makes this raise."""

    def assigned(self, texts: Mapping[int, str]) -> None:
        """Begin with new partitions. `texts` are the metadata that earlier owners committed with their offsets."""

    def give_up(self, partitions: Sequence[int]) -> None:
        """Release the incomplete traces of partitions: another member will read them again."""

    def forget(self, partitions: Sequence[int]) -> None:
        """Forget partitions that another member owns now."""

    def committable(self) -> Mapping[int, Commit]:
        """Return up to where each partition is finished with."""


@dataclass(slots=True)
class KafkaCounts:
    """Counts of records. Plain numbers, read when metrics are collected."""

    records: int = 0
    poison: Counter[str] = field(default_factory=Counter)
    """Records that cannot be used, by reason."""
    not_put_aside: Mapping[str, int] = field(default_factory=dict)
    """Such records that could not be written to the dead-letter topic, by the name of the error."""
    partitions: int = 0
    """The number of partitions of this member."""
    lag: int = 0
    """Records in them that were not read yet."""
    uncommitted: int = 0
    """Records in them that were read, and would be read again by the next owner."""
    removed: int = 0
    """Records that the topic removed before they were read."""
    commit_failures: Mapping[str, int] = field(default_factory=dict)
    """By the name of the error."""


class Kafka:
    """A Kafka topic; needs confluent-kafka, of the extra `kafka`: pip install confluent-kafka.

    Reads as a member of a consumer group, and commits finished records.

    Its own thread polls Kafka, hands the records to the event loop, and reads more only after they are taken.
    Partitions are assigned and revoked on that thread, too. An offset is committed only when the owner allows it.
    Before another member takes a partition over, its open traces are released; that member reads them again.

    Raises:
        ConfigError: the Kafka library is missing, or refuses the settings.
    """

    Settings: ClassVar = KafkaReceiver

    def __init__(self, settings: KafkaReceiver, owner: PartitionOwner) -> None:
        self.counts: Final = KafkaCounts()
        self._owner: Final = owner
        self._loop: Final = asyncio.get_running_loop()
        aside, source = settings.dead_letter_topic, settings.topic
        self._dead_letters: Final = (
            None if aside is None else DeadLetters(producer(settings.brokers, settings.client), aside, source)
        )
        self._member: Final = GroupMember(settings, Changes(self._assigned, self._revoked, self._lost))
        self._backlog: list[KafkaRecord] = []
        self._committed: dict[int, Commit] = {}
        self._trouble = _CONNECTING
        self._has_joined = False
        self._commit_at = self._look_at = 0.0
        self._resting: Final = threading.Event()
        self._ending: Final = threading.Event()
        self._rested: Final[asyncio.Future[None]] = self._loop.create_future()
        self._ended: Final[asyncio.Future[None]] = self._loop.create_future()
        self._thread: Final = threading.Thread(target=self._run, name="spanscore-kafka", daemon=True)

    @property
    def state(self) -> str:
        """`ok`, or why nothing can be read."""
        if self._resting.is_set():
            return _SHUTTING_DOWN
        return self._trouble or (OK if self._has_joined else _JOINING)

    def start(self) -> None:
        """Join the group and read."""
        self._thread.start()

    async def rest(self) -> None:
        """Stop reading, and release incomplete traces. The partitions stay with this member until `stop`."""
        self._resting.set()
        if self._thread.ident is not None:
            await asyncio.wait([self._rested], timeout=_REST_S)
            self._owner.give_up(tuple(self._owner.committable()))

    async def stop(self, timeout_s: float) -> None:
        """Commit finished records, and leave the group."""
        self._resting.set()
        self._ending.set()
        if self._thread.ident is None:
            self._member.close()
            return
        done, _ = await asyncio.wait([self._ended], timeout=timeout_s)
        if not done:
            _log.warning("kafka: could not leave the group within %g s", timeout_s)

    def _assigned(self, partitions: Sequence[int]) -> None:
        self._has_joined = True
        if partitions:
            texts = self._member.texts(partitions)
            self._contained(lambda: self._in_loop(lambda: self._owner.assigned(texts)))
            _log.info("kafka: reading partitions %s", _listed(partitions))

    def _revoked(self, partitions: Sequence[int]) -> None:
        self._contained(lambda: self._hand_over(partitions, commit=True))

    def _lost(self, partitions: Sequence[int]) -> None:
        self._contained(lambda: self._hand_over(partitions, commit=False))

    def _hand_over(self, partitions: Sequence[int], *, commit: bool) -> None:
        """Release the open traces of partitions, and commit finished records."""
        if not partitions:
            return
        self._backlog = [record for record in self._backlog if record.partition not in partitions]

        def give_up() -> Mapping[int, Commit]:
            self._owner.give_up(partitions)
            commits = self._owner.committable()
            self._owner.forget(partitions)
            return commits

        commits = self._in_loop(give_up)
        if commit:
            wanted = {number: commits[number] for number in partitions if number in commits}
            self._member.commit(wanted, wait=True)
        for number in partitions:
            self._committed.pop(number, None)
        _log.info("kafka: handed partitions %s over", _listed(partitions))

    def _run(self) -> None:
        try:
            while not self._resting.is_set():
                self._contained(self._turn)
            self._loop.call_soon_threadsafe(self._rested.set_result, None)
            self._ending.wait()
            self._member.close()
            self._loop.call_soon_threadsafe(self._ended.set_result, None)
        except RuntimeError:  # the loop is closed: the process ends
            return

    def _turn(self) -> None:
        if self._backlog:
            self._member.pause()
        self._backlog += self._member.read(_MOST_RECORDS, _READ_S)
        self.counts.removed = self._member.removed
        if self._member.unreadable:
            self.counts.poison["unreadable"] = self._member.unreadable
        if self._resting.is_set():
            return
        if self._backlog:
            self._offer()
        now = time.monotonic()
        if now >= self._commit_at:
            self._commit_at = now + _COMMIT_EVERY_S
            self._commit()
        if now >= self._look_at or self._member.is_alarmed:
            self._trouble = self._member.trouble()
            self._look_at = now + (_LOOK_AGAIN_S if self._trouble else _LOOK_EVERY_S)

    def _offer(self) -> None:
        taken = asyncio.run_coroutine_threadsafe(self._owner.take(tuple(self._backlog)), self._loop).result()
        self.counts.records += sum(not record.is_passed for record in self._backlog[: taken.number])
        del self._backlog[: taken.number]
        if taken.poison:
            self._put_aside(taken.poison)
        if not self._backlog:
            self._member.resume()

    def _put_aside(self, poison: Sequence[PoisonRecord]) -> None:
        for record, reason in poison:
            self.counts.poison[reason] += 1
            if self.counts.poison[reason] == 1:
                _log.warning(
                    "kafka: record %d of partition %d cannot be used (%s); further ones are only counted",
                    record.offset,
                    record.partition,
                    reason,
                )
        if self._dead_letters is not None:
            self._dead_letters.put(poison)
            self.counts.not_put_aside = dict(self._dead_letters.failures)

    def _commit(self) -> None:
        if self._member.commit_failures != self.counts.commit_failures:
            self.counts.commit_failures = dict(self._member.commit_failures)
            self._committed.clear()
        commits = self._in_loop(self._owner.committable)
        self._member.commit({number: each for number, each in commits.items() if self._committed.get(number) != each})
        self._committed.update(commits)
        progress = self._member.progress()
        self.counts.partitions = len(progress)
        self.counts.lag = sum(max(0, end - position) for position, end in progress.values() if min(position, end) >= 0)
        self.counts.uncommitted = sum(
            max(0, progress[number].position - each.offset) for number, each in commits.items() if number in progress
        )

    def _in_loop(self, function: Callable[[], _Result]) -> _Result:
        """Call a function in the event loop, and return its result."""
        result: Future[_Result] = Future()
        self._loop.call_soon_threadsafe(_call, function, result)
        return result.result()

    def _contained(self, action: Callable[[], None]) -> None:
        """Run an action. An error in it is logged; it ends neither the thread nor the library's call."""
        try:
            action()
        except Exception:
            if self._loop.is_closed():
                raise
            _log.exception("kafka: an unexpected error; reading continues")
            self._resting.wait(_AFTER_A_FAULT_S)


def _call(function: Callable[[], _Result], result: Future[_Result]) -> None:
    try:
        result.set_result(function())
    except Exception as error:  # noqa: BLE001 - the waiting caller raises it
        result.set_exception(error)


def _listed(partitions: Sequence[int]) -> str:
    return ", ".join(map(str, sorted(partitions)))
