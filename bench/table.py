"""The table that the benchmarks print, and where it goes in the README."""

from __future__ import annotations

import os
import platform
import re
import textwrap
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from bench.decoders import FAST, PLAIN
from bench.goals import Cell, Row, Run
from bench.latency import P99
from bench.memory import MEMORY
from bench.servers import JOINED, LARGE, SCORED_RUNS, SENT, SHIPPED, TEN

README: Final = Path(__file__).with_name("README.md")
FRONT: Final = README.parents[1] / "README.md"
BEGIN: Final = "<!-- figures: written by `python -m bench --write` -->"
END: Final = "<!-- end of figures -->"
FOR_USERS: Final = "<!-- for users: written by `python -m bench --write` -->"
END_FOR_USERS: Final = "<!-- end for users -->"

HEADER: Final = (
    "| goal | what | figure | yardstick | ratio | reach | verdict |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)

COLUMNS: Final = (LARGE, TEN, JOINED, SENT, SCORED_RUNS, MEMORY, P99)

_SPEED: Final = re.compile(r"\*\*Speed\*\*: [^;]*;[^)]*\)[^.]*\.(.*?)(?=\n\n)", re.DOTALL)
"""The sentence with the speed, and the rest of its paragraph."""
_PACKAGES: Final = ("protobuf", "grpcio", "aiohttp", "uvloop", "opentelemetry-sdk")


def markdown(row: Row) -> str:
    """Return one line of the table."""
    cells = (row.goal, row.what, row.figure, row.yardstick, row.ratio, row.reach, row.verdict)
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """Return what the figures were measured on, in one line."""
    libraries = [f"{name} {found}" for name in _PACKAGES if (found := _version(name))]
    return f"{os.cpu_count()} cores of {_processor()}, Python {platform.python_version()}, {', '.join(libraries)}"


def update_readme(rows: Iterable[Row], cells: Iterable[Cell], run: Run, *, whole: bool) -> None:
    """Put the figures between the marks; those that were not measured stay, unless the `whole` table was measured."""
    how = f"{machine()}; with --quick" if run.quick else machine()
    text = README.read_text(encoding="utf-8")
    kept = [] if whole else [line for line in _between(text, BEGIN, END) if re.match(r"\| ([FP]\d+)? ", line)]
    lines = [*HEADER, *_merged(kept, [markdown(row) for row in rows])]
    text = _put(text, BEGIN, END, [how, "", *lines])
    known = {} if whole else _of_users(_between(text, FOR_USERS, END_FOR_USERS))
    for name, measured in by_row(cells).items():
        known[name] = {**known.get(name, {}), **measured}
    README.write_text(_put(text, FOR_USERS, END_FOR_USERS, users_table(known)), encoding="utf-8")
    FRONT.write_text(front_page(FRONT.read_text(encoding="utf-8"), known), encoding="utf-8")


def by_row(cells: Iterable[Cell]) -> dict[str, dict[str, str]]:
    """Return the texts of cells by row and column."""
    rows: dict[str, dict[str, str]] = {}
    for cell in cells:
        rows.setdefault(cell.row, {})[cell.column] = cell.text
    return rows


def users_table(known: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the table for users, whose cells are by row and column."""
    lines = [(name, *(cells.get(column, "") for column in COLUMNS)) for name, cells in known.items()]
    return [f"| {' | '.join(line)} |" for line in (("", *COLUMNS), ["---"] * (1 + len(COLUMNS)), *lines)]


def front_page(text: str, known: Mapping[str, Mapping[str, str]]) -> str:
    """Return the project's README with the speeds of the table for users; as it is where one was not measured."""
    speeds = []
    for decoder in (PLAIN, FAST):
        cells = [known.get(f"{SHIPPED}: {decoder}", {}).get(column) for column in (LARGE, SENT)]
        speeds.append([_rounded(1e6 / float(cell.split()[0])) for cell in cells if cell])
    if any(len(each) < len(("large", "sent")) for each in speeds):
        return text
    (large, sent), (large_fast, sent_fast) = speeds
    said = (
        f"**Speed**: one core scores {sent} spans a second in requests of 6 spans, as SDKs of agents send them, and "
        f"{large} in requests of 512; with [the compiled decoder](fast/README.md), {sent_fast} and {large_fast}."
    )
    return _SPEED.sub(lambda found: textwrap.fill(said + found[1], 120, break_on_hyphens=False), text)


def _rounded(value: float) -> str:
    """Return a number with two digits, and zeros."""
    return f"{float(f'{value:.1e}'):,.0f}"


def _between(text: str, begin: str, end: str) -> list[str]:
    return text.partition(begin)[2].partition(end)[0].strip().splitlines()


def _put(text: str, begin: str, end: str, lines: Iterable[str]) -> str:
    before, rest = text.split(begin)
    return "\n".join((before + begin, *lines, end + rest.split(end)[1]))


def _of_users(lines: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the cells of a table for users, by row and column."""
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {name: dict(zip(header[1:], cells, strict=True)) for name, *cells in rows}


def _merged(old: list[str], new: list[str]) -> list[str]:
    """Return all rows in the order of the goals, the new ones instead of the old; a row without a goal goes along."""
    blocks = _blocks(old) | _blocks(new)
    return [line for goal in sorted(blocks, key=lambda goal: (goal[:1], int(goal[1:] or 0))) for line in blocks[goal]]


def _blocks(lines: list[str]) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    goal = ""
    for line in lines:
        if match := re.match(r"\| ([FP]\d+) ", line):
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
