"""The settings of the Kafka receiver: brokers, topic and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from annotated_types import MinLen

from spanscore.contracts.settings import Example, SecretText, Text

_OURS: Final = {
    "bootstrap.servers": "write 'brokers'",
    "metadata.broker.list": "write 'brokers'",
    "group.id": "write 'group_id'",
    "auto.offset.reset": "reading begins with the oldest record",
    "enable.auto.commit": "offsets are held until traces are scored",
    "enable.auto.offset.store": "offsets are held until traces are scored",
    "partition.assignment.strategy": "it is always cooperative-sticky",
    "group.protocol": "it is always classic",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaReceiver:
    """Reads OTLP from Kafka, as the Collector's Kafka exporter writes it."""

    brokers: Annotated[tuple[Text, ...], MinLen(1)] = ("localhost:9092",)
    """Brokers to start from, host:port."""
    topic: Text = "otlp_spans"
    """The topic, partitioned by trace id. It may contain logs, too."""
    encoding: Literal["otlp_proto", "otlp_json"] = "otlp_proto"
    """The encoding of a record."""
    group_id: Text = "spanscore"
    """The consumer group; its members share the partitions."""
    dead_letter_topic: Annotated[Text | None, Example("otlp_spans_unusable")] = None
    """The topic for records that cannot be used; without it they are only counted."""
    settings: Annotated[
        Mapping[Text, SecretText],
        Example({"security.protocol": "SASL_SSL", "sasl.password": "${env:KAFKA_PASSWORD:-}"}),
    ] = field(default_factory=dict)
    """Settings of librdkafka, as text, such as TLS, SASL or session.timeout.ms. Never shown."""

    def __post_init__(self) -> None:
        for name in self.settings:
            if name in _OURS:
                message = f"settings: must not hold {name!r}: {_OURS[name]}"
                raise ValueError(message)

    @property
    def client(self) -> Mapping[str, str]:
        """The settings of librdkafka in clear."""
        return {name: secret.reveal() for name, secret in self.settings.items()}
