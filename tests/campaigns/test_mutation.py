"""The campaign of mutants with a sample; it is a command of its own for all of them."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from campaigns import mutation, mutation_changes
from campaigns.mutation_equivalents import EQUIVALENT
from commands import python

COMMAND = Path(mutation.__file__)
UNAWARE = """
from spanscore.evaluators.tool_correctness import ToolCorrectness

def test_it_can_be_made():
    ToolCorrectness(expected_tools=())
"""


def campaign(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return python(COMMAND, *arguments)


@pytest.mark.campaign
def test_a_sample_is_killed() -> None:
    """Of the changes to evaluators, their own tests notice most; a sample can have a few more that live than all."""
    done = campaign("evaluators/tool_call_order", "evaluators/tool_correctness", "--sample", 24, "--bar", 75)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert " live\n" in done.stdout


@pytest.mark.campaign
def test_what_lives_is_named(tmp_path: Path) -> None:
    """Where the tests notice nothing, the command fails and says of which changes."""
    (tmp_path / "evaluators").mkdir()
    (tmp_path / "evaluators" / "test_tool_correctness.py").write_text(UNAWARE)

    done = campaign("evaluators/tool_correctness", "--tests", tmp_path)

    assert 1 == done.returncode, done.stderr
    assert "value >= self.threshold -> value > self.threshold\n" in done.stdout
    assert "lives: src/spanscore/evaluators/tool_correctness.py:" in done.stdout


@pytest.mark.campaign
def test_tests_that_fail_without_a_change_prove_nothing(tmp_path: Path) -> None:
    """They would kill everything."""
    (tmp_path / "evaluators").mkdir()
    (tmp_path / "evaluators" / "test_tool_correctness.py").write_text(UNAWARE.replace("expected_tools", "tools"))

    done = campaign("evaluators/tool_correctness", "--tests", tmp_path)

    assert 1 == done.returncode
    assert "the tests fail without any change" in done.stderr


@pytest.mark.campaign
def test_no_mutants_are_no_success() -> None:
    """What was not tried has not passed."""
    assert 1 == campaign("evaluators/tool_correctness", "--sample", 0).returncode
    assert 1 == campaign("evaluators/nothing").returncode


SOURCE = '''
"""One of everything."""

LIMIT: int = 3

@dataclass(frozen=True)
class Row:
    cells: list[int] = field(default_factory=list, repr=False)

def first(rows: list[Row], least: int | None = None) -> Row | None:
    """Return one."""
    for row in rows:
        if not row.cells:
            continue
        if len(row.cells) < LIMIT and least is not None:
            return row
    rows += [Row()]
    rows.sort()
    if least:
        raise ValueError(least)
    return None
'''


def test_what_is_changed() -> None:
    """Comparisons, operators, conditions, numbers, results, and statements that do something; nothing only said."""
    assert [
        "4: 3 -> 4",
        "13: not row.cells -> row.cells",
        "14: without continue",
        "15: len(row.cells) < LIMIT and least is not None -> len(row.cells) < LIMIT or least is not None",
        "15: len(row.cells) < LIMIT -> len(row.cells) <= LIMIT",
        "15: len(row.cells) < LIMIT -> len(row.cells) >= LIMIT",
        "15: least is not None -> least is None",
        "16: return row -> return None",
        "17: rows += [Row()] -> rows -= [Row()]",
        "17: without rows += [Row()]",
        "18: without rows.sort()",
        "19: least -> not least",
        "20: without raise ValueError(least)",
    ] == [f"{change.line}: {change.what}" for change in mutation_changes.changes(SOURCE)]


def test_a_change_is_made_at_its_place() -> None:
    """The rest of the module is as it was."""
    numbers = {change.what: change.number for change in mutation_changes.changes(SOURCE)}
    made = ast.unparse(mutation_changes.changed(SOURCE, numbers["without continue"]))

    assert ast.unparse(ast.parse(SOURCE)).replace("continue", "pass") == made


def test_what_is_held_to_be_equivalent_is_there() -> None:
    """An entry for code that has changed since says nothing."""
    for module, entries in EQUIVALENT.items():
        made = mutation_changes.changes((mutation.PACKAGE / f"{module}.py").read_text(encoding="utf-8"))

        assert set() == set(entries) - {(change.code, change.what) for change in made}
