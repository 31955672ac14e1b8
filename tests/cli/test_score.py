"""`spanscore score` and its siblings, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.recorded_runs import recorded
from commands import spanscore, started
from spanscore.cli import main

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDING = str(CORPUS / "strands.jsonl.gz")
HEALTHY = str(CORPUS / "dspy-oi.jsonl.gz")
ORDER = """
evaluators:
  trip_order:
    type: tool_call_order
    tool_calls_order: [get_weather, get_weather, search_flights, check_policy, book_hotel, book_hotel]
    threshold: 0.9
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Return a configuration with one evaluator of order."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(ORDER, encoding="utf-8")
    return str(path)


def test_the_table_shows_where_a_trajectory_parted(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For a failing trajectory, expected and actual calls stand side by side, and a summary ends the output."""
    status = main(["score", RECORDING, "--config", config])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]

    assert 1 == status
    assert ["6", "of", "6", "runs", "failed,", "for"] == lines[0][:6]
    assert [
        "✗",
        "68e936d4b6ff4f24ac37737035216051",
        "strands-demo",
        "travel_agent",
        "sess-42",
        "5",
        "tool",
        "calls",
    ] in lines
    assert ["check_policy", "←", "missing"] in lines
    assert ["search_flights", "search_flights"] in lines
    assert ["trip_order", "tool_call_order", "0", "6", "0", "0", "0.278"] in lines
    assert ["6", "runs,", "16", "tool", "calls,", "6", "failing", "runs"] == lines[-1]


def test_json_has_one_line_for_each_trajectory(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line is an object with the fixed keys; arguments, results and errors stand where the spans told them."""
    main(["score", RECORDING, "--config", config, "--format", "json"])
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = reports[0]

    assert 6 == len(reports)
    assert {
        "trace_id",
        "root_span_id",
        "unit",
        "service",
        "agent",
        "conversation_id",
        "end_unix_nano",
        "test_case",
        "test_suite",
        "close_reason",
        "complete",
        "verdict",
        "reasons",
        "revision",
        "tool_calls",
        "withheld_calls",
        "outcomes",
        "attributes",
    } == set(first)
    assert ("sess-42", "invoke_agent travel_agent") == tuple(
        first["attributes"][key] for key in ("session.id", "span.name")
    )
    assert {
        "name": "book_hotel",
        "arguments": {"hotel": "Ritz", "nights": 2},
        "result": "Error: booking gateway timed out (attempt 1)",
        "error": "ValueError: booking gateway timed out (attempt 1)",
        "call_id": "call_b1",
        "agent": "travel_agent",
    } == {key: first["tool_calls"][3][key] for key in ("name", "arguments", "result", "error", "call_id", "agent")}
    assert ("score", "tool_call_order", False) == tuple(
        first["outcomes"]["trip_order"][key] for key in ("outcome", "type", "passed")
    )


def test_junit_has_a_case_for_each_trajectory(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A CI server sees one suite an evaluator and one case a trajectory, failures with their explanation."""
    main(["score", RECORDING, "--config", config, "--format", "junit"])
    (suite,) = ET.fromstring(capsys.readouterr().out)

    assert {"name": "trip_order", "tests": "6", "failures": "6", "errors": "0", "skipped": "0"} == suite.attrib
    assert suite[0][1].get("message", "").startswith("score 0.8333: 5 of 6 expected calls")


def test_without_a_configuration_tool_call_health_is_scored(capsys: pytest.CaptureFixture[str]) -> None:
    """A first look at a recording needs no file: failed tool calls fail."""
    assert 1 == main(["score", HEALTHY])
    assert "health" in capsys.readouterr().out


def test_fail_under_looks_at_means(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With --fail-under the mean score of each evaluator decides, not the single trajectory."""
    statuses = [main(["score", RECORDING, "--config", config, "--fail-under", bound]) for bound in ("0.1", "0.9")]

    assert [0, 1] == statuses
    capsys.readouterr()


def test_a_broken_line_is_named_and_the_rest_is_scored(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names file and line; every other trace of the file is in the output; the status says failed."""
    recording = tmp_path / "broken.jsonl"
    good = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","name":"x"}]}]}]}'
    recording.write_text(f"{good % (1, 1)}\n{{oops\n{good % (2, 2)}\n", encoding="utf-8")
    status = main(["score", str(recording), "--config", config, "--format", "json"])
    told = capsys.readouterr()

    assert 1 == status
    assert [f"{1:032x}", f"{2:032x}"] == [json.loads(line)["trace_id"] for line in told.out.splitlines()]
    assert told.err.startswith(f"{recording}:2: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "no-such-file.jsonl"], "no-such-file.jsonl"),
        (["score", RECORDING, "--config", "no-such-file.yaml"], "no-such-file.yaml: cannot be read"),
        (["describe", "tool_call_ordr"], "did you mean 'tool_call_order'?"),
    ],
)
def test_usage_errors_have_status_2(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What the user got wrong is named on standard error; nothing is written to standard output."""
    status = main(arguments)
    told = capsys.readouterr()

    assert (2, "") == (status, told.out)
    assert message in told.err


def test_a_wrong_configuration_lists_every_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` prints one line for each error, with its place, and ends with status 2."""
    path = tmp_path / "wrong.yaml"
    path.write_text("evaluators:\n  a: {type: tool_call_ordr}\ntracse: {}\n", encoding="utf-8")
    status = main(["check", str(path)])
    lines = capsys.readouterr().err.splitlines()

    assert 2 == status
    assert [f"{path}:2:13 evaluators.a.type", f"{path}:3:1 tracse"] == [line.split(": ")[0] for line in lines]


def test_a_right_configuration_is_said_to_be_right(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`check` ends with status 0 and says what it found."""
    assert 0 == main(["check", config])
    assert f"{config}: valid, 1 evaluator: trip_order (tool_call_order)\n" == capsys.readouterr().out


def test_schema_is_a_json_schema(capsys: pytest.CaptureFixture[str]) -> None:
    """Editors can read what `schema` prints."""
    assert 0 == main(["schema"])
    assert "evaluators" in json.loads(capsys.readouterr().out)["properties"]


def test_standard_input_is_read(tmp_path: Path) -> None:
    """`spanscore score - < FILE` prints what `spanscore score FILE` prints."""
    streams = {"output": tmp_path / "output", "errors": tmp_path / "errors"}
    with started("score", "-", "--format", "json", source=Path(RECORDING), **streams) as ended:
        assert 1 == ended.wait()

    assert spanscore("score", RECORDING, "--format", "json").stdout == streams["output"].read_text()
    assert "" == streams["errors"].read_text()


def test_counts_name_their_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts of trajectories that are not shown, that were skipped, and that fail have their noun."""
    config = tmp_path / "spanscore.yaml"
    config.write_text(
        "evaluators: {safe: {type: tool_policy, forbidden: [drop]}, schema: {type: tool_arguments_schema}}"
    )
    runs = [("a", "drop")] * 22 + [("a", "look")] * 21
    assert 1 == main(["score", recorded(tmp_path / "runs.jsonl", *runs), "--config", str(config)])
    lines = capsys.readouterr().out.splitlines()

    assert "... and 3 more runs, 2 failing, 1 passing; --format json has all" in lines
    assert "schema skipped 43 runs: no tool that was called has a schema (43x)" in lines
    assert "schema checked nothing: skipped all 43 runs" in lines
    assert "43 runs, 43 tool calls, 22 failing runs" == lines[-1]
