"""The files that deploy/ ships, with the addresses of the machine they run on now. Nothing else in them is changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

DEPLOY: Final = Path(__file__).parents[1]


def placed(shipped: str, directory: Path, replacements: Mapping[str, str]) -> Path:
    """Write a shipped file into a directory with some texts replaced, and return where.

    Raises:
        AssertionError: a text to replace is not in the file.
    """
    text = (DEPLOY / shipped).read_text(encoding="utf-8")
    for old, new in replacements.items():
        if old not in text:
            message = f"deploy/{shipped} does not have {old!r}"
            raise AssertionError(message)
        text = text.replace(old, new)
    path = directory / shipped.replace("/", "-")
    path.write_text(text, encoding="utf-8")
    return path
