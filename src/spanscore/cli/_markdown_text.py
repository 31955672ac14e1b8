"""Text that may be anything, in Markdown, where it must make no markup, leave no table and call nobody."""

from __future__ import annotations

import re
from typing import Final

from spanscore.wording.printable import printable

_LONGEST_CODE: Final = 200
_LONGEST_TEXT: Final = 500


def code(text: str) -> str:
    """Return a text as code, in which nothing is read as Markdown, HTML or a person's name."""
    shown = printable(text, _LONGEST_CODE).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def as_text(text: str) -> str:
    """Return a text as one line in which nothing is read as Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#+!|@~&])", r"\\\1", printable(text, _LONGEST_TEXT))
