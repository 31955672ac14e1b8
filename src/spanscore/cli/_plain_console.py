"""The console for tables with names from outside."""

from __future__ import annotations

from typing import Any, Final, TextIO

from rich.console import Console
from rich.text import Text

from spanscore.cli._columns import width_of

_WIDTH: Final = 120


class PlainConsole(Console):
    """A console that prints text as it is: brackets and colons in it mean nothing.

    Characters that the output cannot encode are escaped before columns are measured. Lines have `width` if neither
    `COLUMNS` nor a terminal limits them.
    """

    def __init__(self, out: TextIO, width: int = _WIDTH) -> None:
        super().__init__(file=out, highlight=False, markup=False, emoji=False, width=width_of(out) or width)

    def render_str(self, text: str, **how: Any) -> Text:
        """Return a text in the form in which it is written."""
        return super().render_str(self.written(text), **how)

    def written(self, text: str) -> str:
        """Return the characters that are written for a text."""
        encoding, errors = getattr(self.file, "encoding", None), getattr(self.file, "errors", None)
        if text.isascii() or encoding is None or errors is None:
            return text
        try:
            return text.encode(encoding, errors).decode(encoding)
        except UnicodeError:
            return text  # the stream fails, too
