"""Recorded requests written to a Kafka topic as the Collector writes them, one record for each trace."""

from __future__ import annotations

import sys
from binascii import hexlify
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from spanscore.cli._replay import Outgoing, counted
from spanscore.kafka.client import producer
from spanscore.model import Span
from spanscore.otlp.forwardable import accepted_only
from spanscore.otlp.from_logs import own_trace_id
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.sending.client import Signal
from spanscore.wording.plural import plural

_DELIVERED_WITHIN_MS: Final = "30000"


class KafkaReplay:
    """Writes the spans, or the logs, of a request as one record for each of its traces, and counts.

    The key of a record is its trace id in hexadecimal, so that all of a trace go to one partition: the one to which the
    Collector sends them too, with `partition_traces_by_id` and `partition_logs_by_trace_id`. Logs without a trace id
    have no key.

    Args:
        brokers: where to write, each host:port.
        topic: the topic.
        settings: settings of librdkafka.

    Raises:
        ConfigError: the Kafka library is missing, or refuses the settings.
    """

    def __init__(self, brokers: Sequence[str], topic: str, settings: dict[str, str]) -> None:
        self.sent: Counter[Signal] = Counter()
        """Spans and log records that brokers have."""
        self.refused: Counter[Signal] = Counter()
        """Those that they do not have."""
        self._topic: Final = topic
        self._records = 0
        self._told = False
        settings = {"message.timeout.ms": _DELIVERED_WITHIN_MS, **settings}
        self._producer: Final = producer(brokers, settings, "--setting")

    def __str__(self) -> str:
        refused = f", {counted(self.refused)} not written" if self.refused else ""
        return f"sent {counted(self.sent)} in {plural(self._records, 'record')}{refused}"

    def send(self, recorded: Iterable[Outgoing]) -> None:
        """Write all, and return when brokers have it or it is given up."""
        for signal, body, _ in recorded:
            for trace_id, value, items in (_logs_by_trace if signal == "logs" else _spans_by_trace)(body):
                self._write(signal, hexlify(trace_id) or None, value, items)
        self._producer.flush()

    def _write(self, signal: Signal, key: bytes | None, value: bytes, items: int) -> None:
        def delivered(error: Any, _message: Any) -> None:
            if error is None:
                self.sent[signal] += items
                self._records += 1
                return
            self.refused[signal] += items
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


def _spans_by_trace(body: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield each trace id of a request, a request with its spans, and how many these are."""
    traces = defaultdict[bytes, list[Span]](list)
    for span in decode_protobuf(body).spans:
        traces[span.trace_id].append(span)
    for trace_id, spans in traces.items():
        yield trace_id, accepted_only(body, spans), len(spans)


def _logs_by_trace(body: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield each trace id of a request with logs, one with its records, and how many these are; the id may be empty."""
    traces = defaultdict[bytes, ExportLogsServiceRequest](ExportLogsServiceRequest)
    counts = Counter[bytes]()
    for outer in ExportLogsServiceRequest.FromString(body).resource_logs:
        for inner in outer.scope_logs:
            records = defaultdict[bytes, list[LogRecord]](list)
            for record in inner.log_records:
                records[own_trace_id(record)].append(record)
            for trace_id, of_trace in records.items():
                counts[trace_id] += len(of_trace)
                resource_logs = traces[trace_id].resource_logs.add(resource=outer.resource, schema_url=outer.schema_url)
                resource_logs.scope_logs.add(scope=inner.scope, schema_url=inner.schema_url, log_records=of_trace)
    for trace_id, request in traces.items():
        yield trace_id, request.SerializeToString(), counts[trace_id]
