"""One command renews all that is made from the code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deadline import DEADLINE_S

ROOT = Path(__file__).parents[1]
MADE = [
    *(ROOT / "docs" / "reference").glob("*.md"),
    *(ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"),
    ROOT / "deploy" / "prometheus" / "kubernetes" / "prometheusrule.yaml",
    ROOT / "config" / "reference.yaml",
    ROOT / "config" / "spanscore.schema.json",
]
WRITTEN_BY_HAND = {ROOT / "docs" / "reference" / "events.md"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with all that the command reads."""
    for name in ("config", "deploy", "docs", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "corpus").symlink_to(ROOT / "tests" / "corpus")
    return tmp_path


def generate(checkout: Path) -> list[str]:
    """Run the command, and return what it says has changed."""
    done = subprocess.run(
        [checkout / "scripts" / "generate"],
        env={**os.environ, "BIN": str(Path(sys.executable).parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout.split()


@pytest.mark.full_size
def test_everything_that_is_made_is_renewed(checkout: Path) -> None:
    """What was changed by hand is made again, and named; what is current is left alone."""
    made = [path.relative_to(ROOT) for path in MADE if path not in WRITTEN_BY_HAND]
    for path in made:
        (checkout / path).write_text("by hand\n", encoding="utf-8")

    assert sorted(path.name for path in made) == sorted(Path(name).name for name in generate(checkout))
    assert [] == generate(checkout)
    for path in made:
        assert (ROOT / path).read_bytes() == (checkout / path).read_bytes(), path
