"""Text from outside, made safe to print: names, errors and explanations may hold anything."""

from __future__ import annotations

from typing import Final

NAME_WIDTH: Final = 60


def printable(text: str, width: int = NAME_WIDTH) -> str:
    """Return text as one line without anything that moves the cursor, cut to a width."""
    shown = text[: width + 1]  # a name may be a megabyte long
    if not shown.isprintable():
        shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in shown)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def encodable(text: str) -> str:
    """Return text that UTF-8 can encode: one half of a surrogate pair would fail the export of a whole batch."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
