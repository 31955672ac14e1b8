"""The recipes of docs/history.md that need no other engine than DuckDB; tests/campaigns/history.py runs the others."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from bench.stored_tables import recorded_tables
from pyarrow import parquet

from corpora import CORPUS
from spanscore import tables
from spanscore.cli import main
from spanscore.recordings.arrow_columns import LOG_COLUMNS, SPAN_COLUMNS

PAGE: Final = (Path(__file__).parents[2] / "docs" / "history.md").read_text(encoding="utf-8")
COMMANDS: Final = [text.strip() for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)]
PYTHON: Final = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SQL: Final = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
NAMES: Final = ("crewai-oi", "google-adk", "haystack-native", "langchain-oi", "mastra", "openai-agents-tl", "strands")
"""Recordings without logs."""
TYPES: Final = "Array|ARRAY|BIGINT|Bool|BOOLEAN|DOUBLE|Float64|Int64|LowCardinality|Nullable|String|STRING"
YAML: Final = "evaluators: {health: {type: tool_call_trajectory}}\n"
KEY: Final = ("trace_id", "span_id", "evaluator", "config")
HOUR_NS: Final = 3_600 * 10**9
FIRST_OF_NOVEMBER_NS: Final = 1_793_491_200 * 10**9


def block(blocks: list[str], *contains: str) -> str:
    """Return the only block that contains these texts."""
    (found,) = [each for each in blocks if all(text in each for text in contains)]
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory, with a configuration."""
    (tmp_path / "spanscore.yaml").write_text(YAML, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def whole_corpus() -> pa.Table:
    """Return the spans of some recordings, each trace in several places."""
    table = pa.concat_tables(recorded_tables(CORPUS / f"{name}.jsonl.gz")[0] for name in NAMES)
    return table.sort_by("SpanId")


def by_key(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return results by their key, of which none comes twice."""
    rows = parquet.read_table(path).to_pylist()
    found = {tuple(row[name] for name in KEY): row for row in rows}
    assert len(rows) == len(found)
    return found


def test_duckdb_scores_scattered_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recipe gives what `spanscore score` gives for the recordings."""
    table = whole_corpus()
    (folder / "spans").mkdir()
    for number in range(5):
        part = table.take(list(range(number, table.num_rows, 5)))
        parquet.write_table(part, folder / "spans" / f"{number}.parquet", row_group_size=100)
    exec(block(PYTHON, "import duckdb"), {})
    recordings = [str(CORPUS / f"{name}.jsonl.gz") for name in NAMES]
    main(["score", *recordings, "--config", "spanscore.yaml", "--results", "otlp.parquet"])
    found, expected = by_key(folder / "results.parquet"), by_key(folder / "otlp.parquet")

    assert found
    assert expected == found


def test_a_file_is_scored_by_the_command_and_from_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first recipes."""
    parquet.write_table(recorded_tables(CORPUS / "strands.jsonl.gz")[0], folder / "spans.parquet")
    assert 1 == main(COMMANDS[0].split()[1:])
    capsys.readouterr()
    exec(block(PYTHON, "sort_by"), {})

    assert capsys.readouterr().out.startswith(f"6 {tables.RESULTS.names}")
    assert 6 == parquet.read_table("results.parquet").num_rows


def days_of_traces() -> pa.Table:
    """Return a span an hour for each trace: 40 traces of five hours and less, of which one begins each two hours."""
    times, traces = [], []
    for number in range(40):
        begin = FIRST_OF_NOVEMBER_NS + (2 * number - 24) * HOUR_NS + number
        for hour in range(1 + number % 5):
            times.append(begin + hour * HOUR_NS)
            traces.append(f"{number + 1:032x}")
    return pa.table({"Timestamp": pa.array(times, pa.timestamp("ns")), "TraceId": traces, "SpanId": traces})


@pytest.mark.parametrize("is_integer", [False, True])
def test_windows_have_each_trace_once_and_whole(*, is_integer: bool) -> None:
    """The statement of the page, for three days that follow one another; over integers with its change."""
    otel_traces = days_of_traces()
    statement = block(SQL, "HAVING min(Timestamp)")
    if is_integer:
        otel_traces = otel_traces.set_column(0, "Timestamp", otel_traces["Timestamp"].cast(pa.int64()))
        (converted,) = re.findall(r"DuckDB needs `(.*?)` in place of", PAGE)
        statement = re.sub(r"Timestamp(?=\)? [<>])", converted, statement)
    found: Counter[str] = Counter()
    for day in (-1, 0, 1, 2):
        moved = re.sub(r"'(\d{4}-[^']+)'", rf"(TIMESTAMP '\1' + INTERVAL ({day}) DAY)", statement)
        window = duckdb.sql(moved).to_arrow_table()
        assert sorted(window["TraceId"].to_pylist()) == window["TraceId"].to_pylist()
        found.update(window["TraceId"].to_pylist())
        assert duckdb.sql(statement).to_arrow_table().num_rows

    assert Counter(otel_traces["TraceId"].to_pylist()) == found


def test_other_traces_are_dropped_and_whole_traces_sampled() -> None:
    """By the statements of the page, over the recordings."""
    otel_traces = whole_corpus()
    agents = duckdb.sql(block(SQL, "THEN 1 ELSE 0")).to_arrow_table()["TraceId"].to_pylist()
    sample = duckdb.sql(block(SQL, "right(TraceId").replace("= '00'", "< '40'")).to_arrow_table()
    sampled = set(sample["TraceId"].to_pylist())

    assert 0 < len(agents) < len(set(otel_traces["TraceId"].to_pylist()))
    assert sampled
    assert all(trace_id[-2:] < "40" for trace_id in sampled)
    assert sample.num_rows == sum(trace_id in sampled for trace_id in otel_traces["TraceId"].to_pylist())


def test_failures_are_joined_with_their_spans(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the statement of the page: all spans of the failed runs, and those of no others."""
    otel_traces = recorded_tables(CORPUS / "strands.jsonl.gz")[0]
    parquet.write_table(otel_traces, "spans.parquet")
    main(COMMANDS[0].split()[1:])
    spanscore_results = parquet.read_table("results.parquet")
    found = duckdb.sql(block(SQL, "JOIN otel_traces")).to_arrow_table()
    failed = Counter(row["trace_id"] for row in spanscore_results.to_pylist() if row["label"] == "fail")
    lengths = Counter(otel_traces["TraceId"].to_pylist())

    assert 0 < len(failed) < len(lengths)
    assert {each: lengths[each] * count for each, count in failed.items()} == Counter(found["TraceId"].to_pylist())


def test_the_page_names_all_columns() -> None:
    """Those that are read, those of results with their meanings, and the latter in each definition."""
    meanings = PAGE.partition("## A table of results")[2].partition("```")[0]
    assert tables.RESULTS.names == [
        name for row in re.findall(r"^\| (`.+?) \|", meanings, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    for name in {*SPAN_COLUMNS, *LOG_COLUMNS}:
        assert f"`{name}`" in PAGE
    for definition in (block(SQL, "ReplacingMergeTree"), block(SQL, "USING delta"), block(SQL, "executable(")):
        named = re.findall(rf"(?:^|[ (',])(\w+) (?:{TYPES})", definition)
        assert tables.RESULTS.names == named
