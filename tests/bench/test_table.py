from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from bench.decoders import FAST, PLAIN
from bench.goals import GOALS, Row, Run, judged, unavailable

from bench import __main__ as program
from bench import table
from deadline import DEADLINE_S

ROOT = Path(__file__).parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmarks as a user does."""
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def test_a_goal_is_judged_by_what_to_reach() -> None:
    """Less is better, except where a share is to be reached."""
    verdicts = [judged("P6", value, figure="").verdict for value in (0.4, 0.6, 0.7)]
    assert ["reached, stretch too", "reached", "missed"] == verdicts
    verdicts = [judged("P1", value, figure="").verdict for value in (0.36, 0.3, 0.2)]
    assert ["reached, stretch too", "reached", "missed"] == verdicts


def test_what_cannot_be_measured_is_said() -> None:
    """A goal that cannot be measured has a row of its own, which says why."""
    expected = "| P13 | durability `crash`, against `none` |  |  |  | ≤ 1.1 x | not available: no disk |"
    assert expected == table.markdown(unavailable("P13", "no disk"))


@pytest.mark.full_size
def test_a_decoder_that_is_not_installed_is_missing_from_no_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured with each decoder has a row for the compiled one without it, too."""
    monkeypatch.setattr(program, "DECODERS", {PLAIN: "python"})
    rows = list(program.rows(("P8", "P14"), "imports", Run(quick=True)))
    missing = [unavailable(goal, "pip install ./fast", FAST) for goal in ("P8", "P8 small")]
    assert missing == rows[-2:]


def test_writing_replaces_the_rows_of_the_goals_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README keeps its text and the rows of other goals, in the order of the goals."""
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{table.BEGIN}\n{table.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(table, "README", readme)
    table.update_readme([Row(goal="P10", what="a", figure="1"), Row(goal="P3", what="b", figure="1")], Run())
    table.update_readme(
        [Row(goal="P3", what="b", figure="2"), Row(goal="", what="beside b", figure="3")], Run(quick=True)
    )
    lines = readme.read_text(encoding="utf-8").splitlines()
    assert ["before", "after"] == [lines[0], lines[-1]]
    assert lines[2].endswith("; with --quick")
    assert ["| P3 | b | 2 ", "|  | beside b | 3 ", "| P10 | a | 1 "] == [
        line.removesuffix("|  |  |  |  |") for line in lines if line.startswith(("| P", "|  |"))
    ]


@pytest.mark.full_size
def test_the_command_prints_a_row_for_a_goal() -> None:
    """`python -m bench` measures what it is asked to, and succeeds whether or not the goal is reached."""
    done = bench("--only", "P14", "--quick")
    assert 0 == done.returncode, done.stderr
    assert ["P14"] == [line.split(" | ")[0].strip("| ") for line in done.stdout.splitlines() if line.startswith("| P")]


def test_an_unknown_goal_is_named() -> None:
    """A goal that does not exist is an error that lists those that do."""
    done = bench("--only", "P99")
    assert 2 == done.returncode
    assert "no such goal: P99" in done.stderr


def test_every_goal_has_a_place_in_the_readme() -> None:
    """The README says of each goal what is measured."""
    readme = table.README.read_text(encoding="utf-8")
    assert [] == [number for number in GOALS if f"| {number.split()[0]} |" not in readme]
