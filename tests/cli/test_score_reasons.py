"""Why runs failed, in the outputs of `spanscore score`, and in `spanscore diff`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from commands import spanscore

RULES = """
evaluators:
  rules: {type: tool_policy, must_precede: [[check, refund]], forbidden: ["drop*"]}
  order: {type: tool_call_order, tool_calls_order: [check, refund]}
"""
GOOD, LATE, DROPPED = ("check", "refund"), ("refund", "check"), ("check", "refund", "drop_all")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two evaluators."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


def runs(path: Path, *made: tuple[str, ...]) -> str:
    """Record runs, each with its tools."""
    return recorded(path, *((f"c{number}", *tools) for number, tools in enumerate(made)))


def test_the_table_is_before_the_runs(tmp_path: Path, config: Path) -> None:
    """Two reasons of one fault count as one; narrow outputs show fewer digits of ids."""
    file = runs(tmp_path / "runs.jsonl", GOOD, LATE, LATE, DROPPED)

    head, grid, rest = spanscore("score", file, "--config", config).stdout.split("\n", 2)
    table, after = rest.split("\n\n", 1)
    assert "3 of 4 runs failed, for 2 reasons" == head
    assert ["runs", "share", "reason", "agents", "such", "as"] == grid.split()
    assert [
        f"2 50.0 % rules: refund breaks must_precede: check, refund refund {3:032x}",
        f"2 50.0 % order: refund was called out of order refund {3:032x}",
        f"1 25.0 % rules: drop_all breaks forbidden: drop* refund {4:032x}",
    ] == [" ".join(line.split()) for line in table.splitlines()]
    assert "  order: refund" in table.splitlines()[1]
    assert after.startswith("\N{CHECK MARK} ")
    assert "4 runs, 9 tool calls, 3 failing runs" == after.splitlines()[-1]

    narrow = spanscore("score", file, "--config", config, COLUMNS="80").stdout
    assert f"{2:032x}"[:8] + "\n" in narrow.split("\n\n")[0].replace(" ", "") + "\n"
    assert all(len(line) <= 80 for line in narrow.splitlines())


def test_one_failing_run_says_it_itself(tmp_path: Path, config: Path) -> None:
    """There is no table above it, nor above runs that passed."""
    for made in ((GOOD, LATE), (GOOD, GOOD)):
        assert "such as" not in spanscore("score", runs(tmp_path / "x.jsonl", *made), "--config", config).stdout


def test_files_have_the_same_table(tmp_path: Path, config: Path) -> None:
    """A line of JSON for each reason, and rows of Markdown."""
    file, target = runs(tmp_path / "runs.jsonl", GOOD, LATE, LATE, DROPPED), tmp_path / "reasons.jsonl"
    told = spanscore("score", file, "--config", config, "--reasons", target, "--format", "markdown").stdout

    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    late = "rules: refund breaks must_precede: check, refund"
    assert {
        "reason": late,
        "runs": 2,
        "of": 4,
        "share": 0.5,
        "agents": ["refund"],
        "trace_id": f"{3:032x}",
        "part_of": None,
        "errors": [],
        "since": None,
        "over_time": rows[0]["over_time"],
    } == rows[0]
    assert [0, 1, 1, 0] == [part["failed"] for part in rows[0]["over_time"]]
    assert [None, late, None] == [row["part_of"] for row in rows]
    assert "\n**3 of 4 runs failed, for 2 reasons**\n\n| runs | share | reason | agents | such as |\n" in told
    assert f"\n| 2 | 50.0 % | &emsp;order: refund was called out of order | refund | `{3:032x}` |\n" in told


def test_texts_of_errors_are_content(tmp_path: Path) -> None:
    """They stand below the reason, and not with --no-content; what would be markup is text."""
    file, target = tmp_path / "runs.jsonl", tmp_path / "reasons.jsonl"
    recorded(file, *[(f"c{number}", "search") for number in range(2)])
    text = file.read_text(encoding="utf-8")
    for number in range(2):
        error = json.dumps({"code": 2, "message": f"<b>no order {number}"})
        text = text.replace('"name": "execute_tool search", ', f'"name": "execute_tool search", "status": {error}, ', 1)
        text = text.replace('"execute_tool search", "status"', '"execute_tool  search", "status"', 1)
    file.write_text(text, encoding="utf-8")

    told = [spanscore("score", file, "--format", form, "--reasons", target).stdout for form in ("table", "markdown")]
    assert [{"text": "<b>no order #", "runs": 2}] == json.loads(target.read_text(encoding="utf-8"))["errors"]
    assert "2x <b>no order #" in told[0]
    assert "<br>2x \\<b\\>no order \\#" in told[1]
    for form in ("table", "markdown", "json"):
        assert "no order" not in spanscore("score", file, "--format", form, "--reasons", target, "--no-content").stdout
        assert "no order" not in target.read_text(encoding="utf-8")


def test_diff_says_which_reasons_are_new(tmp_path: Path, config: Path) -> None:
    """With runs that have them."""
    base, new = runs(tmp_path / "a.jsonl", *[GOOD] * 12), runs(tmp_path / "b.jsonl", *[LATE] * 12)
    told = spanscore("diff", base, new, "--config", config, "--markdown", tmp_path / "x.md").stdout
    _, changes = told.split("\nWhat changed\n")

    late = "rules: refund breaks must_precede: check, refund"
    assert changes.startswith(
        f"  new: reason {late}: 0 of 12 runs \N{RIGHTWARDS ARROW} 12 of 12 runs  such as trace {1:032x}\n"
    )
    assert f"- `new: reason {late}`: 0 of 12 runs" in (tmp_path / "x.md").read_text(encoding="utf-8")
