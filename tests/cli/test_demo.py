"""`spanscore demo`: what it prints, and what it shows in a browser until it is ended."""

from __future__ import annotations

import io
import re
import signal
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from commands import spanscore, started
from deadline import DEADLINE_S
from emitters.reports import NOT_PASSED, PASSED, report, trajectory
from reports.page.shown_runs import embedded_in
from serving import eventually
from spanscore.cli._report_table import Table
from spanscore.cli._summary import Summary
from spanscore.model import Skipped
from spanscore.scoring.evaluator_entry import EvaluatorEntry


@pytest.mark.waits
def test_it_says_where_its_runs_can_be_seen(tmp_path: Path) -> None:
    """The page has all runs and the conversation, with their arguments; Ctrl-C ends it."""
    output, errors = tmp_path / "output", tmp_path / "errors"
    with started("demo", "--keep", output=output, errors=errors) as demo:
        address = re.compile(r"(http://localhost:\d+/)$", re.MULTILINE)
        eventually(lambda: output.exists() and bool(address.search(output.read_text())))
        (url,) = address.findall(output.read_text())

        def page() -> str:
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
                return str(answer.read().decode())

        eventually(lambda: len(embedded_in(page())["batches"]) == 13)
        assert "A-1042" in page()
        assert "A-2077" in page()
        demo.send_signal(signal.SIGINT)

        assert (0, "") == (demo.wait(), errors.read_text())


def test_runs_are_printed_as_they_come() -> None:
    """The reasons follow when all are in."""
    out = io.StringIO()
    table = Table(out, at_once=True)
    summary = Summary((EvaluatorEntry(name="e1", type="test", resolve=lambda _: Skipped("unused")),))
    for number, passed in enumerate((PASSED, NOT_PASSED, NOT_PASSED)):
        made = report(passed, about=replace(trajectory(), trace_id=number.to_bytes(16, "big")))
        table.add(made)
        summary.add(made)
        assert f"{number:032x}" in out.getvalue()
    before = out.getvalue()
    table.finish(summary)

    assert "runs failed" not in before
    assert out.getvalue().startswith(before)
    assert "\n2 of 3 runs failed, for 1 reason" in out.getvalue()


@pytest.mark.processes
def test_a_pause_and_a_conversation() -> None:
    """A run that waits for an approval is judged when it is whole; two turns that pass may be too many refunds."""
    ended = spanscore("demo")
    runs, rest = ended.stdout.split("\n\n", 2)[1:]
    told = [" ".join(line.split()[4:]) for line in runs.splitlines() if not line.startswith("  ")][8:]

    assert (0, "") == (ended.returncode, ended.stderr)
    assert ["2 tool calls incomplete (pauses for issue_refund)", "3 tool calls continues after a pause"] == told[:2]
    assert [True, True] == [line.endswith(" 3 tool calls") for line in told[2:4]]
    assert told[4].startswith("conversation ")
    assert told[4].endswith(", 2 turns so far 6 tool calls")
    assert "once 0 0 of 1 rules were kept;" in " ".join(runs.split())
    assert "Call 6 is call 3 of turn 2." in " ".join(runs.split())
    assert rest.startswith("5 of 12 runs failed, 1 of 1 conversation failed, for 5 reasons\n")
