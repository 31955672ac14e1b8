"""`spanscore demo --keep`: what it shows can be looked at in a browser until it is ended."""

from __future__ import annotations

import re
import signal
import urllib.request
from pathlib import Path

from commands import started
from deadline import DEADLINE_S
from reports.page.shown_runs import embedded_in
from serving import eventually


def test_it_says_where_its_runs_can_be_seen(tmp_path: Path) -> None:
    """The page has all eight, with their arguments; Ctrl-C ends it."""
    output, errors = tmp_path / "output", tmp_path / "errors"
    with started("demo", "--keep", output=output, errors=errors) as demo:
        address = re.compile(r"(http://localhost:\d+/)$", re.MULTILINE)
        eventually(lambda: output.exists() and bool(address.search(output.read_text())))
        (url,) = address.findall(output.read_text())

        def page() -> str:
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
                return str(answer.read().decode())

        eventually(lambda: len(embedded_in(page())["batches"]) == 8)
        assert "A-1042" in page()
        demo.send_signal(signal.SIGINT)

        assert (0, "") == (demo.wait(), errors.read_text())
