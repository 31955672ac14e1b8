from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bench.decoders import FAST, PLAIN
from bench.goals import GOALS, Cell, Row, Run, judged, unavailable
from bench.servers import LARGE, SENT, SHIPPED, TEN

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
    verdicts = [judged("P10", value, figure="").verdict for value in (6, 2, 0.9)]
    assert ["reached, stretch too", "reached", "missed"] == verdicts


def test_what_cannot_be_measured_is_said() -> None:
    """A goal that cannot be measured has a row of its own, which says why."""
    expected = "| P13 | durability `crash`, against `none` |  |  |  | ≤ 1.1 x | not available: no disk |"
    assert expected == table.markdown(unavailable("P13", "no disk"))


@pytest.mark.full_size
def test_a_decoder_that_is_not_installed_is_missing_from_no_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured with each decoder has a row for the compiled one without it, too."""
    monkeypatch.setattr(program, "DECODERS", {PLAIN: "python"})
    rows = list(program.rows(("F6", "P14"), "starting", Run(quick=True)))
    assert unavailable("F6", "pip install ./fast", FAST) == rows[-1]


def test_writing_replaces_the_rows_of_the_goals_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README keeps its text and the rows of other goals, in the order of the goals."""
    readme = tmp_path / "README.md"
    empty = "\n".join(table.users_table({}))
    users = f"{table.FOR_USERS}\n{empty}\n{table.END_FOR_USERS}"
    readme.write_text(f"before\n{users}\n{table.BEGIN}\n{table.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(table, "README", readme)
    monkeypatch.setattr(table, "FRONT", readme)
    first = [Row(goal="P10", what="a", figure="1"), Row(goal="F3", what="b", figure="1")]
    table.update_readme(first, [Cell("c", LARGE, "1 / 2"), Cell("c", TEN, "3 / 4")], Run(), whole=True)
    second = [Row(goal="F3", what="b", figure="2"), Row(goal="", what="beside b", figure="3")]
    table.update_readme(second, [Cell("c", TEN, "5 / 6"), Cell("d", TEN, "7 / 8")], Run(quick=True), whole=False)
    lines = readme.read_text(encoding="utf-8").splitlines()
    assert ["before", "after"] == [lines[0], lines[-1]]
    users_rows = ["| c | 1 / 2 | 5 / 6 |  |  |  |  |  |", "| d |  | 7 / 8 |  |  |  |  |  |"]
    assert users_rows == [line for line in lines if line.startswith(("| c", "| d"))]
    assert lines[lines.index(table.BEGIN) + 1].endswith("; with --quick")
    assert ["| F3 | b | 2 ", "|  | beside b | 3 ", "| P10 | a | 1 "] == [
        line.removesuffix("|  |  |  |  |") for line in lines if line.startswith(("| P", "| F", "|  | beside"))
    ]


@pytest.mark.full_size
def test_the_command_prints_a_row_for_a_goal() -> None:
    """`python -m bench` measures what it is asked to, and succeeds whether or not the goal is reached."""
    done = bench("--only", "P14", "--quick")
    assert 0 == done.returncode, done.stderr
    assert ["F7", "F7", "P14"] == [
        match[1] for line in done.stdout.splitlines() if (match := re.match(r"\| ([FP]\d+) ", line))
    ]


def test_an_unknown_goal_is_named() -> None:
    """A goal that does not exist is an error that lists those that do."""
    done = bench("--only", "P99")
    assert 2 == done.returncode
    assert "no such goal: P99" in done.stderr


def test_every_goal_has_a_place_in_the_readme() -> None:
    """The README says of each goal what is measured."""
    readme = table.README.read_text(encoding="utf-8")
    assert [] == [number for number in GOALS if f"| {number.split()[0]} |" not in readme]


def test_the_front_page_tells_the_speeds() -> None:
    """The sentence is written anew from the cells, the rest of the paragraph stays; nothing changes without cells."""
    text = "before\n\n**Speed**: none; with\n[a decoder](x), none. The rest ([how](y)). More.\n\nafter\n"
    known = {
        f"{SHIPPED}: {decoder}": {column: f"{cost} / 1" for column, cost in zip((LARGE, SENT), costs, strict=True)}
        for decoder, costs in ((PLAIN, (85.3, 30.9)), (FAST, (66.7, 25.1)))
    }
    said = table.front_page(text, known)
    assert text == table.front_page(text, {})
    assert said.startswith("before\n\n**Speed**: one core scores 32,000 spans a second in requests of 6 spans")
    assert " ".join(said.split()).endswith(". The rest ([how](y)). More. after")
    assert [] == [number for number in ("12,000", "32,000", "15,000", "40,000") if number not in said]
    assert table.front_page(said, known) == said


def test_as_shipped_is_what_is_shipped() -> None:
    """The configuration that is measured differs from the shipped one in its evaluators and its addresses only."""
    ours, shipped = (
        yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
        for path in ("bench/shipped.yaml", "config/collector.yaml")
    )
    for loaded in (ours, shipped):
        del loaded["evaluators"]
        loaded["receivers"]["otlp"]["protocols"] = sorted(loaded["receivers"]["otlp"]["protocols"])
        loaded["exporters"]["otlp"] |= {"endpoint": "", "headers": sorted(loaded["exporters"]["otlp"]["headers"])}
        loaded["exporters"]["prometheus"] = None
    assert shipped == ours
