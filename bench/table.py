"""The table that the benchmarks print, and where it goes in the README."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from bench.goals import Row, Run

README: Final = Path(__file__).with_name("README.md")
BEGIN: Final = "<!-- figures: written by `python -m bench --write` -->"
END: Final = "<!-- end of figures -->"

HEADER: Final = (
    "| goal | what | figure | yardstick | ratio | reach | verdict |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)

_PACKAGES: Final = ("protobuf", "grpcio", "aiohttp", "uvloop", "opentelemetry-sdk")


def markdown(row: Row) -> str:
    """Return one line of the table."""
    cells = (row.goal, row.what, row.figure, row.yardstick, row.ratio, row.reach, row.verdict)
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """Return what the figures were measured on, in one line."""
    libraries = [f"{name} {found}" for name in _PACKAGES if (found := _version(name))]
    return f"{os.cpu_count()} cores of {_processor()}, Python {platform.python_version()}, {', '.join(libraries)}"


def update_readme(rows: Iterable[Row], run: Run) -> None:
    """Put the rows between the two marks; rows of goals that were not measured stay as they were."""
    how = f"{machine()}; with --quick" if run.quick else machine()
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    old, after = rest.split(END)
    kept = [line for line in old.splitlines() if line.startswith(("| P", "|  |"))]
    lines = [*HEADER, *_merged(kept, [markdown(row) for row in rows])]
    README.write_text(f"{before}{BEGIN}\n{how}\n\n{chr(10).join(lines)}\n{END}{after}", encoding="utf-8")


def _merged(old: list[str], new: list[str]) -> list[str]:
    """Return all rows in the order of the goals, the new ones instead of the old; a row without a goal goes along."""
    blocks: dict[str, list[str]] = {}
    for lines in (_blocks(old), _blocks(new)):
        blocks.update(lines)
    return [line for goal in sorted(blocks, key=lambda goal: int(goal[1:])) for line in blocks[goal]]


def _blocks(lines: list[str]) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    goal = "P0"
    for line in lines:
        if match := re.match(r"\| (P\d+) ", line):
            goal = match[1]
        blocks.setdefault(goal, []).append(line)
    return blocks


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
