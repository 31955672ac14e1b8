"""`--fail-under`: the mean of each evaluator decides, every output says how, and none contradicts the exit status."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.recorded_runs import recorded
from spanscore.cli import main

CONFIG = """
evaluators:
  golden: {type: tool_call_count, tool_calls_count: {lookup: 1}}
  other: {type: tool_policy, max_calls: 3}
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return arguments that score three runs, of which two pass."""
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG)
    recording = recorded(tmp_path / "r.jsonl", ("a", "lookup"), ("b", "lookup"), ("c", "pay"))
    return ["score", recording, "--config", str(config)]


def test_the_mean_that_is_too_low_is_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In the table, or on standard error where standard output is for programs."""
    line = "golden: mean 0.667 is below 0.7"

    assert [1, 1] == [main([*arguments, "--fail-under", "0.7", *more]) for more in ([], ["--format", "json"])]
    told = capsys.readouterr()
    assert line in told.out.splitlines()
    assert [line] == told.err.splitlines()


def test_it_is_said_why_failing_runs_do_not_count(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A green exit status below a red run would look like a mistake."""
    line = "1 run failed, but every mean is at least 0.6 (--fail-under): golden 0.667, other 1.000"

    assert [0, 0] == [main([*arguments, "--fail-under", "0.6", *more]) for more in ([], ["--format", "json"])]
    told = capsys.readouterr()
    assert line in told.out.splitlines()
    assert [line] == told.err.splitlines()


def test_a_mean_just_below_is_told_with_its_digits(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`mean 0.667 is below 0.667` would be no help."""
    assert 1 == main([*arguments, "--fail-under", "0.667", "--format", "json"])
    assert "golden: mean 0.666666666667 is below 0.667\n" == capsys.readouterr().err


@pytest.mark.parametrize(
    ("bound", "status", "golden"),
    [
        (
            "0.7",
            1,
            [("a", None), ("b", None), ("c", "failure"), ("mean score of at least 0.7", "failure")],
        ),
        (
            "0.6",
            0,
            [("a", None), ("b", None), ("c", "system-out"), ("mean score of at least 0.6", "system-out")],
        ),
    ],
)
def test_junit_says_what_the_exit_status_says(
    bound: str,
    status: int,
    golden: list[tuple[str, str | None]],
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each evaluator has a case for its mean; where that holds, runs that fail only say why."""
    assert status == main([*arguments, "--fail-under", bound, "--format", "junit"])
    root = ET.fromstring(capsys.readouterr().out)
    found = [
        (case.get("name"), next((each.tag for each in case if each.tag != "properties"), None)) for case in root[0]
    ]

    assert golden == found
    assert bool(status) == bool(int(root.attrib["failures"]))
    assert int(root[0].attrib["failures"]) == len(root[0].findall("testcase/failure"))
    assert "1 of 1" not in (root[0][2][1].text or "")
    assert "lookup" in (root[0][2][1].get("message") or root[0][2][1].text or "")


def test_junit_without_it_is_as_ever(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Runs that fail are failures, and there is a case for each run and no other."""
    assert 1 == main([*arguments, "--format", "junit"])
    root = ET.fromstring(capsys.readouterr().out)
    assert ("6", "1") == (root.get("tests"), root.get("failures"))
