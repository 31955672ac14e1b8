"""The installation that the documentation begins with, in a copy of the checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("pyproject.toml", "README.md", "LICENSE", "src", "config")
TIMEOUT_S = 600.0
PAGE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
PRINTED = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]


def test_the_installation_works_as_it_is_printed(tmp_path: Path) -> None:
    """In a virtual environment of its own, with nothing but what the package names as needed, the command works."""
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    assert "pip install ." in PRINTED

    subprocess.run(["sh", "-ec", PRINTED], cwd=tmp_path, check=True, timeout=TIMEOUT_S, capture_output=True)
    shown = subprocess.run(
        [".venv/bin/spanscore", "list"], cwd=tmp_path, check=True, timeout=TIMEOUT_S, capture_output=True, text=True
    )
    assert "tool_call_trajectory" in shown.stdout
