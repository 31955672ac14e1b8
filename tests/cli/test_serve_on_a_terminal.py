"""What a person sees who runs `spanscore serve` on a terminal: the table, and the log above it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from commands import started
from deadline import DEADLINE_S
from warm import Fork

CONFIGURATION = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}, grpc: {endpoint: "127.0.0.1:0"}}}}
exporters: {console: {}}
"""
CONTROL = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[a-z]|\r|\n|[^\x1b\r\n]+")


def screen(text: str) -> list[str]:
    """Return the lines that stand on a terminal: text, new lines, lines erased, and the cursor moved up."""
    lines, row = [""], 0
    for found in CONTROL.finditer(text):
        if found[0] == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif found[2] == "A":
            row -= int(found[1] or 1)
        elif found[2] == "K":
            lines[row] = ""
        elif not found[0].startswith(("\x1b", "\r")):
            lines[row] += found[0]
    return lines


class Watched:
    """A terminal, and what was written there and to the log so far."""

    def __init__(self, terminal: int, log: Path) -> None:
        self._terminal = terminal
        self._log = log
        self.text = ""
        self._is_over = False

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Return the first place on the terminal or in the log that looks so, as soon as it is there."""
        deadline = time.monotonic() + DEADLINE_S
        while (found := re.search(pattern, self.text) or re.search(pattern, self._log.read_text())) is None:
            assert not self._is_over, self.text
            assert time.monotonic() < deadline, self.text
            self._read(0.1)
        return found

    def read_to_the_end(self, program: Fork) -> None:
        """Read until the program has ended, and its end of the terminal is closed.

        What was written last may arrive after the end of the program; a terminal without a writer is an error.
        """
        while not self._is_over:
            self._read(DEADLINE_S)
        program.wait()

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self._terminal], [], [], timeout_s)[0]:
            return False
        try:
            read = os.read(self._terminal, 65_536)
        except OSError:  # nobody has the other end any more
            self._is_over = True
            return False
        self.text += read.decode(errors="replace")
        return bool(read)


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_the_log_stands_above_the_table(tmp_path: Path, *, is_elsewhere: bool) -> None:
    """No line of it is drawn over, and the table stands there once; where the log goes elsewhere, it stays there."""
    path, log = tmp_path / "serve.yaml", tmp_path / "log"
    path.write_text(CONFIGURATION)
    terminal, other_end = pty.openpty()
    log.touch()
    shown = Path(os.ttyname(other_end))
    streams = {"source": shown, "output": shown, "errors": log if is_elsewhere else shown}
    program = started("serve", "--config", path, **streams, TERM="xterm", COLUMNS="300", LINES="50")
    os.close(other_end)
    watched = Watched(terminal, log)
    try:
        url = watched.wait_for(r"TRACES_ENDPOINT=(\S+?)[\s\x1b]")[1]
        watched.wait_for("runs scored")
        refused = urllib.request.Request(url, b"{", {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(refused, timeout=DEADLINE_S)
        watched.wait_for("(?s)requests refused.*" if is_elsewhere else "(?s)requests refused(.*runs scored){2}")
        program.send_signal(signal.SIGINT)
        watched.read_to_the_end(program)
    finally:
        program.close()
        os.close(terminal)
    seen = screen(watched.text)
    assert 1 == sum("runs scored" in line for line in seen), seen
    told = log.read_text().splitlines() if is_elsewhere else seen
    assert 1 == sum("requests refused (malformed)" in line for line in told), told
    assert is_elsewhere != any("requests refused" in line for line in seen)
