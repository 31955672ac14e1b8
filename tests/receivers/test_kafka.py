"""The Kafka receiver with an owner that takes records when it likes to, and librdkafka's own cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from serving import LoopThread, eventually, loop_thread

pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")

from confluent_kafka import Consumer, TopicPartition

from receivers.kafka_cluster import PARTITIONS, TOPIC, Cluster, cluster
from spanscore.receivers.kafka import Kafka, TakenRecords
from spanscore.receivers.kafka.kafka_records import Commit, KafkaRecord
from spanscore.receivers.kafka.settings import KafkaReceiver


class Slow:
    """An owner that takes few records at a time, and none at all at first."""

    def __init__(self) -> None:
        self.taken: list[KafkaRecord] = []
        self.refusals = 0
        self.is_open = False
        self.events: list[tuple[str, tuple[int, ...]]] = []

    async def take(self, records: Sequence[KafkaRecord]) -> TakenRecords:
        """Take three."""
        if not self.is_open:
            self.refusals += 1
            return TakenRecords(0)
        self.taken += records[:3]
        return TakenRecords(len(records[:3]))

    def assigned(self, texts: Mapping[int, str]) -> None:
        """Note it."""
        self.events.append(("assigned", tuple(texts)))

    def give_up(self, partitions: Sequence[int]) -> None:
        """Note it."""
        self.events.append(("given up", tuple(partitions)))

    def forget(self, partitions: Sequence[int]) -> None:
        """Note it."""
        self.events.append(("forgotten", tuple(partitions)))

    def committable(self) -> Mapping[int, Commit]:
        """Hold nothing back."""
        return {record.partition: Commit(record.offset + 1, "told on") for record in self.taken}


@pytest.fixture
def brokers() -> Iterator[Cluster]:
    """A cluster with records in every partition."""
    with cluster() as running:
        for number in range(40):
            running.send(str(number).encode(), b"key", number % PARTITIONS)
        running.wait()
        yield running


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    """An event loop."""
    with loop_thread() as running:
        yield running


def test_records_wait_until_they_are_taken(brokers: Cluster, thread: LoopThread) -> None:
    """While the owner takes none, nothing is lost and the group is kept; then it gets each record once, in order."""
    owner = Slow()
    settings = KafkaReceiver(brokers=tuple(brokers.brokers), topic=TOPIC, group_id="slow")
    kafka = thread.call(lambda: Kafka(settings, owner))
    thread.call(kafka.start)
    eventually(lambda: owner.refusals > 3)
    assert ("ok", [], {}) == (kafka.state, owner.taken, brokers.committed("slow"))

    owner.is_open = True
    eventually(lambda: len(owner.taken) >= 40)
    brokers.send(b"40", b"key", 0)
    brokers.wait()
    eventually(lambda: len(owner.taken) == 41)
    thread.run(kafka.rest())
    thread.run(kafka.stop(5))

    for partition in range(PARTITIONS):
        expected = [str(number).encode() for number in range(41) if number % PARTITIONS == partition]
        assert expected == [record.value for record in owner.taken if record.partition == partition]
    assert {0: 11, 1: 10, 2: 10, 3: 10} == brokers.committed("slow")
    assert {10, 11} == {record.end for record in owner.taken}
    assert None not in {record.written_at for record in owner.taken}
    everything = tuple(range(PARTITIONS))
    assert [("assigned", everything), *((what, everything) for what in ("given up", "given up", "forgotten"))] == [
        (what, tuple(sorted(partitions))) for what, partitions in owner.events
    ]


def test_records_that_the_topic_removed_before_they_were_read_are_counted(
    brokers: Cluster, thread: LoopThread, caplog: pytest.LogCaptureFixture
) -> None:
    """A partition of this cluster keeps 5 MB, and a member that is further behind never gets the rest."""
    committed = Consumer({"bootstrap.servers": ",".join(brokers.brokers), "group.id": "behind"})
    committed.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    for _ in range(60):
        brokers.send(bytes(100_000), b"key", 0)
    brokers.wait()
    first, _ = committed.get_watermark_offsets(TopicPartition(TOPIC, 0))
    committed.close()
    owner = Slow()
    owner.is_open = True
    settings = KafkaReceiver(brokers=tuple(brokers.brokers), topic=TOPIC, group_id="behind")
    kafka = thread.call(lambda: Kafka(settings, owner))
    thread.call(kafka.start)
    eventually(lambda: any(record.offset == 69 for record in owner.taken))
    thread.run(kafka.stop(5))

    assert first > 10
    assert first == min(record.offset for record in owner.taken if record.partition == 0)
    assert first - 1 == kafka.counts.removed
    assert f"partition 0 has lost {first - 1} records before they were read" in caplog.text


def test_records_that_end_transactions_are_passed_over(brokers: Cluster, thread: LoopThread) -> None:
    """The library returns none of them: a record stands for those at the end, so that nobody waits for them."""
    owner = Slow()
    owner.is_open = True
    settings = KafkaReceiver(brokers=tuple(brokers.brokers), topic="transactions", group_id="transactions")
    brokers.send(b"1", b"key", 0, "transactions")
    brokers.wait()
    brokers.send_commit("transactions")
    brokers.send_commit("transactions")
    kafka = thread.call(lambda: Kafka(settings, owner))
    thread.call(kafka.start)
    eventually(lambda: len(owner.taken) == 2)
    brokers.send(b"2", b"key", 0, "transactions")
    brokers.wait()
    eventually(lambda: len(owner.taken) == 3)
    thread.run(kafka.stop(5))

    assert [(0, False), (2, True), (3, False)] == [(each.offset, each.is_passed) for each in owner.taken]
    assert (2, 0) == (kafka.counts.records, kafka.counts.removed)
