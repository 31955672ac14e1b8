"""Recorded requests written to a Kafka topic as the Collector writes them, one record for each trace."""

from __future__ import annotations

import sys
from binascii import hexlify
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from spanscore.kafka.client import producer
from spanscore.model import Span
from spanscore.otlp.forwardable import accepted_only
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.wording.plural import plural

_DELIVERED_WITHIN_MS: Final = "30000"


class KafkaReplay:
    """Writes the spans of a request as one record for each of its traces, and counts.

    The key of a record is its trace id in hexadecimal, so that all spans of a trace go to one partition: the one to
    which the Collector sends them too, with `partition_traces_by_id`.

    Args:
        brokers: where to write, each host:port.
        topic: the topic.
        settings: settings of librdkafka.

    Raises:
        ConfigError: the Kafka library is missing, or refuses the settings.
    """

    def __init__(self, brokers: Sequence[str], topic: str, settings: dict[str, str]) -> None:
        self.sent = 0
        """Spans that brokers have."""
        self.refused = 0
        """Spans that they do not have."""
        self._topic: Final = topic
        self._records = 0
        self._told = False
        settings = {"message.timeout.ms": _DELIVERED_WITHIN_MS, **settings}
        self._producer: Final = producer(brokers, settings, "--setting")

    def __str__(self) -> str:
        refused = f", {self.refused} not written" if self.refused else ""
        return f"sent {plural(self.sent, 'span')} in {plural(self._records, 'record')}{refused}"

    def send(self, recorded: Iterable[tuple[bytes, int]]) -> None:
        """Write all, and return when brokers have it or it is given up."""
        for body, _ in recorded:
            traces = defaultdict[bytes, list[Span]](list)
            for span in decode_protobuf(body).spans:
                traces[span.trace_id].append(span)
            for trace_id, spans in traces.items():
                self._write(hexlify(trace_id), accepted_only(body, spans), len(spans))
        self._producer.flush()

    def _write(self, key: bytes, value: bytes, spans: int) -> None:
        def delivered(error: Any, _message: Any) -> None:
            if error is None:
                self.sent += spans
                self._records += 1
                return
            self.refused += spans
            if not self._told:
                self._told = True
                print(f"a record could not be written: {error.str()}", file=sys.stderr)

        while True:
            try:
                self._producer.produce(self._topic, value, key, on_delivery=delivered)
            except BufferError:
                self._producer.poll(1.0)
            else:
                self._producer.poll(0)
                return
