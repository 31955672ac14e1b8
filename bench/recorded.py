"""A second load: what real agent frameworks have sent, as recorded for the tests.

Where the bench load is all of one convention and lacks nothing, these are of forty instrumentations: arguments and
results have to be found in other spans, spans of one call joined, and models' messages read.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from spanscore.otlp.from_json import decode_json
from spanscore.otlp.from_protobuf import decode_protobuf, trace_ids
from spanscore.otlp.json_writing import accepting_only_from_json
from spanscore.otlp.slices import at_once

CORPUS: Final = Path(__file__).parents[1] / "tests" / "corpus"
_NUMBER_BYTES: Final = 4


def lines() -> Iterator[bytes]:
    """Yield the lines of all recordings, in OTLP/JSON."""
    for path in sorted(CORPUS.glob("*.jsonl.gz")):
        yield from gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def requests(most: int | None = None) -> list[bytes]:
    """Return the first recorded requests with spans as ExportTraceServiceRequests in protobuf, as they were sent."""
    with_spans = (line for line in lines() if b"resourceSpans" in line)
    return [at_once(accepting_only_from_json(line, decode_json(line).spans)).body for line in islice(with_spans, most)]


def span_count(bodies: Iterable[bytes]) -> int:
    """Return how many spans the requests have."""
    return sum(len(decode_protobuf(body).spans) for body in bodies)


def joined(bodies: Iterable[bytes], spans: int) -> Iterator[bytes]:
    """Yield the requests put together to such with at least so many spans, as a Collector's batches are."""
    batch, count = b"", 0
    for body in bodies:
        batch += body  # messages of protobuf one after the other are one message
        count += span_count([body])
        if count >= spans:
            yield batch
            batch, count = b"", 0
    if batch:
        yield batch


def renewed(bodies: Sequence[bytes], generation: int) -> list[bytes]:
    """Return the same traces under other ids."""
    return [_renewed(body, generation.to_bytes(_NUMBER_BYTES, "big")) for body in bodies]


def _renewed(body: bytes, number: bytes) -> bytes:
    for trace_id in trace_ids(body):
        end = bytes(a ^ b for a, b in zip(trace_id[-_NUMBER_BYTES:], number, strict=True))
        body = body.replace(trace_id, trace_id[:-_NUMBER_BYTES] + end)
    return body
