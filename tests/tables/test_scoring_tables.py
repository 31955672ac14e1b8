"""Rows of stored spans give the results of the spans, or are refused with what has to change."""

from __future__ import annotations

import logging
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bench.stored_tables import log_table, recorded_tables, span_table
from hypothesis import given
from hypothesis import strategies as st

from corpora import CORPUS, recorded
from emitters import reports
from spanscore import config, tables
from spanscore.config import parts as wiring
from spanscore.errors import ConfigError, InputError
from spanscore.model import REFUSED, Span, SpanEvent
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, EVENTS_PER_SPAN, VALUE_LENGTH
from spanscore.recordings.span_batches import SpanBatch
from spanscore.recordings.stored_rows import decoded_rows
from spanscore.runs import offline
from spanscore.runs.recorded_runs import configured
from spanscore.tables.result_rows import ResultRows

CONFIG = {
    "evaluators": {
        "health": {"type": "tool_call_trajectory"},
        "order": {"type": "tool_call_order", "tool_calls_order": ["get_weather", "book_hotel"]},
    }
}
EXPECTED = [{"name": "get_weather", "arguments": {"city": "Nowhere"}}]
GOLDEN = {"evaluators": {"golden": {"type": "trajectory_match", "reference": EXPECTED, "arguments": "exact"}}}
STRANDS = [span for spans in recorded("strands").values() for span in spans]
KEY = ("trace_id", "span_id", "evaluator", "config")


class Received:
    """The same spans, as they came over OTLP."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans = list(spans)

    def read(self) -> Iterator[SpanBatch]:
        """Yield all spans."""
        yield SpanBatch(self._spans, [])


def by_trace(spans: Iterable[Span]) -> list[Span]:
    """Return spans as `ORDER BY TraceId` does."""
    return sorted(spans, key=lambda span: span.trace_id)


def rows(table: pa.Table, rows_in_batch: int = 7, **options: Any) -> list[dict[str, Any]]:
    """Return the results of a table."""
    batches = table.to_batches(rows_in_batch)
    return pa.Table.from_batches(tables.score(batches, CONFIG, **options), tables.RESULTS).to_pylist()


def received(spans: Iterable[Span]) -> list[dict[str, Any]]:
    """Return the results of the spans as they came."""
    settings = configured(CONFIG)
    found = ResultRows(settings.digest, content=False)
    settings = settings.for_files(tool_content=False)
    for report in offline.score(Received(spans), settings, wiring.pipeline(settings)):
        found.add(report)
    return found.take().to_pylist()


def by_key(results: Iterable[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return results by their key, which no two of them share."""
    results = list(results)
    found = {tuple(each[name] for name in KEY): each for each in results}
    assert len(results) == len(found)
    return found


@given(
    st.lists(st.sampled_from(STRANDS)),
    st.integers(1, 40),
    st.sampled_from(["map", "json"]),
    st.randoms(use_true_random=False),
)
def test_spans_that_are_lost_or_doubled_give_the_results_of_the_rest(
    chosen: list[Span], rows_in_batch: int, form: str, chance: random.Random
) -> None:
    """Sorted by trace alone; the spans of a trace come in any order, and some several times."""
    chance.shuffle(chosen)
    results = rows(span_table(by_trace(chosen), form), rows_in_batch)

    assert by_key(received(by_trace(chosen))) == by_key(results)


@given(st.permutations(by_trace(STRANDS)[:60]), st.integers(1, 9))
def test_shuffled_rows_are_refused_or_equal(shuffled: list[Span], rows_in_batch: int) -> None:
    """A trace that comes again, or behind a later one, is refused before its results are complete."""
    if shuffled == by_trace(shuffled):
        assert by_key(received(shuffled)) == by_key(rows(span_table(shuffled), rows_in_batch))
    else:
        with pytest.raises(InputError, match="ORDER BY TraceId"):
            rows(span_table(shuffled), rows_in_batch)


@pytest.mark.parametrize(
    "column", [name for name in span_table([]).column_names if name not in {"TraceState", "ServiceName"}]
)
def test_a_missing_column_is_named_with_the_select_that_makes_it(column: str) -> None:
    """No trace is scored without it."""
    table = span_table(by_trace(STRANDS)).drop_columns(column)

    with pytest.raises(InputError, match=rf"no column {column}: SELECT .+ AS {column.replace('.', '_')}|empty list"):
        rows(table)


def test_all_missing_columns_are_named_at_once() -> None:
    """A table of something else says what it lacks."""
    with pytest.raises(InputError) as told:
        rows(pa.table({"id": [1], "TraceId": ["ab"]}))

    assert 14 == str(told.value).count("SELECT")
    assert str(told.value).endswith("the table has the columns id, TraceId")


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("SpanAttributes", pa.array([{"a": "b"}]), "column SpanAttributes is struct"),
        ("SpanAttributes", pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "Map\\(String, String\\) or JSON"),
        ("Timestamp", pa.array([1], pa.duration("s")), "a time, or an integer of nanoseconds"),
        ("Duration", pa.array([1.5]), "must be an integer of nanoseconds"),
        ("SpanName", pa.array([1]), "column SpanName is int64, and must be text"),
        ("Events.Name", pa.array(["x"]), "column Events.Name is string, and must be a list"),
    ],
)
def test_a_column_of_another_type_is_refused(column: str, values: pa.Array, told: str) -> None:
    """Nothing is guessed."""
    table = span_table(STRANDS[:1])

    with pytest.raises(InputError, match=told):
        rows(table.set_column(table.column_names.index(column), column, values))


@pytest.mark.parametrize(("kind", "of_a_unit"), [(pa.int32(), 10**9), (pa.int64(), 10**6), (pa.uint64(), 10**3)])
def test_integers_of_other_units_are_read_by_the_select_of_the_message(kind: pa.DataType, of_a_unit: int) -> None:
    """They would else be times of 1970, without a word."""
    table = span_table(by_trace(STRANDS))
    stored = pa.array([span.start_ns // of_a_unit for span in by_trace(STRANDS)], kind)
    stored_spans = table.set_column(table.column_names.index("Timestamp"), "Timestamp", stored)
    with pytest.raises(InputError, match="nanoseconds") as told:
        rows(stored_spans)
    select = str(told.value).partition("SELECT ")[2]
    with duckdb.connect() as connection:
        connection.register("stored_spans", stored_spans)
        read = connection.sql(f"SELECT * REPLACE ({select}) FROM stored_spans").to_arrow_table()

    exact = {row["trace_id"]: row["start_unix_nano"] for row in rows(table)}
    for row in rows(read):
        assert 0 <= exact[row["trace_id"]] - row["start_unix_nano"] < 10**9


def test_a_name_in_another_case_is_told_of() -> None:
    """With the SELECT that renames it."""
    table = span_table(by_trace(STRANDS))
    with pytest.raises(InputError) as told:
        rows(
            table.rename_columns(
                [{"TraceId": "traceid", "SpanName": "span_name"}.get(n, n) for n in table.schema.names]
            )
        )

    assert [
        "spans: 2 columns cannot be read:",
        "  no column TraceId; did you mean 'traceid'? SELECT traceid AS TraceId",
        "  no column SpanName; did you mean 'span_name'? SELECT span_name AS SpanName",
    ] == str(told.value).splitlines()


@pytest.mark.parametrize(("twice", "column"), [("TraceId", "TraceId"), ("Events_Name", "Events.Name")])
def test_a_column_that_is_there_twice_is_told_of(twice: str, column: str) -> None:
    """Also by the name that it has elsewhere: either might be the right one."""
    table = span_table(by_trace(STRANDS))
    table = pa.table([*table.columns, table[column]], names=[*table.column_names, twice])

    with pytest.raises(InputError, match=rf"^spans: 2 columns {column}: SELECT one of them$"):
        rows(table)


def in_other_types(table: pa.Table) -> pa.Table:
    """Return a table as another store has it."""
    made: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        match name:
            case "Timestamp":
                column = column.cast(pa.int64())
            case "Duration":
                column = column.cast(pa.decimal128(20, 0))
            case "TraceId" | "SpanId":
                column = pa.array([bytes.fromhex(each) for each in column.to_pylist()], pa.binary())
            case "ParentSpanId":
                column = pa.array([each or None for each in column.to_pylist()], pa.large_string())
            case "SpanKind":
                column = pa.array([f"SPAN_KIND_{each.upper()}" for each in column.to_pylist()]).dictionary_encode()
            case "StatusCode":
                column = pa.array([["Unset", "Ok", "Error"].index(each) for each in column.to_pylist()], pa.uint8())
            case "SpanAttributes":
                column = column.cast(pa.binary())
        made[name.replace(".", "_")] = column
    return pa.table(made)


def test_types_of_other_stores_are_read() -> None:
    """Ids as bytes, times as integers, names as enumerations or numbers, `Events_Name`, bytes in place of text."""
    table = span_table(by_trace(STRANDS), "json")

    assert rows(table) == rows(in_other_types(table))


def in_text_and_views(table: pa.Table) -> pa.Table:
    """Return a table with times as text, ids in capitals, maps as lists of pairs, and list views."""
    made: dict[str, Any] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        match name:
            case "Timestamp":
                column = pc.binary_join_element_wise(column.cast(pa.string()), "Z", "")
            case "Duration":
                column = column.cast(pa.int64()).cast(pa.duration("ns"))
            case "TraceId":
                column = pc.utf8_upper(column)
            case "ParentSpanId":
                column = pa.array([bytes.fromhex(each) or bytes(8) for each in column.to_pylist()], pa.binary(8))
            case "SpanKind":
                column = pa.array([f"SpanKind.{each.upper()}" for each in column.to_pylist()], pa.string_view())
            case "SpanAttributes":
                pairs = pa.StructArray.from_arrays([column.keys.dictionary_encode(), column.items], ["key", "value"])
                column = pa.ListArray.from_arrays(column.offsets, pairs)
            case "Events.Timestamp":
                column = pa.ListArray.from_arrays(column.offsets, column.values.cast(pa.int64()).cast(pa.string()))
            case "Events.Name":
                lengths = pc.list_value_length(column).cast(pa.int32())
                column = pa.ListViewArray.from_arrays(column.offsets.slice(0, len(column)), lengths, column.values)
        made[name.replace(".", "")] = column
    return pa.table(made)


def test_text_and_views_are_read() -> None:
    """Times of ISO 8601 and in digits, as columns of other engines; `EventsName`, as otlp2parquet names it."""
    table = span_table([*by_trace(STRANDS), *by_trace(STRANDS)[-1:]])

    assert decoded(table).spans == decoded(in_text_and_views(table)).spans


@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_times_of_other_units_are_read(unit: str) -> None:
    """They are cut to the unit, and durations are not."""
    table = span_table(by_trace(STRANDS))
    cut = table.set_column(0, "Timestamp", table["Timestamp"].cast(pa.timestamp(unit, "Asia/Tokyo"), safe=False))
    of_a_unit = {"us": 10**3, "ms": 10**6, "s": 10**9}[unit]

    assert [span.start_ns // of_a_unit * of_a_unit for span in decoded(table).spans] == [
        span.start_ns for span in decoded(cut).spans
    ]


def test_columns_of_nulls_are_empty() -> None:
    """As `NULL AS StatusMessage` makes them."""
    columns = ("ScopeName", "StatusMessage", "Events.Timestamp", "Events.Name", "Events.Attributes")
    table = span_table(by_trace(STRANDS))
    for name in columns:
        table = table.set_column(table.column_names.index(name), name, pa.nulls(table.num_rows))

    assert [
        each._replace(scope="", status_message="", events=()) for each in decoded(span_table(by_trace(STRANDS))).spans
    ] == decoded(table).spans


def test_the_type_json_of_clickhouse_is_read() -> None:
    """ClickHouse takes a key with points for a path of objects; lists keep their keys."""
    flat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 12, "messages": [{"role": {"a.b": "c"}}]}
    by_path = {
        "gen_ai": {"operation": {"name": "chat"}, "usage": {"input_tokens": 12}},
        "messages": [{"role": {"a.b": "c"}}],
    }
    kept = {"gen_ai.tool.call.arguments": {"city": "Paris"}, "a": {"b": "c"}}
    span = STRANDS[0]
    found = decoded(span_table([span._replace(attributes=each) for each in (flat, by_path, kept)], "json"))

    assert [flat, flat, kept] == [each.attributes for each in found.spans]


def test_a_key_before_others_with_points_keeps_its_value() -> None:
    """ClickHouse then writes it twice: with its value, and as an object."""
    flat = {"llm.messages": "hello", "llm.messages.count": "1", "llm.tools": [{"a": {}}], "llm.tools.count": "2"}
    written = '{"llm":{"messages":"hello","messages":{"count":"1"},"tools":{"count":"2"},"tools":[{"a":{}}]}}'
    table = span_table([STRANDS[0]], "json")
    place = table.column_names.index("SpanAttributes")
    (found,) = decoded(table.set_column(place, "SpanAttributes", pa.array([written]))).spans

    assert flat == found.attributes


def test_only_wanted_attributes_are_made() -> None:
    """Limits count the others, too."""
    many = {f"key {number}": "x" for number in range(ATTRIBUTES_PER_SPAN)} | {"last": "y"}
    spans = [STRANDS[0]._replace(attributes=each) for each in ({"a": "x", "last": "y"}, {"a": "x"}, {}, many)]
    wanted = {"last": "last"}
    for batches in (span_table(spans[:3]).to_batches(), span_table(spans).to_batches(1)):
        found = [span for each in decoded_rows(batches, (), defaultdict(lambda: None, wanted)) for span in each.spans]

        assert [{"last": "y"}, {}, {}] == [span.attributes for span in found[:3]]
    assert [0, 0, 0, 1] == [span.dropped_attributes for span in found]


def decoded(table: pa.Table) -> Any:
    """Return the rows of a table as they are decoded."""
    (found,) = decoded_rows(table.to_batches(), ())
    return found


@pytest.mark.parametrize("form", ["map", "json"])
def test_the_limits_of_otlp_hold(form: str) -> None:
    """Of attributes, of long values, of events; what is left out is counted at the span."""
    many = {f"key {number}": "x" for number in range(ATTRIBUTES_PER_SPAN + 3)}
    long = {"long": "x" * (VALUE_LENGTH + 1), "short": "x"}
    events = tuple(SpanEvent("event", 1, {}) for _ in range(EVENTS_PER_SPAN + 2))
    plain = STRANDS[0]
    found = decoded(span_table([plain._replace(attributes=many, events=events), plain._replace(attributes=long)], form))

    assert [ATTRIBUTES_PER_SPAN, 1] == [len(span.attributes) for span in found.spans]
    assert [3, 1] == [span.dropped_attributes for span in found.spans]
    assert EVENTS_PER_SPAN == len(found.spans[0].events)
    assert {"attribute_limit": 4, "event_limit": 2} == found.caveats


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("TraceId", "xyz", "invalid_trace_id"),
        ("SpanId", "", "invalid_span_id"),
        ("ParentSpanId", "12", "invalid_parent_span_id"),
        ("SpanKind", "Sideways", "invalid_enum"),
        ("SpanAttributes", "[1]", "malformed"),
        ("SpanAttributes", "{", "malformed"),
        ("SpanName", b"\xff\xfe", "invalid_utf8"),
    ],
)
def test_a_wrong_row_costs_itself_and_its_trace_is_incomplete(column: str, value: Any, reason: str) -> None:
    """The rows around it are read."""
    table = span_table(by_trace(STRANDS), "json")
    values = table[column].to_pylist()
    if isinstance(value, bytes):
        values = [each.encode() for each in values]
    values[5] = value
    found = decoded(table.set_column(table.column_names.index(column), column, pa.array(values)))

    assert (len(STRANDS) - 1, {reason: 1}) == (
        len(found.spans),
        {each.reason.value: each.spans for each in found.refused},
    )
    assert "row 6: " in found.refused[0].example
    assert [REFUSED] * (column != "TraceId") == [each.kind for each in found.lost]


def test_events_of_a_wrong_row_cost_itself() -> None:
    """Its lists differ in length; the rows behind it have their events."""
    event = SpanEvent("event", 1, {})
    spans = [each._replace(events=(event, event)) for each in by_trace(STRANDS)[:3]]
    table = span_table(spans)
    names = [["event", "event"], ["event"], ["event", "event"]]
    found = decoded(table.set_column(table.column_names.index("Events.Name"), "Events.Name", pa.array(names)))

    assert ["row 2: its lists of events differ in length"] == [each.example for each in found.refused]
    assert [spans[0].events, spans[2].events] == [each.events for each in found.spans]


def test_a_span_without_an_end_has_none() -> None:
    """The exporter writes the difference of end and start, which overflows."""
    found = decoded(span_table([STRANDS[0]._replace(end_ns=0)]))

    assert 0 == found.spans[0].end_ns


def test_remote_parents_cannot_be_told() -> None:
    """Tables have no flags: a configuration that needs them is refused."""
    with pytest.raises(
        ConfigError, match=r"'remote_parent' cannot be used with tables.+allowed: 'parentless', 'agent'"
    ):
        list(tables.score(span_table(by_trace(STRANDS)).to_batches(), {**CONFIG, "traces": {"root": "remote_parent"}}))


def test_the_limit_of_spans_holds() -> None:
    """A trace that is too large is closed at the limit, and its results say so."""
    spans = [span for span in STRANDS if span.trace_id == STRANDS[0].trace_id]
    (batch,) = tables.score(span_table(spans).to_batches(), {**CONFIG, "traces": {"span_limit": 2}})

    assert {"span_limit"} == set(batch["close_reason"].to_pylist())


def test_content_is_in_results_only_where_it_is_switched_on() -> None:
    """An explanation quotes arguments only with `tool_content: true`."""
    table = span_table(by_trace(STRANDS)).to_batches()
    (bare,), (full,) = (tables.score(table, {**GOLDEN, "tool_content": content}) for content in (False, True))

    assert "Nowhere" in str(full["explanation"].to_pylist())
    assert "Nowhere" not in str(bare["explanation"].to_pylist())


@pytest.mark.parametrize("form", ["map", "json"])
def test_results_have_the_test_case_of_the_root(form: str) -> None:
    """Also if the root is read from a map, of which only attributes are kept that something reads."""
    first = by_trace(STRANDS)[0].trace_id
    spans = [
        span._replace(attributes={**span.attributes, "test.case.id": "case-7"}) if not span.parent_span_id else span
        for span in STRANDS
        if span.trace_id == first
    ]

    assert {"case-7"} == {each["test_case"] for each in rows(span_table(spans, form))}


def test_a_row_has_the_id_of_a_test_without_a_name() -> None:
    """The column is that of `--format json`."""
    made = ResultRows("digest", content=False)
    for attributes in ({"test.case.id": "case-1"}, {"test.case.id": "case-1", "test.case.name": "refund"}, {}):
        run = reports.trajectory(attributes=attributes)
        made.add(reports.report(reports.PASSED, about=run))

    assert ["case-1", "refund", None] == made.take()["test_case"].to_pylist()


def test_the_digest_is_that_of_what_is_scored(tmp_path: Path) -> None:
    """It differs with a threshold or a dataset, and not with an exporter or a comment; a label takes its place."""

    def digest(text: str) -> str:
        (tmp_path / "spanscore.yaml").write_text(text, encoding="utf-8")
        return config.load(tmp_path / "spanscore.yaml").digest

    (tmp_path / "golden.jsonl").write_text('{"test.case.id": "a", "expected": []}\n', encoding="utf-8")
    first = digest("evaluators: {health: {type: tool_call_trajectory}}")
    golden = "evaluators: {g: {type: trajectory_match, expected_from: {dataset: golden.jsonl, key: test.case.id}}}"
    with_dataset = digest(golden)
    (tmp_path / "golden.jsonl").write_text('{"test.case.id": "b", "expected": []}\n', encoding="utf-8")

    assert first == digest("# better\nexporters: {console: {}}\nevaluators: {health: {type: tool_call_trajectory}}")
    assert first != digest("evaluators: {health: {type: tool_call_trajectory, threshold: 0.5}}")
    assert with_dataset != digest(golden)
    assert {"March"} == {row["config"] for row in rows(span_table(by_trace(STRANDS)), label="March")}
    with pytest.raises(InputError, match="label: must not be empty"):
        tables.score([], CONFIG, label="")


@pytest.mark.parametrize("place", [0, 1], ids=["spans", "logs"])
def test_a_row_without_a_time_is_refused(place: int) -> None:
    """As one of 1970 it would be before all calls of its run."""
    table = recorded_tables(CORPUS / "strands-adot.jsonl.gz")[place]
    times = [None, *table["Timestamp"].cast(pa.int64()).to_pylist()[1:]]
    table = table.set_column(0, "Timestamp", pa.array(times, pa.int64()).cast(table["Timestamp"].type))
    (found,) = decoded_rows(table.to_batches(), [""])

    assert ["row 1: Timestamp is null"] == [each.example for each in found.refused]
    assert table.num_rows - 1 == len(found.spans)


def test_log_records_are_joined_by_trace_id() -> None:
    """The two tables are read side by side, whatever their batches are."""
    spans, logs = (table.sort_by("TraceId") for table in recorded_tables(CORPUS / "strands-adot.jsonl.gz"))
    told = []
    for rows_in_batch in (2, 1000):
        batches = tables.score(spans.to_batches(rows_in_batch), GOLDEN, logs=logs.to_batches(1000 // rows_in_batch))
        told.append(by_key(pa.Table.from_batches(batches).to_pylist()))
    (without,) = tables.score(spans.to_batches(), GOLDEN)
    lacking = [key for key, row in by_key(without.to_pylist()).items() if row["label"] == "not_evaluated"]

    assert told[0] == told[1]
    assert lacking
    assert {"fail"} == {told[0][key]["label"] for key in lacking}


def test_a_row_that_is_refused_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Results alone would not show it."""
    with caplog.at_level(logging.WARNING):
        rows(span_table([*by_trace(STRANDS), STRANDS[0]._replace(trace_id=bytes(16))][::-1][:1]))

    assert "spans: 1 row refused (invalid_trace_id): row 1: trace_id '" in caplog.text


def test_an_empty_table_has_no_results() -> None:
    """A worker may get nothing."""
    assert [] == rows(span_table([]))
    assert [] == rows(span_table(by_trace(STRANDS)).slice(0, 0), logs=log_table([]).to_batches())
