"""A Kafka cluster for tests: librdkafka's own, in this process, for this and other processes. It keeps nothing."""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Message, Producer, TopicPartition, cimpl

from deadline import DEADLINE_S

TOPIC = "otlp_spans"
PARTITIONS = 4
_ZSTD = 4
_CONTROL = 0x30


def crc32c(content: bytes) -> int:
    """Return the checksum of a batch of records."""
    found = 0xFFFFFFFF
    for each in content:
        found ^= each
        for _ in range(8):
            found = (found >> 1) ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


class Cluster:
    """Brokers that run, and a producer that partitions as the Collector does."""

    def __init__(self, producer: Producer) -> None:
        """Learn where the brokers are."""
        self._producer = producer
        found = producer.list_topics(timeout=DEADLINE_S)
        self.brokers = [f"{broker.host}:{broker.port}" for broker in found.brokers.values()]
        producer.list_topics(TOPIC, timeout=DEADLINE_S)  # makes the topic

    def send(self, value: bytes | None, key: bytes | None = None, partition: int = -1, topic: str = TOPIC) -> None:
        """Write a record; by default to the partition that belongs to its key."""
        self._producer.produce(topic, value, key, partition)

    def send_broken(self, topic: str, records: int) -> None:
        """Write a batch to partition 0 whose compression is broken."""
        self._send_batch(topic, _ZSTD, records, b"not compressed")

    def send_commit(self, topic: str) -> None:
        """Write the record to partition 0 that ends a transaction, which no client returns."""
        key, value = struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0)
        record = bytes([0, 0, 0, 2 * len(key)]) + key + bytes([2 * len(value)]) + value + b"\0"
        self._send_batch(topic, _CONTROL, 1, bytes([2 * len(record)]) + record)

    def _send_batch(self, topic: str, attributes: int, records: int, content: bytes) -> None:
        """Write a batch to partition 0 by a request of our own."""
        found = self._producer.list_topics(topic, timeout=DEADLINE_S)
        leader = found.brokers[found.topics[topic].partitions[0].leader]
        body = struct.pack(">hiqqqhii", attributes, records - 1, 0, 0, -1, -1, -1, records) + content
        rest = struct.pack(">ibI", 0, 2, crc32c(body)) + body
        batch = struct.pack(">qi", 0, len(rest)) + rest
        to = struct.pack(">ih", 1, len(topic)) + topic.encode() + struct.pack(">iii", 1, 0, len(batch)) + batch
        request = struct.pack(">hhih", 0, 7, 1, -1) + struct.pack(">hhi", -1, -1, 5_000) + to
        with socket.create_connection((leader.host, leader.port), timeout=DEADLINE_S) as broker:
            broker.sendall(struct.pack(">i", len(request)) + request)
            assert broker.recv(4)

    def wait(self) -> None:
        """Return when all records are written."""
        assert 0 == self._producer.flush(DEADLINE_S)

    def committed(
        self, group: str, partitions: Iterable[int] = range(PARTITIONS), topic: str = TOPIC
    ) -> dict[int, int]:
        """Return the offsets that a group has committed, where there are any."""
        with self._consumer(group) as consumer:
            places = [TopicPartition(topic, number) for number in partitions]
            found = consumer.committed(places, timeout=DEADLINE_S)
            return {place.partition: place.offset for place in found if place.offset >= 0}

    def ends(self, topic: str = TOPIC) -> dict[int, int]:
        """Return the offset behind the last record of each partition that has any."""
        with self._consumer() as consumer:
            found = {
                number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=DEADLINE_S)[1]
                for number in range(PARTITIONS)
            }
            return {number: end for number, end in found.items() if end}

    def read(self, topic: str) -> list[Message[bytes, bytes]]:
        """Return all records of a topic."""
        ends = self.ends(topic)
        with self._consumer() as consumer:
            consumer.assign([TopicPartition(topic, number, 0) for number in ends])
            return consumer.consume(sum(ends.values()), DEADLINE_S)

    @contextmanager
    def _consumer(self, group: str = "tests") -> Iterator[Consumer]:
        consumer = Consumer({"bootstrap.servers": ",".join(self.brokers), "group.id": group})
        try:
            yield consumer
        finally:
            consumer.close()


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Run a cluster of three brokers."""
    with _mock_brokers(3) as bootstraps:
        producer = Producer({"bootstrap.servers": bootstraps, "partitioner": "fnv1a_random", "log_level": 0})
        try:
            yield Cluster(producer)
        finally:
            producer.purge()
            producer.flush(1)
            del producer


@contextmanager
def _mock_brokers(count: int) -> Iterator[str]:
    """Run brokers, and yield their addresses. A first member of a group waits for no others: by default it does, 3 s.

    By the C interface: the option `test.mock.num.brokers` has brokers that wait.
    """
    library = ctypes.CDLL(cimpl.__file__)
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    settings = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(settings, b"log_level", b"0", None, ctypes.c_size_t(0))
    owner = ctypes.c_void_p(library.rd_kafka_new(0, settings, None, ctypes.c_size_t(0)))
    brokers = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(owner, count))
    library.rd_kafka_mock_group_initial_rebalance_delay_ms(brokers, 0)
    try:
        yield library.rd_kafka_mock_cluster_bootstraps(brokers).decode()
    finally:
        library.rd_kafka_mock_cluster_destroy(brokers)
        library.rd_kafka_destroy(owner)
