"""The recipe of the guide to expectations, from a run that was right to a run that fails, works as it is printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deadline import DEADLINE_S

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "say-what-your-agent-should-do.md").read_text(encoding="utf-8")
RECIPE = PAGE.partition("### Rows from runs that were right")[2].partition("\n## ")[0]
COMMANDS = [text for text in re.findall(r"```sh\n(.*?)```", RECIPE, re.DOTALL) if "spanscore" in text]
(PRINTED,) = re.findall(r"```text\n(.*?)```", RECIPE, re.DOTALL)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory that has the recordings where a checkout has them, and takes what the commands write."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def shell(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Have a shell run commands."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["sh", "-c", script],
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.full_size
def test_the_recipe(checkout: Path) -> None:
    """Scored lines are rows, the recording passes against itself, and a changed one fails under the case's name."""
    expect, change = COMMANDS

    passed = shell(expect, checkout)
    assert (0, "") == (passed.returncode, passed.stderr)
    assert "golden.yaml: valid, 1 evaluator" in passed.stdout
    assert 4 == len((checkout / "golden.jsonl").read_text().splitlines())

    failed = shell(change, checkout)
    assert "" == failed.stderr
    assert failed.stdout.endswith(f"\n{PRINTED}")
    assert 1 == shell("spanscore score changed.jsonl --config golden.yaml", checkout).returncode
