"""The recipes of docs/history.md for ClickHouse, in chdb."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from chdb import session

from campaigns import history
from spanscore.tables import RESULTS, score

TIME: Final = "DateTime64(9)"
NAME: Final = "LowCardinality(String)"
MAP: Final = "Map(LowCardinality(String), String)"
LIST_OF_LINKS: Final = "Nested(TraceId String, SpanId String, TraceState String, Attributes " + MAP + ")"
COLUMNS: Final = {
    "Timestamp": TIME,
    "TraceId": "String",
    "SpanId": "String",
    "ParentSpanId": "String",
    "TraceState": "String",
    "SpanName": NAME,
    "SpanKind": NAME,
    "ServiceName": NAME,
    "ResourceAttributes": MAP,
    "ScopeName": "String",
    "ScopeVersion": "String",
    "SpanAttributes": MAP,
    "Duration": "UInt64",
    "StatusCode": NAME,
    "StatusMessage": "String",
    "Events": f"Nested(Timestamp {TIME}, Name {NAME}, Attributes {MAP})",
    "Links": LIST_OF_LINKS,
}
"""The columns of `otel_traces`, with the types that the Collector's exporter gives them."""
ORDER: Final = "(ServiceName, SpanName, toDateTime(Timestamp), Timestamp)"
CLIENT: Final = """#!{python}
import sys
from chdb import session
sys.stdout.buffer.write(session.Session({database!r}).query(sys.argv[sys.argv.index("--query") + 1]).bytes())
"""
SCORE: Final = "spanscore score - --config /etc/spanscore/spanscore.yaml"


def in_clickhouse(folder: Path, copies: int) -> Iterator[tuple[str, list[str]]]:
    """Yield what was done, and what was wrong with it."""
    wanted = history.expected(folder)
    database = folder / "database"
    total = history.write_scattered(folder / "spans", copies)
    clickhouse = session.Session(str(database))
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    clickhouse.query(
        f"CREATE TABLE otel_traces ({columns}) ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY {ORDER}"
    )
    for _ in range(2):
        clickhouse.query(f"INSERT INTO otel_traces SELECT * FROM file('{folder}/spans/*.parquet', Parquet)")
    clickhouse.query(history.block("sql", "ReplacingMergeTree"))
    _write_script(database, folder)
    insert = history.block("sql", "executable(")
    halves = (insert, insert.replace("TraceId < '8'", "TraceId >= '8'"))
    for _ in range(2):
        for half in halves:
            clickhouse.query(half)
    found = _rows(clickhouse, f"SELECT {', '.join(RESULTS.names)} FROM spanscore_results FINAL")
    yield (
        f"{total:,} spans, inserted twice, scored twice by `executable`",
        history.differences(found, wanted, copies),
    )
    yield "the window, the traces of agents, the sample", _check_statements(clickhouse)
    yield "the months, the panel", _check_questions(clickhouse)
    yield "columns of the type JSON", _check_json(clickhouse, folder, wanted, copies)
    clickhouse.close()
    yield "the pipe from a client", _check_pipe(folder, database, wanted, copies)


def _write_script(database: Path, folder: Path) -> None:
    scripts = database / "user_scripts"
    scripts.mkdir(exist_ok=True)
    script = scripts / "score.sh"
    own = SCORE.replace("/etc/spanscore", str(folder)).replace(
        "spanscore score", f"{sys.executable} -m spanscore score"
    )
    script.write_text(history.block("text", "#!/bin/sh").replace(SCORE, own), encoding="utf-8")
    script.chmod(0o755)


def _rows(clickhouse: Any, query: str) -> list[dict[str, Any]]:
    stream = clickhouse.query(query, "ArrowStream").bytes()
    return pa.ipc.open_stream(stream).read_all().to_pylist() if stream else []


def _check_statements(clickhouse: Any) -> list[str]:
    """Each statement of the page that selects traces selects some; the window only whole ones, in order."""
    told = []
    times = clickhouse.query("SELECT toDate(min(Timestamp)) FROM otel_traces", "TabSeparated").data().strip()
    window = history.block("sql", "HAVING min(Timestamp)")
    clickhouse.query(window)
    for written, moved in (
        ("2026-10-31 20:00:00", f"toDateTime('{times} 00:00:00') - INTERVAL 4 HOUR"),
        ("2026-11-02 04:00:00", f"toDateTime('{times} 00:00:00') + INTERVAL 28 HOUR"),
        ("2026-11-01 00:00:00", f"toDateTime('{times} 00:00:00')"),
        ("2026-11-02 00:00:00", f"toDateTime('{times} 00:00:00') + INTERVAL 24 HOUR"),
    ):
        window = window.replace(f"'{written}'", moved)
    found = [row["TraceId"] for row in _rows(clickhouse, window)]
    if not found or sorted(found) != found:
        told.append(f"the window has {len(found)} spans, not in order")
    agents = _rows(clickhouse, history.block("sql", "THEN 1 ELSE 0"))
    everything = clickhouse.query("SELECT uniqExact(TraceId) FROM otel_traces", "TabSeparated").data()
    if not 0 < len(agents) < int(everything):
        told.append(f"{len(agents)} of {everything} traces are of agents")
    sample = _rows(clickhouse, history.block("sql", "right(TraceId").replace("= '00'", "< '80'"))
    if not sample or any(row["TraceId"][-2:] >= "80" for row in sample):
        told.append("the sample has no traces, or others")
    return told


def _check_questions(clickhouse: Any) -> list[str]:
    months = _rows(clickhouse, history.block("sql", "AS month"))
    panel = history.block("sql", "$__fromTime").replace("$__fromTime", "toDateTime(0)").replace("$__toTime", "now()")
    panel = panel.replace("now()", "toDateTime('2100-01-01 00:00:00')")
    points = _rows(clickhouse, panel)
    rates = [row["pass_rate"] for row in (*months, *points)]
    wrong = not months or not points or not all(0 <= rate <= 1 for rate in rates)
    return [f"{len(months)} months and {len(points)} points with rates {rates[:5]}"] if wrong else []


def _check_json(clickhouse: Any, folder: Path, wanted: Any, copies: int) -> list[str]:
    """With `json: true` the exporter has attributes in the type JSON, which takes keys with points for paths."""
    changed = [f"CAST({name}, 'JSON') AS {name}" for name in ("ResourceAttributes", "SpanAttributes")]
    changed.append("arrayMap(each -> CAST(each, 'JSON'), Events.Attributes) AS `Events.Attributes`")
    query = f"SELECT * REPLACE({', '.join(changed)}) FROM otel_traces ORDER BY TraceId, Timestamp, SpanId"
    stream = pa.ipc.open_stream(clickhouse.query(query, "ArrowStream").bytes())
    found = pa.Table.from_batches(score(stream, str(folder / "spanscore.yaml")), RESULTS)
    return history.differences(found.to_pylist(), wanted, copies)


def _check_pipe(folder: Path, database: Path, wanted: Any, copies: int) -> list[str]:
    """The second command of the page; chdb stands in for the client of a server."""
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (
        ("clickhouse-client", CLIENT.format(python=sys.executable, database=str(database))),
        ("spanscore", f'#!/bin/sh\nexec {sys.executable} -m spanscore "$@"\n'),
    ):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", history.block("sh", "clickhouse-client")],
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
    )
    if done.returncode != 1:  # runs failed
        return [f"exit status {done.returncode}: {done.stderr.decode()[-500:]}"]
    return history.differences(pa.ipc.open_stream(done.stdout).read_all().to_pylist(), wanted, copies)
