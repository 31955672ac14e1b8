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
  count: {type: tool_call_count, tool_calls_count: {issue_refund: 1}}
"""
PARTS: Final = "left out: 7 traces with a part of a run, before or after a pause"


def test_no_part_fails_a_rule_that_the_run_keeps(tmp_path: Path) -> None:
    """A part that pauses is skipped, and one that continues is judged with the calls before the pause."""
    (tmp_path / "spanscore.yaml").write_text(RULES)
    ended = spanscore("score", APPROVALS, "--config", tmp_path / "spanscore.yaml")

    told = " ".join(ended.stdout.split())

    assert 0 == ended.returncode
    assert 6 == told.count("(pauses for issue_refund)")
    assert "order, no_mail skipped 6 runs: the run pauses for issue_refund (6x)" in told
    assert "count skipped 8 runs: the run pauses for issue_refund (6x); issue_refund was refused (2x)" in told
    assert (
        1
        == told.count("✓ 435fb7417a87e1cc29a26f5087fa5b60")
        == told.count("passes in part (continues after a pause; lookup_order uncertain)")
    )
    assert 5 == told.count("tool calls continues after a pause") + told.count("tool call continues after a pause")


def test_explain_says_what_was_before_the_pause(tmp_path: Path) -> None:
    """The calls that are restored, uncertain or refused have no span, and a rule that they decide is skipped."""
    configuration = tmp_path / "spanscore.yaml"
    configuration.write_text(f"{RULES}  looked_up: {{type: tool_call_count, tool_calls_count: {{lookup_order: 1}}}}")
    refused, parallel = (
        spanscore("explain", APPROVALS, "--trace", trace, "--config", configuration).stdout
        for trace in ("b2c7787d0a80f36d2c0a686984a44a44", "435fb7417a87e1cc29a26f5087fa5b60")
    )

    assert 'call 1 was made before the pause: lookup_order({"order_id": "A-1"}) → {"amount": 40}' in refused
    assert "no call of the run: issue_refund, which was refused" in refused
    assert "count: skipped: issue_refund was refused" in refused
    assert "nothing shows whether it was made before the pause: lookup_order" in parallel
    assert "looked_up: skipped: whether lookup_order was made before the pause cannot be told" in parallel


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


def test_a_pause_is_no_run_of_a_case(tmp_path: Path) -> None:
    """The trace in which the run continues is; both have the id of the conversation, which names the case."""
    (tmp_path / "spanscore.yaml").write_text(RULES)
    told = spanscore(
        *("score", APPROVALS, "--config", tmp_path / "spanscore.yaml", "--min-pass-rate", "0.1"), COLUMNS="200"
    )

    assert (0, "") == (told.returncode, told.stderr)
    assert "t-mw-approved 1 1.000 0.207 to 1.000 1.000" in " ".join(told.stdout.split())
    golden = spanscore("golden", APPROVALS, "-o", tmp_path / "golden.jsonl")
    assert "several turns" not in golden.stderr
    assert 5 == len((tmp_path / "golden.jsonl").read_text().splitlines())
