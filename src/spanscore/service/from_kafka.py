"""The Kafka receiver of a configuration, between the engine and our own metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from spanscore.instruments.own import (
    KAFKA_COMMIT_FAILURES,
    KAFKA_LAG,
    KAFKA_MISROUTED,
    KAFKA_PARTITIONS,
    KAFKA_POISON,
    KAFKA_RECORDS,
    KAFKA_UNCOMMITTED,
)
from spanscore.intake.intake import Behind, Intake
from spanscore.kafka.settings import KafkaReceiver
from spanscore.metrics.telemetry import Telemetry
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.kafka import Kafka
from spanscore.service.kafka_partitions import KafkaPartitions
from spanscore.service.live_engine import LiveEngine

_ENCODINGS: Final = {"otlp_proto": Encoding.PROTOBUF, "otlp_json": Encoding.JSON}


def kafka_receiver(
    settings: KafkaReceiver, live: LiveEngine, intake: Callable[[Behind], Intake], telemetry: Telemetry
) -> Kafka:
    """Return what reads a topic, and counts.

    To be called in the event loop that serves.

    Args:
        settings: which records to read.
        live: what spans go to.
        intake: makes what decodes records and hands on their spans.
        telemetry: shows what became of the records.

    Raises:
        ConfigError: the Kafka library is missing, or refuses the settings.
    """
    partitions = KafkaPartitions(live, intake, _ENCODINGS[settings.encoding])
    kafka = Kafka(settings, partitions)
    counts, wrong_keys = kafka.counts, partitions.wrong_keys
    telemetry.observe(KAFKA_RECORDS, lambda: {(): counts.records})
    telemetry.observe(KAFKA_POISON, lambda: {(reason,): number for reason, number in dict(counts.poison).items()})
    telemetry.observe(KAFKA_MISROUTED, lambda: {(reason,): number for reason, number in dict(wrong_keys).items()})
    telemetry.observe(KAFKA_PARTITIONS, lambda: {(): counts.partitions})
    telemetry.observe(KAFKA_LAG, lambda: {(): counts.lag})
    telemetry.observe(KAFKA_UNCOMMITTED, lambda: {(): counts.uncommitted})
    telemetry.observe(
        KAFKA_COMMIT_FAILURES, lambda: {(name,): number for name, number in counts.commit_failures.items()}
    )
    return kafka
