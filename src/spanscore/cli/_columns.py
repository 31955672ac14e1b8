"""Text in columns: how wide the output is, and names with what they are for, side by side."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

_NARROWEST_TEXT: Final = 24
_GAP: Final = 2


def width_of(out: TextIO) -> int | None:
    """Return how wide lines may be: as COLUMNS says, else as wide as the terminal; None where nobody limits it."""
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

    Where lines have a width, a text goes on in its column below, or, where that were too narrow, below the name.
    The column is that of the longest name, also of those that are printed at another time.
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
