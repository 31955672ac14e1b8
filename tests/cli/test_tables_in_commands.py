"""Tables are recordings: commands read Parquet and streams of Arrow, and `score --results` writes them."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from bench.stored_tables import recorded_tables
from pyarrow import parquet

from commands import python
from corpora import CORPUS
from spanscore.cli import main
from spanscore.tables import RESULTS

RECORDING = str(CORPUS / "strands.jsonl.gz")
FLAGLESS = str(CORPUS / "ag2.jsonl.gz")


def in_parquet(path: Path, recording: str = RECORDING) -> str:
    """Write the spans of a recording as Parquet."""
    parquet.write_table(recorded_tables(Path(recording))[0], path)
    return str(path)


def in_arrow(recording: str = RECORDING, *, is_sorted: bool = True) -> bytes:
    """Return the spans of a recording as a stream of Arrow."""
    table = recorded_tables(Path(recording))[0]
    table = table.sort_by([("TraceId", "ascending" if is_sorted else "descending")])
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, 10)
    return out.getvalue()


def from_stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Have standard input be this."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what a command prints on standard output."""
    main(arguments)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ("score", "--format", "json", "--no-content"),
        ("explain", "--trace", "68e936d4"),
        ("golden", "--key", "gen_ai.agent.name", "-o"),
        ("learn", "-o"),
    ],
)
def test_commands_read_parquet_as_otlp(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output is that for the recording itself, but for the file's name."""
    stored = in_parquet(tmp_path / "spans.parquet")
    told = []
    for number, file in enumerate((RECORDING, stored)):
        written = tmp_path / f"{number}.{'yaml' if command[0] == 'learn' else 'jsonl'}"
        more = (str(written),) if command[-1] == "-o" else ()
        out = output(capsys, *command[:1], file, *command[1:], *more)
        written_text = written.read_text("utf-8") if written.exists() else ""
        told.append(f"{out}{written_text}".replace(file, "FILE").replace(str(written), "OUT"))

    assert told[0]
    assert told[0] == told[1]


def test_versions_are_compared_in_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`diff` reads it on either side."""
    stored = in_parquet(tmp_path / "spans.parquet")
    told = [
        output(capsys, "diff", RECORDING, each, "--key", "gen_ai.agent.name", "--format", "json").replace(
            each, RECORDING
        )
        for each in (RECORDING, stored)
    ]

    assert told[0]
    assert told[0] == told[1]


def test_a_directory_has_spans_and_logs_in_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files of a directory are one recording: each trace is in several files, and log records are in another."""
    recording = str(CORPUS / "strands-adot.jsonl.gz")
    spans, logs = recorded_tables(Path(recording))
    for number in range(3):
        parquet.write_table(spans.take(list(range(number, spans.num_rows, 3))), tmp_path / f"{number}.parquet")
    parquet.write_table(logs, tmp_path / "logs.parquet")
    by_trace = [
        sorted(output(capsys, "score", file, "--format", "json", "--no-content").splitlines())
        for file in (recording, str(tmp_path))
    ]

    assert by_trace[0] == by_trace[1]


def test_a_stream_of_arrow_is_read_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """From standard input, without a copy on the disk."""
    from_stdin(monkeypatch, in_arrow())
    monkeypatch.setattr("tempfile.TemporaryDirectory", None)
    stored = output(capsys, "score", "-", "--format", "json", "--no-content")

    assert sorted(output(capsys, "score", RECORDING, "--format", "json", "--no-content").splitlines()) == sorted(
        stored.splitlines()
    )


def test_a_stream_that_is_not_sorted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file with results appears."""
    from_stdin(monkeypatch, in_arrow(is_sorted=False))

    assert 2 == main(["score", "-", "--results", str(tmp_path / "results.parquet")])
    told = capsys.readouterr().err
    assert "-: not sorted: trace" in told
    assert "ORDER BY TraceId" in told
    assert [] == list(tmp_path.iterdir())


def test_a_stream_is_read_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside other files its traces would not be whole."""
    stream = tmp_path / "spans.arrows"
    stream.write_bytes(in_arrow())

    assert 1 == main(["score", str(stream), RECORDING])
    assert "spans.arrows: a stream of Arrow: name it alone, without other files" in capsys.readouterr().err
    assert str(stream) not in output(capsys, "score", str(stream))


@pytest.mark.parametrize(
    ("left", "behind", "told"),
    [
        (0.6, b"", "the stream of Arrow cannot be read: "),
        (-9, b"", "the stream of Arrow cannot be read: "),
        (-8, b"", "the stream of Arrow ends without its end mark: rows may be missing\n"),
        (None, b"\0", "what is behind the end of the stream of Arrow is no other stream, and is not read\n"),
        (None, b"\xff" * 4, "the stream of Arrow cannot be read: "),
    ],
)
def test_what_is_read_of_a_broken_stream_is_scored(
    left: float | None, behind: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rows before, as in other recordings; but nothing else that may have been in it is green."""
    content = in_arrow(FLAGLESS)
    content = content[: int(left * len(content)) if isinstance(left, float) else left] + behind
    (tmp_path / "spans.arrows").write_bytes(content)

    assert 1 == main(["score", str(tmp_path / "spans.arrows"), "--format", "json"])
    out, err = capsys.readouterr()
    assert f"spans.arrows: {told}" in err
    assert "nothing to score" not in err
    assert out


def test_streams_behind_one_another_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `cat` makes one of several, each with its own schema."""
    table = recorded_tables(Path(RECORDING))[0].sort_by("TraceId")
    outputs = []
    for number, parts in enumerate(([table], [table.slice(0, 30), table.slice(30).drop_columns("TraceState")])):
        file = tmp_path / f"{number}.arrows"
        with file.open("wb") as out:
            for part in parts:
                with pa.ipc.new_stream(out, part.schema) as writer:
                    writer.write_table(part)
        outputs.append(output(capsys, "score", str(file), "--format", "json", "--no-content"))

    assert outputs[0]
    assert sorted(outputs[0].splitlines()) == sorted(outputs[1].splitlines())


@pytest.mark.parametrize("name", ["spans.parquet.gz", "spans.arrows.gz"])
def test_a_table_in_gzip_is_told_of(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what to do: inside such a file nothing can be found."""
    content = in_arrow() if "arrow" in name else Path(in_parquet(tmp_path / "spans")).read_bytes()
    (tmp_path / name).write_bytes(gzip.compress(content))

    assert 1 == main(["score", str(tmp_path / name)])
    assert f"{name}: a table in gzip: decompress it first\n" in capsys.readouterr().err


def test_what_a_table_lacks_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that cannot be read is a problem of the recording."""
    table = recorded_tables(Path(RECORDING))[0].drop_columns("ScopeName")
    parquet.write_table(table, tmp_path / "spans.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")

    assert 1 == main(["score", str(tmp_path)])
    told = capsys.readouterr().err
    assert "spans.parquet: no column ScopeName: SELECT scope_name AS ScopeName, or '' AS ScopeName" in told
    assert "broken.parquet: " in told
    assert "nothing to score" not in told


def test_a_table_in_lower_case_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As some stores write all names: a line for each."""
    table = recorded_tables(Path(RECORDING))[0]
    parquet.write_table(table.rename_columns([each.lower() for each in table.column_names]), tmp_path / "spans.parquet")

    assert 1 == main(["score", str(tmp_path)])
    told = capsys.readouterr().err
    assert told.count("\n  no column ") == told.count("; did you mean ") == 15
    assert "; did you mean 'events.name'? SELECT \"events.name\" AS Events_Name" in told


def test_results_are_written_as_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each evaluation, with the values of the lines of JSON, the same key each time that it is written."""
    results, again, lines = (tmp_path / name for name in ("results.parquet", "again.parquet", "lines.jsonl"))
    main(["score", RECORDING, "--results", str(results), "--json", str(lines)])
    main(["score", in_parquet(tmp_path / "spans.parquet"), "--results", str(again)])
    capsys.readouterr()
    table = parquet.read_table(results)
    expected = [
        (report["trace_id"], report["root_span_id"], name, outcome["value"], report["verdict"], report["reasons"])
        for report in map(json.loads, lines.read_text("utf-8").splitlines())
        for name, outcome in report["outcomes"].items()
    ]
    columns = ("trace_id", "span_id", "evaluator", "value", "verdict", "reasons")

    assert RESULTS == table.schema.remove_metadata()
    assert expected == [tuple(row[name] for name in columns) for row in table.to_pylist()]
    assert table.to_pylist() == parquet.read_table(again).to_pylist()


def test_a_selection_of_evaluators_is_another_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its verdict is another one, so its rows have the digest of a configuration with these evaluators alone."""
    health, order = "a: {type: tool_call_trajectory}", "b: {type: tool_call_order, tool_calls_order: [none]}"
    digests = []
    for text, *more in ([f"{health}, {order}"], [f"{health}, {order}", "--evaluator", "a"], [health]):
        (tmp_path / "spanscore.yaml").write_text(f"evaluators: {{{text}}}", encoding="utf-8")
        results = tmp_path / "results.parquet"
        main(["score", RECORDING, "--config", str(tmp_path / "spanscore.yaml"), "--results", str(results), *more])
        digests += set(parquet.read_table(results)["config"].to_pylist())

    assert 3 == len(digests)
    assert digests[0] != digests[1] == digests[2]


def test_results_go_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """As a stream of Arrow; the table is on standard error, and the exit status is as ever."""
    from_stdin(monkeypatch, in_arrow())

    assert 1 == main(["score", "-", "--results", "-", "--label", "March"])
    told = capfdbinary.readouterr()
    table = pa.ipc.open_stream(told.out).read_all()

    assert (RESULTS, {"March"}) == (table.schema, set(table["config"].to_pylist()))
    assert b"6 runs" in told.err


def test_a_label_needs_results(capsys: pytest.CaptureFixture[str]) -> None:
    """Only rows of results have the label."""
    assert 2 == main(["score", RECORDING, "--label", "March"])
    assert "--label: needs --results" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--results", "out.csv"), "--results: 'out.csv' must end in .parquet, or be -"),
        (("--results", "out.parquet", "--label", ""), "--label: must not be empty"),
    ],
)
def test_results_are_parquet_with_a_label(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Parquet in a file of another name would be taken for that, and rows without a label for one another."""
    assert 2 == main(["score", RECORDING, *arguments])
    assert told in capsys.readouterr().err


def test_tables_cannot_be_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They hold no requests."""
    assert 2 == main(["send", in_parquet(tmp_path / "spans.parquet"), "--endpoint", "http://localhost:1"])
    assert "tables cannot be sent" in capsys.readouterr().err


def test_remote_parents_cannot_be_told_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration that needs them is refused for a table, and not for OTLP."""
    written = tmp_path / "spanscore.yaml"
    written.write_text("traces: {root: remote_parent}", encoding="utf-8")

    assert 2 == main(["score", in_parquet(tmp_path / "spans.parquet"), "--config", str(written)])
    assert "'remote_parent' cannot be used with tables" in capsys.readouterr().err
    assert 1 == main(["score", RECORDING, "--config", str(written)])


@pytest.mark.parametrize("command", [["--version"], ["score", RECORDING]])
def test_pyarrow_is_loaded_for_tables_only(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Its import takes a third of a second."""
    code = (
        f"import sys; from spanscore.cli import main\ntry: main({command})\nfinally: sys.exit('pyarrow' in sys.modules)"
    )

    assert 0 == python("-c", code).returncode
