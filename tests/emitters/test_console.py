from __future__ import annotations

import io
import os
import re
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from deadline import DEADLINE_S
from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED, TRACE_ID, report, trajectory
from spanscore.contracts import Host, SendsInBackground
from spanscore.emitters.console import Console, ConsoleExporter
from spanscore.model import CloseReason, Completeness, ConversationOutline, FinishReason, Report, Score

NOON = 1_700_000_000.0


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def printed(*reports: Report, encoding: str = "utf-8") -> list[str]:
    """Return the lines printed where there is no terminal."""
    raw = io.BytesIO()
    console = Console(io.TextIOWrapper(raw, encoding), clock=lambda: NOON)
    for each in reports:
        console.emit(each)
    assert console.close(DEADLINE_S)
    return raw.getvalue().decode(encoding).split("\n")[:-1]


def test_line_of_a_trajectory_that_passed() -> None:
    """Without a terminal a trajectory is a line: the time, a mark, its trace, its agent and every score."""
    assert [f"22:13:20 ✓ {TRACE_ID.hex()} refund e1=1 golden=skipped"] == printed(report(PASSED, golden=SKIPPED))


def test_line_of_a_trajectory_that_failed() -> None:
    """The line of a trajectory that failed says what failed and why."""
    assert [f"22:13:20 ✗ {TRACE_ID.hex()} refund e1=1 e2=0.25 e3=failed  e2: 1 of 4 calls; e3: KeyError"] == printed(
        report(PASSED, NOT_PASSED, BROKEN)
    )


def test_why_an_evaluator_failed() -> None:
    """What its exception says may quote arguments, and is printed only where these may be told."""
    assert [f"22:13:20 ✗ {TRACE_ID.hex()} refund e1=failed  e1: KeyError: 'city'"] == printed(
        replace(report(BROKEN), tool_content=True)
    )


def test_line_of_a_trajectory_that_no_evaluator_is_for() -> None:
    """What checked nothing says so."""
    assert [f"22:13:20 - {TRACE_ID.hex()} refund  no evaluator matches it"] == printed(report())


def test_line_of_a_trajectory_that_is_incomplete() -> None:
    """Where spans are missing the line says so; without an agent it names the service."""
    about = trajectory(agent=None, completeness=Completeness(spans_missing=1))

    why = "e1: no arguments were recorded"
    assert [f"22:13:20 - {TRACE_ID.hex()} shop e1=skipped incomplete (1 span not received)  {why}"] == printed(
        report(SKIPPED, about=about)
    )


@pytest.mark.parametrize("reason", [CloseReason.SPAN_LIMIT, CloseReason.SIZE_LIMIT])
def test_line_of_a_trajectory_that_a_limit_cut(reason: CloseReason) -> None:
    """The line says which limit, and what that means for the scores."""
    cut = replace(report(PASSED, about=trajectory(completeness=Completeness(truncated=True))), close_reason=reason)

    assert [f"22:13:20 ✓ {TRACE_ID.hex()} refund e1=1 passes in part ({reason}: later calls were not scored)"] == (
        printed(cut)
    )


def test_line_of_a_revision() -> None:
    """What takes the place of an earlier line, maybe of an equal one, says so."""
    first = report(PASSED)
    line = f"22:13:20 ✓ {TRACE_ID.hex()} refund e1=1"
    assert [line, f"{line} revision 1", f"{line} revision 2"] == printed(
        first, replace(first, revision=1), replace(first, revision=2)
    )


def test_names_move_no_cursor() -> None:
    """Names and explanations from outside cannot write to the terminal or begin a line of their own."""
    hostile = "\x1b[2J\r\n\u202e" + "x" * 100
    (line,) = printed(
        report(**{hostile: Score(0.0, passed=False, explanation=hostile * 9)}, about=trajectory(agent=hostile))
    )

    assert line.isprintable()
    assert len(line) < 600


def test_encoding_without_the_characters() -> None:
    """A terminal that knows only ASCII gets escapes, not an error."""
    assert [f"22:13:20 \\u2713 {TRACE_ID.hex()} caf\\xe9 e1=1"] == printed(
        report(PASSED, about=trajectory(agent="café")), encoding="ascii"
    )


def test_reader_that_stopped_reading() -> None:
    """When nobody reads the pipe, emitting goes on; lines that do not fit are counted, and closing keeps its time."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as out:
        console = Console(out)
        for _ in range(20_000):
            console.emit(report(PASSED))
        assert 0 < console.outbox.failures["queue_full"] <= 10_000

        assert not console.flush(0.1)
        assert not console.close(0.1)  # and nobody has read anything

        os.set_blocking(reading, False)
        while console.outbox.size:
            with suppress(BlockingIOError):
                os.read(reading, 1 << 20)
    os.close(reading)


def test_reader_that_is_gone() -> None:
    """A pipe that nobody will read any more is a failure of each line."""
    reading, writing = os.pipe()
    os.close(reading)
    out = os.fdopen(writing, "w")
    console = Console(out)
    console.emit(report(PASSED))

    assert not console.close(DEADLINE_S)
    assert {"BrokenPipeError": 1} == console.outbox.failures
    with pytest.raises(BrokenPipeError):
        out.close()


class Screen:
    """A real terminal, read from the other side."""

    def __init__(self) -> None:
        self._screen, terminal = os.openpty()
        self.terminal = os.fdopen(terminal, "w")

    def text(self) -> str:
        """Return what was written, without the codes that move the cursor and change colours."""
        self.terminal.flush()
        shown = b""
        while select.select([self._screen], [], [], 0)[0]:
            shown += os.read(self._screen, 1 << 16)
        return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode())

    def close(self) -> None:
        """Close both sides."""
        self.terminal.close()
        os.close(self._screen)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    """A terminal that can do what terminals can."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    screen = Screen()
    yield screen
    screen.close()


def test_table_on_a_terminal(screen: Screen) -> None:
    """On a terminal, a table counts runs and outcomes; the last failing runs are below it. A conversation is no run."""
    console = Console.on(screen.terminal, clock=lambda: NOON)
    console.emit(report(PASSED, SKIPPED))
    console.emit(report(NOT_PASSED, BROKEN))
    finished = ConversationOutline(turns=(), finished=FinishReason.IDLE)
    console.emit(replace(report(about=trajectory()), conversation=finished))
    assert console.flush(0)
    assert console.close(DEADLINE_S)

    last = screen.text().rpartition("runs scored")
    rows = [line.split() for line in last[2].splitlines() if line.strip()]
    assert last[0].endswith("2 ")
    assert ["evaluator", "type", "passed", "failed", "skipped", "errors", "mean"] == rows[0]
    assert ["e1", "tool_call_count", "1", "1", "0", "0", "0.625"] == rows[1]
    assert ["e2", "tool_call_count", "0", "0", "1", "1", "-"] == rows[2]
    assert ["22:13:20", "✗", TRACE_ID.hex(), "refund", "e1=0.25", "e2=failed"] == rows[3][:6]
    assert not isinstance(console, SendsInBackground)


def test_dumb_terminal_gets_lines(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that cannot move its cursor gets lines."""
    monkeypatch.setenv("TERM", "dumb")
    console = Console.on(screen.terminal, clock=lambda: NOON)
    console.emit(report(PASSED))

    assert console.close(DEADLINE_S)
    assert f"22:13:20 ✓ {TRACE_ID.hex()} refund e1=1" == screen.text().strip()


def test_another_ones_terminal_gets_lines(screen: Screen) -> None:
    """A terminal that an application writes to, too, gets lines: nothing is drawn over what that prints."""
    console = Console.on(screen.terminal, clock=lambda: NOON, owns_terminal=False)
    console.emit(report(PASSED))

    assert console.close(DEADLINE_S)
    assert f"22:13:20 ✓ {TRACE_ID.hex()} refund e1=1" == screen.text().strip()


def test_standard_output_by_default(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Without being told where, it prints to standard output."""
    console = Console.configured(ConsoleExporter(), Host(owns_terminal=False))
    console.emit(report(PASSED))
    assert console.close(DEADLINE_S)

    assert f"✓ {TRACE_ID.hex()} refund e1=1\n" == capsys.readouterr().out.partition(" ")[2]
