"""docs/tutorial.md: every step is run as it stands with the real framework, and says what the page says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from deadline import DEADLINE_S
from integration.frameworks import FRAMEWORKS, need_environment

TEXT = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
PARTS = re.findall(r"^```(sh|py)\n(.*?)^```|((?:^ {4}[^\n]*\n|^\n(?= {4}))+)", TEXT, re.DOTALL | re.MULTILINE)
(PYDANTIC_AI,) = [framework for framework in FRAMEWORKS if framework.name == "pydantic_ai"]
FAILING = ("spanscore score new.jsonl", "spanscore diff")


def ran(command: str, directory: Path) -> tuple[int, str]:
    """Have a shell run a command in the framework's environment; return its status and all that it wrote."""
    path = os.pathsep.join([str(PYDANTIC_AI.bin), os.environ["PATH"]])
    ended = subprocess.run(
        ["sh", "-ec", command],
        cwd=directory,
        env={**os.environ, "PATH": path, "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    return ended.returncode, ended.stdout


def test_every_step_says_what_the_page_says(tmp_path: Path) -> None:
    """The lines that stand behind a command are in what it wrote, or in the file that they are of, in that order."""
    need_environment(PYDANTIC_AI.environment_name)
    said = ""
    for language, text, shown in PARTS:
        if language == "py":
            (tmp_path / "agent.py").write_text(text, encoding="utf-8")
        elif language == "sh":
            status, said = ran(text, tmp_path)
            assert status == int(text.startswith(FAILING)), said
            for file in re.findall(r"[\w.]+\.(?:yaml|md)\b", text):
                said += (tmp_path / file).read_text(encoding="utf-8")
        elif said:
            words = " ".join(said.split())
            place = 0
            for line in filter(None, map(str.strip, shown.splitlines())):
                found = words.find(" ".join(line.split()), place)
                assert found >= 0, f"{line!r} is not said, or not in its place: {said}"
                place = found + 1
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert 'failures="10"' in (tmp_path / "junit.xml").read_text(encoding="utf-8")
