"""Reads the rows of a dataset: JSON Lines, JSON, CSV or YAML, told apart by the end of the file's name.

A row is a mapping. In a CSV file its cells are text, and empty ones are left out.
"""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from spanscore.config._nodes import dotted
from spanscore.config.datasets.json_text import JsonError, JsonText, parse_json
from spanscore.messages.plural import plural
from spanscore.model import JSON

MAX_BYTES: Final = 64 << 20
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)  # not on Windows


class DatasetRow(NamedTuple):
    """One case."""

    line: int
    """The line on which it starts."""
    cells: dict[str, JSON]


class Fault(NamedTuple):
    """A place where the file cannot be read."""

    line: int
    """0 when it is about the whole file."""
    message: str


Rows: TypeAlias = Iterator[DatasetRow | Fault]


def rows(path: Path) -> Rows:
    """Yield every row of a file, and a fault in place of an unreadable part."""
    reader = _FORMATS.get(path.suffix.lower())
    if reader is None:
        yield Fault(0, f"the name of a dataset must end in {', '.join(_FORMATS)}")
        return
    try:
        content = _content(path)
    except (OSError, ValueError) as error:
        yield Fault(0, f"cannot be read: {getattr(error, 'strerror', None) or error}")
        return
    if len(content) > MAX_BYTES:
        yield Fault(0, f"must not be larger than {MAX_BYTES >> 20} MiB")
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield Fault(content.count(b"\n", 0, error.start) + 1, "must be UTF-8")
        return
    yield from reader(text)


def _content(path: Path) -> bytes:
    """Return the content of a file, at most one byte more than allowed. Reading a device could block forever."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        return file.read(MAX_BYTES + 1)


def _row(line: int, data: JSON) -> DatasetRow | Fault:
    return DatasetRow(line, data) if isinstance(data, dict) else Fault(line, "a row must be a mapping")


def _json_lines(text: str) -> Rows:
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            try:
                yield _row(line, parse_json(content))
            except ValueError as error:
                yield Fault(line, str(error))


def _json(text: str) -> Rows:
    parser = JsonText(text)
    try:
        for data in parser.items():
            yield _row(parser.line, data)
    except ValueError as error:
        yield Fault(error.line if isinstance(error, JsonError) else parser.line, str(error))


def _csv(text: str) -> Rows:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    names: list[str] = []
    try:
        for cells in reader:
            if not names:
                names = cells
                twice = sorted({name for name in names if names.count(name) > 1})
                if twice:
                    yield Fault(line, f"the column {twice[0]!r} is there twice")
                    return
                if len(names) == 1 and ";" in names[0]:
                    yield Fault(line, "separated by ';' instead of ','")
                    return
            elif len(cells) > len(names):
                told = f"has {plural(len(cells), 'cell')}, but there {'is' if len(names) == 1 else 'are'}"
                yield Fault(line, f"{told} {plural(len(names), 'column')}")
            elif cells:
                yield DatasetRow(line, {name: cell for name, cell in zip(names, cells, strict=False) if cell})
            line = reader.line_num + 1
    except csv.Error as error:
        yield Fault(line, f"not valid CSV: {error}")


def _yaml(text: str) -> Rows:
    from spanscore.config._yaml import read  # noqa: PLC0415 - datasets in YAML are few

    node, problems = read(text, None)
    for problem in problems:
        where = f"{dotted(problem.path)}: " if problem.path else ""
        yield Fault(problem.place.line, where + problem.message)
    if node is None or problems:
        return
    if not isinstance(node.value, list):
        yield Fault(node.place.line, "must hold a list of rows")
        return
    for item in node.value:
        yield _row(item.place.line, item.data())


_FORMATS: Final[Mapping[str, Callable[[str], Rows]]] = {
    ".jsonl": _json_lines,
    ".json": _json,
    ".csv": _csv,
    ".yaml": _yaml,
    ".yml": _yaml,
}
