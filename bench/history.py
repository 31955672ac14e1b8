"""The cost of scoring stored spans, beside the same spans in files of OTLP, and how long a history takes.

python -m bench.history --traces 1000    # measure, and print
python -m bench.history --write          # and put the tables into docs/scaling.md

The load is that of `bench/workload.py`. CPU time is that of this process with all its threads, interleaved, the median.
The rows of a history are computed from it, except for one of the size that was measured.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pyarrow import parquet

from bench import workload
from bench.measure import collect_rarely, interleaved, typical
from bench.stored_tables import span_table
from bench.table import machine
from spanscore import config, tables
from spanscore.config import parts as wiring
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.to_json import to_json
from spanscore.recordings.files import Recording
from spanscore.recordings.span_batches import SortedSpans
from spanscore.recordings.stored_rows import decoded_rows
from spanscore.runs import offline

PAGE: Final = Path(__file__).parents[1] / "docs" / "scaling.md"
BEGIN: Final = "<!-- history: written by `python -m bench.history --write` -->"
END: Final = "<!-- end of history -->"
ROUNDS: Final = 3
SIZES: Final = tuple(10**power for power in range(6, 11))
RATES: Final = tuple(10**power for power in range(3, 7))
KAFKA_SPANS_PER_S: Final = 18_000
"""Of one member, as docs/scaling.md has it from an earlier measurement."""
BUSY: Final = 0.7
PARTITIONS: Final = 4
SPAN_KB: Final = 2.3
MICROSECONDS_AN_HOUR: Final = 3_600 * 10**6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=1_000, metavar="N", help="of 20 spans (default: 1,000)")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scaling.md")
    given = parser.parse_args(arguments)
    collect_rarely()
    text = "\n".join(_report(given.traces))
    print(text)
    if given.write:
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return 0


def _report(traces: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="spanscore-bench-") as directory:
        cost, count = _measured(Path(directory), traces)
    convert, score, whole = cost["convert"], cost["score"], cost["parquet"]
    yield f"{machine()}, pyarrow {pa.__version__}, duckdb {duckdb.__version__}"
    yield ""
    yield f"| measured, {count:,} spans | µs of CPU a span |"
    yield "| --- | --- |"
    yield f"| rows into spans | {convert:.1f}, {convert / score:.0%} of scoring |"
    yield f"| scoring of these spans | {score:.1f} |"
    yield f"| a Parquet file, as `spanscore score` reads and scores it | {whole:.1f} |"
    yield f"| the same spans in OTLP/JSON Lines | {cost['json']:.1f} |"
    yield f"| the same spans in OTLP/protobuf | {cost['protobuf']:.1f} |"
    yield f"| DuckDB, which sorts them and hands them over | {cost['duckdb']:.1f} |"
    yield ""
    total = cost["batches"] + cost["duckdb"]
    yield "| spans | engine | core-hours | hours on 100 cores | |"
    yield "| --- | --- | --- | --- | --- |"
    for size in (count, *SIZES):
        hours = size * total / MICROSECONDS_AN_HOUR
        engine = "DuckDB" if size == count else "DuckDB, or another one that takes as much"
        how = "measured" if size == count else "computed"
        yield f"| {size:,} | {engine} | {_rounded(hours)} | {_rounded(hours / 100)} | {how} |"
    yield ""
    yield "| live, spans/s | members | cores busy | partitions | MB/s | |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for rate in RATES:
        members = -(-rate // int(KAFKA_SPANS_PER_S * BUSY))
        cores, size = rate / KAFKA_SPANS_PER_S, rate * SPAN_KB / 1_000
        yield f"| {rate:,} | {members} | {_rounded(cores)} | {members * PARTITIONS} | {_rounded(size)} | computed |"


def _measured(folder: Path, traces: int) -> tuple[dict[str, float], int]:
    """Return the CPU time of each way for a span, in microseconds, and the number of spans."""
    bodies = workload.requests(traces)
    spans = [span for body in bodies for span in decode_protobuf(body, max_spans=None).spans]
    table = span_table(spans)
    ordered = table.sort_by([("TraceId", "ascending"), ("Timestamp", "ascending"), ("SpanId", "ascending")])
    batches = ordered.combine_chunks().to_batches(8_192)
    files = {name: folder / f"spans.{name}" for name in ("parquet", "jsonl", "pb")}
    parquet.write_table(table, files["parquet"])
    files["pb"].write_bytes(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))
    lines = (to_json(ExportTraceServiceRequest.FromString(body)) for body in bodies)
    files["jsonl"].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    wanted = wiring.wanted(config.default())
    rows = partial(decoded_rows, batches, wanted.log_names, wanted.attributes)
    decoded = list(rows())
    query = f"SELECT * FROM '{files['parquet']}' ORDER BY TraceId, Timestamp, SpanId"  # noqa: S608 - our own file
    ways = {
        "convert": lambda: sum(len(each.spans) for each in rows()),
        "score": lambda: _score(SortedSpans({"spans": decoded})),
        "batches": lambda: sum(each.num_rows for each in tables.score(batches)),
        "parquet": lambda: _score(Recording([files["parquet"]])),
        "json": lambda: _score(Recording([files["jsonl"]])),
        "protobuf": lambda: _score(Recording([files["pb"]])),
        "duckdb": lambda: _rows_of(query),
    }
    samples = interleaved(ways, ROUNDS)
    return {name: typical(samples, name, len(spans)) for name in ways}, len(spans)


def _rounded(value: float) -> str:
    """Return a number with two digits that count, without an exponent."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}"  # noqa: PLR2004


def _rows_of(query: str) -> int:
    if (relation := duckdb.sql(query)) is None:
        raise ValueError(query)
    return sum(each.num_rows for each in relation.to_arrow_reader(8_192))


def _score(recording: Any) -> int:
    settings = config.default().for_files(tool_content=False)
    return sum(1 for _ in offline.score(recording, settings, wiring.pipeline(settings)))


if __name__ == "__main__":
    sys.exit(main())
