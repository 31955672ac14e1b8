"""What the README says is true: its tables, its configurations, its code and its commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deadline import DEADLINE_S
from spanscore import config
from spanscore.plugins import Kind, names

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def table(kind: Kind) -> str:
    """Return the README's table of the plug-ins of a kind."""
    rows = [f"| `{name}` | {config.describe(name, kind).summary} |" for name in names(kind) if name != "custom"]
    return "\n".join([f"| {kind[:-1]} | |", "|---|---|", *rows])


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language."""
    return [text for found, text in BLOCKS if found == language]


@pytest.mark.parametrize("kind", ["evaluators", "dialects"])
def test_tables_are_current(kind: Kind) -> None:
    """Between its marks stands what the plug-ins say of themselves; `python tests/test_readme.py` writes it anew."""
    marked = README.read_text(encoding="utf-8").partition(f"<!-- {kind} -->\n")[2].partition(f"<!-- /{kind} -->")[0]

    assert f"{table(kind)}\n" == marked


@pytest.mark.parametrize("text", blocks("yaml"))
def test_configurations_are_right(text: str) -> None:
    """Every configuration can be loaded as it stands."""
    assert config.loads(text, "README", ROOT).evaluators


@pytest.mark.parametrize("text", blocks("python"))
def test_code_runs(text: str) -> None:
    """Every piece of Python runs as it stands."""
    command = [sys.executable, "-W", "error", "-c", f"{text}\nprovider.shutdown()"]

    assert 0 == subprocess.run(command, cwd=ROOT, timeout=DEADLINE_S, check=False).returncode


@pytest.mark.parametrize("text", [text for text in blocks("sh") if text.startswith("spanscore score")])
def test_commands_run(text: str) -> None:
    """The commands that end by themselves do what the text says."""
    command = [sys.executable, "-m", *shlex.split(text)]
    done = subprocess.run(command, cwd=ROOT, timeout=DEADLINE_S, capture_output=True, text=True, check=False)

    assert (1, "") == (done.returncode, done.stderr)
    assert "6 trajectories, 16 tool calls" in done.stdout


def write_tables() -> None:
    """Write the tables into the README."""
    text = README.read_text(encoding="utf-8")
    kinds: tuple[Kind, ...] = ("evaluators", "dialects")
    for kind in kinds:
        text = re.sub(
            f"(<!-- {kind} -->\n).*?(<!-- /{kind} -->)",
            lambda match, kind=kind: f"{match[1]}{table(kind)}\n{match[2]}",
            text,
            flags=re.DOTALL,
        )
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables()
