"""The recipe of docs/history.md for Spark, on this machine: with workers that are killed, and their memory."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

from campaigns import history

GIANT: Final = "ffffffff" * 4
MOST_MIB: Final = 500
"""Of a worker, with a trace of any size."""
LOOKED_EVERY_S: Final = 0.05
KILLED_EVERY_S: Final = 2.0


class Workers:
    """The processes that Spark starts for Python, with the most memory that one has taken; some are killed."""

    def __init__(self, kills: int = 0) -> None:
        self.killed = 0
        self.most_mib = 0
        self._kills: Final = kills

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look at them in a thread for the time of a block."""
        ended = threading.Event()
        watching = threading.Thread(target=self._watch, args=(ended,))
        watching.start()
        try:
            yield
        finally:
            ended.set()
            watching.join()

    def _watch(self, ended: threading.Event) -> None:
        killed_at = time.monotonic()
        while not ended.wait(LOOKED_EVERY_S):
            workers = dict(_workers())
            self.most_mib = max(self.most_mib, *workers.values(), 0)
            if self.killed < self._kills and workers and time.monotonic() - killed_at > KILLED_EVERY_S:
                killed_at = time.monotonic()
                self.killed += 1
                os.kill(next(iter(workers)), signal.SIGKILL)


def _workers() -> Iterator[tuple[int, int]]:
    """Yield the workers among the descendants of this process, each with its memory in MiB."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    daemons = {pid for pid, parent in parents.items() if _is_daemon(pid) and _is_daemon(parent) is False}
    for pid, parent in parents.items():
        if parent in daemons and _descends(pid, os.getpid(), parents):
            yield pid, _mib(pid)


def _is_daemon(pid: int) -> bool:
    try:
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _descends(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor


def _mib(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    except OSError:
        return 0


def in_spark(folder: Path, copies: int, kills: int, giant: int) -> Iterator[tuple[str, list[str]]]:
    """Yield what was done, and what was wrong with it."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    os.chdir(folder)
    wanted = history.expected(folder)
    spark = (
        SparkSession.builder.master("local[2,20]")  # a task may be tried so often
        .config("spark.sql.legacy.parquet.nanosAsLong", "true")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield from _scored(folder, copies, kills, giant, wanted)
        yield "the definition and the merge of the page", _check_delta(spark)
    finally:
        spark.stop()


def _scored(folder: Path, copies: int, kills: int, giant: int, wanted: Any) -> Iterator[tuple[str, list[str]]]:
    total = history.write_scattered(folder / "spans", copies)
    workers = Workers(kills)
    found = _by_recipe(folder, workers)
    told = history.differences(found, wanted, copies)
    if workers.killed < kills:
        told.append(f"{workers.killed} workers killed in place of {kills}")
    yield f"{total:,} spans, {workers.killed} workers killed", told

    few = Workers()
    (folder / "spans").rename(folder / "many")
    history.write_scattered(folder / "spans", max(1, copies // 4))
    _by_recipe(folder, few)
    (folder / "spans").rename(folder / "few")
    (folder / "many").rename(folder / "spans")
    many = Workers()
    _by_recipe(folder, many)
    told = [] if many.most_mib < 1.25 * few.most_mib else ["it grows"]
    yield f"a worker takes {few.most_mib} MiB for a quarter of the traces, {many.most_mib} MiB for all", told

    _write_giant(folder / "spans" / "giant.parquet", giant)
    one = Workers()
    found = _by_recipe(folder, one)
    own = [row for row in found if row["trace_id"] == GIANT]
    told = history.differences([row for row in found if row["trace_id"] != GIANT], wanted, copies)
    if {"span_limit"} != {row["close_reason"] for row in own}:
        told.append(f"the large trace has {len(own)} results")
    if one.most_mib > MOST_MIB:
        told.append(f"more than {MOST_MIB} MiB")
    yield f"with a trace of {giant:,} spans a worker takes {one.most_mib} MiB", told


def _by_recipe(folder: Path, workers: Workers) -> list[dict[str, Any]]:
    """Run the recipe of the page with few partitions, and return the results."""
    recipe = history.block("python", "pyspark").replace("repartition(200,", "repartition(4,")
    recipe = recipe.replace('"spanscore.yaml"', repr(str(folder / "spanscore.yaml")))
    recipe = recipe.replace('mode("append")', 'mode("overwrite")')
    with workers.watched():
        exec(recipe, {"__name__": "__main__"})
    return parquet.read_table(folder / "results").to_pylist()


def _write_giant(path: Path, spans: int) -> None:
    """Write a trace of so many spans: a root, and calls of a tool."""
    table, _ = history.recorded_spans()
    tool = table.filter(pa.compute.equal(table["SpanName"], "execute_tool get_weather")).slice(0, 1)
    with parquet.ParquetWriter(path, table.schema) as writer:
        for first in range(0, spans, 10_000):
            count = min(10_000, spans - first)
            part = tool.take([0] * count)
            ids = pa.array([f"{number + 1:016x}" for number in range(first, first + count)])
            for name, values in (("TraceId", pa.array([GIANT] * count)), ("SpanId", ids)):
                part = part.set_column(part.column_names.index(name), name, values)
            writer.write_table(part)


def _check_delta(spark: SparkSession) -> list[str]:
    """Have Spark parse the statements for Delta, which is not installed here."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    for statement in (history.block("sql", "USING delta"), history.block("sql", "MERGE INTO")):
        parser.parsePlan(statement)
    return []
