from __future__ import annotations

from pathlib import Path

from cli.recorded_runs import recorded
from commands import spanscore

RULES = 'evaluators:\n  rules: {type: tool_policy, must_precede: [[check, refund]], forbidden: ["*x=x*"]}\n'


def test_a_comment_has_the_verdict_the_evaluators_and_the_failing_runs(tmp_path: Path) -> None:
    """As standard output, or beside it in the same run; the exit status is that of the verdict."""
    config, file = tmp_path / "rules.yaml", tmp_path / "comment.md"
    config.write_text(RULES, encoding="utf-8")
    runs = recorded(tmp_path / "runs.jsonl", ("a", "check", "refund"), ("b", "refund"))

    ended = spanscore("score", runs, "--config", config, "--markdown", file)
    again = spanscore("score", runs, "--config", config, "--format", "markdown")

    text = file.read_text(encoding="utf-8")
    assert (1, 1, text) == (ended.returncode, again.returncode, again.stdout)
    assert text.startswith("<!-- spanscore score -->\n### \N{LARGE RED CIRCLE} spanscore: failed: 2 runs, 1 failed\n")
    assert "\n| `rules` | `tool_policy` | 1 | 1 | 0 | 0 | 0.750 |\n" in text
    assert "<summary>1 failing run</summary>" in text
    assert "\n- `b` `00000000000000000000000000000002`\n  - `rules` 0.5: 1 of 2 rules were kept; broken:" in text


def test_what_passed_or_was_not_checked_says_so(tmp_path: Path) -> None:
    """Nothing that checked nothing is green."""
    config = tmp_path / "rules.yaml"
    config.write_text(RULES.replace("{type", "{match: {gen_ai.agent.name: other}, type"), encoding="utf-8")
    runs = recorded(tmp_path / "runs.jsonl", ("a", "check", "refund"))

    assert "### \N{LARGE GREEN CIRCLE} spanscore: passed: 1 run, 0 failed" in (
        spanscore("score", runs, "--format", "markdown").stdout
    )
    unchecked = spanscore("score", runs, "--config", config, "--format", "markdown")
    assert 1 == unchecked.returncode
    assert "### \N{LARGE YELLOW CIRCLE} spanscore: checked nothing: 1 run, 0 failed\n\n- rules" in unchecked.stdout


def test_what_gates_accept_is_said_to_be_by_them(tmp_path: Path) -> None:
    """A green verdict beside failed runs names its reason."""
    config = tmp_path / "rules.yaml"
    config.write_text(RULES, encoding="utf-8")
    runs = recorded(tmp_path / "runs.jsonl", ("a", "check", "refund"), ("b", "refund"))

    ended = spanscore("score", runs, "--config", config, "--fail-under", "0.5", "--format", "markdown")
    assert 0 == ended.returncode
    assert "### \N{LARGE GREEN CIRCLE} spanscore: passed by the gates: 2 runs, 1 failed\n" in ended.stdout


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """They make no markup, leave no table and call nobody."""
    config = tmp_path / "rules.yaml"
    config.write_text(RULES, encoding="utf-8")
    runs = recorded(tmp_path / "runs.jsonl", ("a`|b", "<img src=x=x>@someone"))

    told = spanscore("score", runs, "--config", config, "--format", "markdown").stdout

    assert "- `` a`\\|b `` `" in told
    assert "\\<img src=x=x\\>\\@someone" in told
    assert "<img" not in told.replace("\\<img", "")
