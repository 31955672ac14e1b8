"""`spanscore demo --keep`: what it shows can be looked at in a browser until it is ended."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request

from commands import SPANSCORE
from deadline import DEADLINE_S
from reports.page.shown_runs import embedded_in
from serving import eventually


def test_it_says_where_its_runs_can_be_seen() -> None:
    """The page has all eight, with their arguments; Ctrl-C ends it."""
    demo = subprocess.Popen([*SPANSCORE, "demo", "--keep"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert demo.stdout is not None
        found = next(match for line in demo.stdout if (match := re.search(r"(http://localhost:\d+/)$", line)))

        def page() -> str:
            with urllib.request.urlopen(found[1], timeout=DEADLINE_S) as answer:
                return str(answer.read().decode())

        eventually(lambda: len(embedded_in(page())["batches"]) == 8)
        assert "A-1042" in page()
    finally:
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=DEADLINE_S)

    assert (0, "") == (demo.returncode, errors)
