"""The campaign with one evaluator; it is a command of its own for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import thresholds

UNAWARE = """
from spanscore.evaluators.tool_correctness import ToolCorrectness

def test_it_can_be_made():
    ToolCorrectness(expected_tools=())
"""


@pytest.mark.campaign
def test_a_change_of_the_comparison_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    """The evaluator's own tests fail with each change, and pass without one."""
    assert 0 == thresholds.main(["tool_correctness"])
    assert "1 evaluators, 3 runs of their tests, 0 not as they should be" in capsys.readouterr().out


@pytest.mark.campaign
def test_tests_that_notice_nothing_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the tests pass all the same, the command fails and says for which change."""
    (tmp_path / "test_tool_correctness.py").write_text(UNAWARE)

    assert 1 == thresholds.main(["tool_correctness"], tmp_path)
    told = capsys.readouterr().out
    assert "WRONG            tool_correctness: value > self.threshold: the tests pass\n" in told
    assert "1 evaluators, 3 runs of their tests, 2 not as they should be" in told


@pytest.mark.campaign
def test_tests_that_cannot_be_run_have_noticed_nothing(tmp_path: Path) -> None:
    """A missing or broken test file is no proof."""
    assert 1 == thresholds.main(["tool_correctness"], tmp_path)


def test_every_evaluator_can_be_changed() -> None:
    """Each compares in one place, and has tests of its own."""
    assert len(thresholds.EVALUATORS) == 16
    files = [thresholds.comparing(thresholds.PACKAGE / "evaluators", name) for name in thresholds.EVALUATORS]
    assert [1] * 16 == [file.read_text().count(thresholds.RIGHT) for file in files]
    assert all((thresholds.TESTS / f"test_{name}.py").exists() for name in thresholds.EVALUATORS)
