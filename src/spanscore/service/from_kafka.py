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
from spanscore.intake.intake import Intake, Take
from spanscore.kafka.settings import KafkaReceiver
from spanscore.metrics.telemetry import Telemetry
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.kafka import Kafka
from spanscore.service.kafka_partitions import KafkaPartitions
from spanscore.service.live_engine import LiveEngine

_ENCODINGS: Final = {"otlp_proto": Encoding.PROTOBUF, "otlp_json": Encoding.JSON}


class FromKafka:
    """Reads the topic that a configuration names, and counts.

    Made in the event loop that serves.

    Args:
        settings: which records to read.
        live: what spans go to.
        intake: makes what decodes records and hands on their spans.
        telemetry: shows what became of the records.

    Raises:
        ConfigError: the Kafka library is missing, or refuses the settings.
    """

    def __init__(
        self, settings: KafkaReceiver, live: LiveEngine, intake: Callable[[Take], Intake], telemetry: Telemetry
    ) -> None:
        self._partitions: Final = KafkaPartitions(live, intake, _ENCODINGS[settings.encoding])
        self._kafka: Final = Kafka(settings, self._partitions)
        self._show(telemetry)

    @property
    def intake(self) -> Intake:
        """What decodes records."""
        return self._partitions.intake

    @property
    def state(self) -> str:
        """`ok`, or why nothing can be read."""
        return self._kafka.state

    def start(self) -> None:
        """Join the group and read."""
        self._partitions.watch()
        self._kafka.start()

    async def rest(self) -> None:
        """Read no more, and give up open traces: whoever reads their partitions next begins with them."""
        await self._kafka.rest()

    async def stop(self, timeout_s: float, *, all_sent: bool) -> None:
        """Commit what was scored and sent, and leave the group."""
        if not all_sent:
            self._partitions.keep_unsent()
        await self._kafka.stop(timeout_s)

    def _show(self, telemetry: Telemetry) -> None:
        counts, wrong_keys = self._kafka.counts, self._partitions.wrong_keys
        telemetry.observe(KAFKA_RECORDS, lambda: {(): counts.records})
        telemetry.observe(KAFKA_POISON, lambda: {(reason,): number for reason, number in dict(counts.poison).items()})
        telemetry.observe(KAFKA_MISROUTED, lambda: {(reason,): number for reason, number in dict(wrong_keys).items()})
        telemetry.observe(KAFKA_PARTITIONS, lambda: {(): counts.partitions})
        telemetry.observe(KAFKA_LAG, lambda: {(): counts.lag})
        telemetry.observe(KAFKA_UNCOMMITTED, lambda: {(): counts.uncommitted})
        telemetry.observe(
            KAFKA_COMMIT_FAILURES, lambda: {(name,): number for name, number in counts.commit_failures.items()}
        )
