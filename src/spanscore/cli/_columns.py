"""Text in columns: the width of the output, and names with their descriptions, side by side."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

_NARROWEST_TEXT: Final = 24
_GAP: Final = 2


def width_of(out: TextIO) -> int | None:
    """Return the width of lines: COLUMNS, else the width of the terminal; None if neither limits it."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(out.fileno()).columns or None
    except (OSError, ValueError):  # it is no terminal, or not even a file
        return None


def side_by_side(
    entries: Iterable[tuple[str, str]], width: int | None, longest: int, indent: str = ""
) -> Iterator[str]:
    """Yield a line for each name and its text.

    If lines have a width, a long text continues in its column, or, if that is too narrow, below the name. The column
    starts after `longest` characters, so that separate lists can share it.
    """
    column = len(indent) + longest + _GAP
    for name, text in entries:
        if width is None:
            yield f"{indent}{name}".ljust(column) + text
        elif width - column >= _NARROWEST_TEXT:
            first, *others = _wrapped(text, width - column)
            yield (f"{indent}{name}".ljust(column) + first).rstrip()
            yield from (" " * column + line for line in others)
        else:
            yield f"{indent}{name}"
            yield from (f"{indent}    {line}" for line in _wrapped(text, width - len(indent) - 4))


def _wrapped(text: str, width: int) -> Iterable[str]:
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False, break_long_words=False) or [""]
