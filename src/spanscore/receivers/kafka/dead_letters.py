"""Records that cannot be used, written to a topic of their own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from spanscore.receivers.kafka.kafka_records import MAX_RECORD_SIZE, PoisonRecord
from spanscore.receivers.kafka.librdkafka import library, made

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_PARTITIONER: Final = "fnv1a_random"
"""The Collector's: partitions by the hash FNV-1a of the key."""
_WRITE_S: Final = 10.0

_log = logging.getLogger(__name__)


class DeadLetters:
    """Writes records to the dead-letter topic. Belongs to one thread.

    Args:
        producer: writes; of this object alone.
        topic: the dead-letter topic.
        source: the topic of the records.
    """

    def __init__(self, producer: Any, topic: str, source: str) -> None:
        self.failures: Final[Counter[str]] = Counter()
        """Records that could not be written, by the name of the error."""
        self._producer: Final = producer
        self._topic: Final = topic
        self._source: Final = source

    def put(self, poison: Sequence[PoisonRecord]) -> None:
        """Write records, and count those that could not be."""
        before = self.failures.total()

        def delivered(error: KafkaError | None, _message: Any) -> None:
            if error is not None:
                self.failures[error.name()] += 1

        for record, reason in poison:
            origin = {
                "spanscore.reason": reason,
                "spanscore.topic": self._source,
                "spanscore.partition": str(record.partition),
                "spanscore.offset": str(record.offset),
            }
            headers = [(name, value.encode()) for name, value in origin.items()]
            try:
                self._producer.produce(self._topic, record.value, record.key, headers=headers, on_delivery=delivered)
            except BufferError:
                self.failures["_QUEUE_FULL"] += 1
            except library().KafkaException as error:
                delivered(error.args[0], None)
        if self._producer.flush(_WRITE_S):  # they are given up, so that each record has one outcome
            self._producer.purge()
            self._producer.flush(_WRITE_S)
        if failed := self.failures.total() - before:
            _log.error("kafka: %d of %d records could not be written to the dead-letter topic", failed, len(poison))


def producer(brokers: Sequence[str], client: Mapping[str, str]) -> Any:
    """Return a producer that partitions as the Collector does.

    Args:
        brokers: where to write, each host:port.
        client: settings of the library.

    Raises:
        ConfigError: the library is missing, or refuses the settings.
    """
    settings = {
        "bootstrap.servers": ",".join(brokers),
        "partitioner": _PARTITIONER,
        "message.max.bytes": MAX_RECORD_SIZE,
        "enable.idempotence": True,
    }
    return made(library().Producer, client, settings)
