"""`--key`, `--cases` and `--min-pass-rate`: runs by case, in every output, and none contradicts the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.recorded_runs import recorded
from spanscore.cli import main

CONFIG = "evaluators: {golden: {type: tool_call_count, tool_calls_count: {lookup: 1}}}"


def arguments(directory: Path, *runs: tuple[str, ...], config: str = CONFIG) -> list[str]:
    """Return arguments that score these runs."""
    file = directory / "c.yaml"
    file.write_text(config)
    return ["score", recorded(directory / "r.jsonl", *runs), "--config", str(file)]


def test_three_lucky_runs_are_not_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lower end decides."""
    command = arguments(tmp_path, *[("a", "lookup")] * 3)

    assert [0, 1] == [main([*command, "--min-pass-rate", bound]) for bound in ("0.4", "0.9")]
    why = "case a: 3 of 3 runs passed, 95 % interval 0.439 to 1.000: its lower end is below 0.9"
    assert why in capsys.readouterr().out.splitlines()


def test_the_table_and_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What k is stands below: the least number of runs that a case has."""
    cases = tmp_path / "cases.jsonl"
    command = arguments(tmp_path, ("a", "lookup"), ("a", "lookup"), ("a", "pay"), ("b", "lookup"), ("b", "lookup"))

    assert 1 == main([*command, "--key", "test.case.id", "--cases", str(cases)])
    told = capsys.readouterr().out
    assert ["a", "3", "0.667", "0.208", "to", "0.939", "0.333"] in [line.split() for line in told.splitlines()]
    assert "k = 2" in told
    rows = [json.loads(line) for line in cases.read_text().splitlines()]
    assert [("a", 3, 2, 1, 0), ("b", 2, 2, 0, 0)] == [
        tuple(row[name] for name in ("case", "runs", "passed", "failed", "none")) for row in rows
    ]
    assert [2, pytest.approx(1 / 3), 1.0] == [rows[0]["k"], *(row["pass_hat_k"] for row in rows)]


def test_what_was_not_measured_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case with no verdict fails the gate, in those words."""
    command = arguments(tmp_path, ("a", "lookup"), config=CONFIG.replace("1}}", "1}, informational: true}"))

    more = (["--allow-unscored"], ["--allow-unscored", "--min-pass-rate", "0"])
    assert [0, 1] == [main([*command, *each]) for each in more]
    assert "case a: no run has a verdict, which is no pass" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("bound", "failures"), [("0.2", 0), ("0.9", 2)])
def test_junit_agrees_with_the_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bound: str, failures: int
) -> None:
    """Where the gate holds, runs that fail only say why the rate is what it is."""
    command = arguments(tmp_path, ("a", "lookup"), ("a", "lookup"), ("a", "pay"))

    assert bool(failures) == main([*command, "--min-pass-rate", bound, "--format", "junit"])
    root = ET.fromstring(capsys.readouterr().out)
    assert str(failures) == root.get("failures")
    assert f"a: pass rate of at least {bound}" in [case.get("name") for case in root.iter("testcase")]


def test_a_run_of_no_case_fails_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would be in nobody's rate."""
    assert 1 == main([*arguments(tmp_path, ("", "lookup")), "--min-pass-rate", "0"])
    assert "1 run without test.case.id or test.case.name or gen_ai.conversation.id" in capsys.readouterr().out
