"""Runs that pause for approval, from recordings of a real framework: each of their traces holds a part of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from commands import spanscore
from corpora import CORPUS

APPROVALS: Final = CORPUS / "langgraph-approval.jsonl.gz"
RULES: Final = """
evaluators:
  order: {type: tool_policy, must_precede: [[lookup_order, issue_refund]]}
  no_mail: {type: tool_policy, forbidden: [send_mail]}
"""
PARTS: Final = "left out: 10 traces with a part of a run, before or after a pause"


def test_no_part_fails_a_rule_that_the_run_keeps(tmp_path: Path) -> None:
    """A part that pauses is skipped, and one that continues is judged by what no earlier call could change."""
    (tmp_path / "spanscore.yaml").write_text(RULES)
    ended = spanscore("score", APPROVALS, "--config", tmp_path / "spanscore.yaml")

    told = " ".join(ended.stdout.split())

    assert 0 == ended.returncode
    assert (6, 4) == (told.count("(pauses for issue_refund)"), told.count("(continues after a pause)"))
    assert "order skipped 10: the run pauses for issue_refund (6x); the run continues after a pause" in told


@pytest.mark.parametrize(("command", "made"), [("golden", "golden.jsonl"), ("learn", "learned.yaml")])
def test_parts_are_no_examples(tmp_path: Path, command: str, made: str) -> None:
    """Traces that are left out are counted."""
    ended = spanscore(command, APPROVALS, "-o", tmp_path / made)

    assert PARTS in ended.stderr


def test_parts_are_not_compared(tmp_path: Path) -> None:
    """Each version says how many there are."""
    (tmp_path / "spanscore.yaml").write_text(RULES)
    ended = spanscore("diff", APPROVALS, APPROVALS, "--config", tmp_path / "spanscore.yaml")

    assert 2 == (ended.stdout + ended.stderr).count(PARTS)
