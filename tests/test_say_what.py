"""The guide to expectations: every step is run as it stands, and says what the page says; so does the page of tools."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest
import yaml

import commands
import spanscore
from cases import failing

ROOT = Path(__file__).parents[1]
STEPS, _ = (ROOT / "docs" / "say-what-your-agent-should-do.md").read_text("utf-8").split("## More about datasets")
_, TABLES = (ROOT / "docs" / "other-tools.md").read_text("utf-8").split("## From their expectations to these")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", STEPS, re.DOTALL)
COMMANDS = [text.strip() for language, text in BLOCKS if language == "sh"]
HERE = re.findall(r"`(\{type: .*?\})`", TABLES)


def ran(command: str) -> tuple[int, str]:
    """Run a command as a shell would, to which its words are plain; return its status and all that it wrote."""
    program, *arguments = shlex.split(command)
    assert ("spanscore", command) == (program, shlex.join([program, *arguments]))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = commands.spanscore(*arguments, PATH=path)
    return ended.returncode, " ".join((ended.stderr + ended.stdout).split())


def test_the_page_is_short() -> None:
    """Ten minutes, at two hundred words a minute."""
    assert len(STEPS.split()) < 2_000


@pytest.mark.full_size
def test_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line that a step shows is said, in that order, and nothing else is wrong; the gate tells by its status."""
    status, said = 0, ""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(ROOT / "config")
    for language, text in BLOCKS:
        if language == "sh":
            status, said = ran(text.strip())
        elif language == "yaml" and text.startswith("evaluators:"):
            (tmp_path / "spanscore.yaml").write_text(text, encoding="utf-8")
            status, said = ran("spanscore score runs.jsonl --config spanscore.yaml")
            assert 1 == status
        elif language == "json":
            assert text == (ROOT / "config" / "cases.jsonl").read_text(encoding="utf-8")
        else:
            place = 0
            for line in text.splitlines():
                found = said.find(" ".join(line.split()), place)
                assert found >= 0, f"{line!r} is not said, or not in its place: {said}"
                place = found + 1

    assert 1 == status
    assert "<testsuites" in (tmp_path / "junit.xml").read_text(encoding="utf-8")


def test_what_to_write_here() -> None:
    """Each evaluator of the tables can be built as it stands."""

    def check(evaluator: str) -> None:
        parameters = yaml.safe_load(evaluator)

        assert spanscore.evaluator(parameters.pop("type"), parameters)

    assert [] == failing(check, {evaluator: (evaluator,) for evaluator in HERE})


def test_every_peer_has_a_table() -> None:
    """With a line for each thing that is said there."""
    tables = re.findall(r"^### (.+?)\n\n\| there \| here \|\n\|---\|---\|\n((?:\|.+\n)+)", TABLES, re.MULTILINE)
    names = ["Google ADK", "openevals", "pydantic-evals", "promptfoo", "Mastra", "webmcp-tools", "DeepEval", "MLflow"]

    assert [*names, "Inspect"] == [title.partition(":")[0] for title, _ in tables]
    assert len(HERE) >= 40
