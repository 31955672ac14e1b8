"""Takes the picture of `spanscore demo` that the README shows, from a real run on a terminal.

python docs/take_pictures.py
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

DEMO: Final = Path(__file__).parent / "pictures" / "demo.svg"

_COLUMNS: Final = 112


def on_terminal(command: list[str]) -> str:
    """Run a command on a terminal of its own and return what it wrote, colours included."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(_COLUMNS), "LINES": "200", "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env={**os.environ, **size}) as process:
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
    os.close(ours)
    if process.returncode not in {0, 1}:
        raise SystemExit(written.decode())
    return written.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that nobody writes any more
        return b""


if __name__ == "__main__":
    console = Console(record=True, width=_COLUMNS, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for as long as the process lives
    console.print(Text.from_ansi(on_terminal([sys.executable, "-m", "spanscore", "demo"])))
    # Without the fonts that it would have a browser fetch.
    picture = re.sub(r"@font-face \{.*?\}\n", "", console.export_svg(title="spanscore demo"), flags=re.DOTALL)
    DEMO.write_text(picture, encoding="utf-8")
