"""Requests in memory, read as the requests of a recording are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from spanscore.otlp.from_logs import decode_logs
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.recordings.span_batches import SpanBatch
from spanscore.recordings.writer import ProtobufRequest


class RequestsInMemory:
    """A recording that is in memory.

    Args:
        requests: in the order in which they came.
        log_names: the prefixes of the names of log records that are read.
    """

    def __init__(self, requests: Sequence[ProtobufRequest], log_names: Sequence[str] = ()) -> None:
        self._requests: Final = requests
        self._log_names: Final = log_names

    def read(self) -> Iterator[SpanBatch]:
        """Yield the spans; all traces end with the last."""
        for signal, body in self._requests:
            if signal == "logs":
                decoded = decode_logs(body, self._log_names, max_records=None)
            else:
                decoded = decode_protobuf(body, max_spans=None)
            yield SpanBatch(list(decoded.spans), [], decoded.lost)
