"""docs/comparing.md: its output, and the job that it shows; tests/deploy/test_action.py runs the action."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cli.recorded_runs import recorded
from commands import spanscore

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "comparing.md").read_text(encoding="utf-8")
COMMANDS = ["spanscore diff base.jsonl new.jsonl --config spanscore.yaml"]


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """The recordings of both versions, and the rule."""
    good, bad = ("lookup", "check", "refund"), ("lookup", "refund")
    for name, cases in (("base", [good] * 20), ("new", [good] * 10 + [bad] * 10)):
        recorded(tmp_path / f"{name}.jsonl", *((f"c{number}", *tools) for number, tools in enumerate(cases)))
    rule = "evaluators:\n  refund_rules: {type: tool_policy, must_precede: [[check, refund]]}\n"
    (tmp_path / "spanscore.yaml").write_text(rule, encoding="utf-8")
    return tmp_path


def test_the_page_shows_what_is_printed(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Word for word."""
    monkeypatch.chdir(versions)
    ended = spanscore(*COMMANDS[0].split()[1:], COLUMNS="130")

    shown = PAGE.partition("does differently:\n\n")[2].partition("\n\n|")[0]
    lines = [line.removeprefix("    ").rstrip() for line in shown.splitlines()]
    assert 1 == ended.returncode
    assert lines[:8] == [line.rstrip() for line in ended.stdout.splitlines()[:8]]
    assert {line for line in lines[8:] if line} <= set(ended.stdout.splitlines())


@pytest.mark.parametrize("page", ["README.md", "docs/comparing.md"])
def test_the_job_gives_what_the_action_takes(page: str) -> None:
    """Its inputs are known, and all that must be given is given."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    (text,) = re.findall(r"```yaml\n(on:.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["runs"]["steps"]
    (given,) = [step["with"] for step in steps if "spanscore@" in step.get("uses", "")]

    assert given.keys() <= action["inputs"].keys()
    assert {name for name, each in action["inputs"].items() if each.get("required")} <= given.keys()
