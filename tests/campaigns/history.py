"""Has real engines score stored spans by the recipes of docs/history.md, and compares the results with those of OTLP.

    PYTHONPATH=src:tests:. python tests/campaigns/history.py                            both engines, 100,000 spans
    PYTHONPATH=src:tests:. python tests/campaigns/history.py --engine spark --copies 200 --kills 20 --giant 400000

The spans are the recordings of `tests/corpus` without logs and without ties, repeated as traces of their own.

- `clickhouse`: chdb, with the columns, order and partitions of the Collector's exporter. Spans are inserted twice,
  ClickHouse starts `score.sh` for each half of the traces, and does so twice. The other statements of the page run,
  too, and so does the pipe from a client.
- `spark`: on this machine. Worker processes are killed in the middle. Then there is a trace of very many spans, and the
  memory of workers is compared for few and for many traces.

It needs chdb, pyspark (scripts/setup history) and Java 17 or newer. The exit status is 1 if something differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from bench.stored_tables import recorded_tables
from pyarrow import parquet

from corpora import CORPUS, NAMES
from spanscore.cli import main as spanscore
from tables.test_stored_corpus import TIES

Results: TypeAlias = "dict[tuple[Any, ...], dict[str, Any]]"

PAGE: Final = (Path(__file__).parents[2] / "docs" / "history.md").read_text(encoding="utf-8")
YAML: Final = (
    "evaluators:\n  health: {type: tool_call_trajectory}\n"
    "  order: {type: tool_call_order, tool_calls_order: [get_weather, search_flights, book_hotel]}\n"
)
KEY: Final = ("trace_id", "span_id", "evaluator", "config")
OF_A_COPY: Final = {"trace_id", "evaluation_id"}
COPY_DIGITS: Final = 8
NEEDS: Final = {"clickhouse": "chdb", "spark": "pyspark"}


def block(language: str, *contains: str) -> str:
    """Return the only block of the page that is in this language and contains these texts."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    (found,) = [each for each in blocks if all(text in each for text in contains)]
    return str(found)


def missing(engine: str) -> str | None:
    """Return why an engine cannot be run here; None if it can."""
    if importlib.util.find_spec(NEEDS[engine]) is None:
        return f"{NEEDS[engine]} is not installed: scripts/setup history"
    if engine == "spark" and shutil.which("java") is None:
        return "Spark needs Java 17 or newer on the PATH"
    return None


@cache
def recorded_spans() -> tuple[pa.Table, tuple[str, ...]]:
    """Return the spans of the recordings without logs and ties, and the paths of these."""
    tables, paths = [], []
    for name in NAMES:
        spans, logs = recorded_tables(CORPUS / f"{name}.jsonl.gz")
        if name not in TIES and not logs.num_rows:
            tables.append(spans)
            paths.append(str(CORPUS / f"{name}.jsonl.gz"))
    return pa.concat_tables(tables).combine_chunks(), tuple(paths)


def copies(count: int) -> Iterator[pa.Table]:
    """Yield the spans, each time as other traces."""
    table, _ = recorded_spans()
    place = table.column_names.index("TraceId")
    for number in range(count):
        digits = f"{number * 2_654_435_761 % 2**32:0{COPY_DIGITS}x}"
        ends = pc.utf8_slice_codeunits(table["TraceId"], COPY_DIGITS)
        yield table.set_column(place, "TraceId", pc.binary_join_element_wise(digits, ends, ""))


def write_scattered(folder: Path, count: int, files: int = 8) -> int:
    """Write copies of the spans to files with a part of each trace in each; return the number of spans."""
    folder.mkdir()
    total = 0
    schema = recorded_spans()[0].schema
    writers = [parquet.ParquetWriter(folder / f"{number}.parquet", schema) for number in range(files)]
    for table in copies(count):
        shares = pa.array([row % files for row in range(table.num_rows)])
        for number, writer in enumerate(writers):
            writer.write_table(table.filter(pc.equal(shares, number)))
        total += table.num_rows
    for writer in writers:
        writer.close()
    return total


def expected(folder: Path) -> Results:
    """Return the results of `spanscore score` for the recordings, by their key without what differs in a copy."""
    out = folder / "expected.parquet"
    config = str(folder / "spanscore.yaml")
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        spanscore(["score", *recorded_spans()[1], "--config", config, "--results", str(out)])
    return {_key(row): _content(row) for row in parquet.read_table(out).to_pylist()}


def differences(found: Sequence[dict[str, Any]], wanted: Results, count: int) -> list[str]:
    """Return what is wrong with the results of so many copies."""
    told = []
    keys = {tuple(row[name] for name in KEY) for row in found}
    if len(keys) != len(found):
        told.append(f"{len(found) - len(keys)} keys come twice")
    if len(keys) != len(wanted) * count:
        told.append(f"{len(keys)} results in place of {len(wanted) * count}")
    if wrong := [row for row in found if wanted.get(_key(row)) != _content(row)]:
        told.append(f"{len(wrong)} results differ, such as {wrong[0]}")
    return told


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["trace_id"][COPY_DIGITS:], row["span_id"], row["evaluator"]


def _content(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in OF_A_COPY}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the engines, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=NEEDS, action="append", help="default: both")
    parser.add_argument("--copies", type=int, default=10, metavar="N", help="of the recordings (default: 10)")
    parser.add_argument("--kills", type=int, default=5, metavar="N", help="of Spark's workers (default: 5)")
    parser.add_argument("--giant", type=int, default=100_000, metavar="SPANS", help="of one trace (default: 100,000)")
    asked = parser.parse_args(arguments)
    failed = False
    for engine in asked.engine or NEEDS:
        if (why := missing(engine)) is not None:
            print(f"{engine}: not run: {why}")
            failed = True
            continue
        with tempfile.TemporaryDirectory(prefix="spanscore-history-") as directory:
            folder = Path(directory)
            (folder / "spanscore.yaml").write_text(YAML, encoding="utf-8")
            for what, problems in _ran(engine, folder, asked):
                print(f"{engine}: {what}: {'; '.join(problems) or 'as expected'}", flush=True)
                failed = failed or bool(problems)
    return int(failed)


def _ran(engine: str, folder: Path, asked: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    if engine == "clickhouse":
        from campaigns.history_clickhouse import in_clickhouse  # noqa: PLC0415 - chdb may not be installed

        return in_clickhouse(folder, asked.copies)
    from campaigns.history_spark import in_spark  # noqa: PLC0415 - pyspark may not be installed

    return in_spark(folder, asked.copies, asked.kills, asked.giant)


if __name__ == "__main__":
    sys.exit(main())
