"""Which boards the pictures are of: `python deploy/proof/pictured.py` notes that it is the boards as they are.

A picture of a board that has changed since says what is not true any more, and nobody sees it.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Final

from shipped import DEPLOY

PICTURES: Final = DEPLOY / "pictures"
NOTED: Final = "boards.sha256"
"""As `sha256sum --check` reads it, beside the pictures."""
_BOARDS: Final = "grafana/dashboards"


def noted(directory: Path = PICTURES) -> str:
    """Return what was noted when the pictures in a directory were taken."""
    path = directory / NOTED
    return path.read_text(encoding="utf-8") if path.exists() else ""


def now() -> str:
    """Return what is to be noted of the boards as they are."""
    boards = sorted((DEPLOY / _BOARDS).glob("*.json"))
    digests = ((hashlib.sha256(board.read_bytes()).hexdigest(), board.name) for board in boards)
    return "".join(f"{digest}  ../{_BOARDS}/{name}\n" for digest, name in digests)


def note(directory: Path = PICTURES) -> None:
    """Say that the pictures in a directory are of the boards as they are."""
    (directory / NOTED).write_text(now(), encoding="utf-8")


if __name__ == "__main__":
    note(*map(Path, sys.argv[1:]))
