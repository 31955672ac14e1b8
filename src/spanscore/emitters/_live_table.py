"""Scores as a table that is kept up to date."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, TextIO

from rich.console import Console as Terminal
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spanscore.contracts.immediate import Immediate
from spanscore.emitters._report_line import line
from spanscore.emitters.sending.in_time import within
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Report
from spanscore.reports.tally import COLUMNS, Tally

_FAILING_SHOWN: Final = 5


class LiveTable(Immediate):
    """Shows what each evaluator has found so far, and the last trajectories that failed.

    Drawn four times a second on a thread of its own, which is also the one that waits when the terminal is stopped.

    Args:
        out: the terminal.
        clock: the time in seconds since the Unix epoch.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float]) -> None:
        self._clock: Final = clock
        self._tallies: Final[dict[str, Tally]] = {}
        self._failing: Final[deque[str]] = deque(maxlen=_FAILING_SHOWN)
        self._scored = 0
        self._lock: Final = Lock()  # guards the numbers while they are drawn
        is_below_log = sys.stderr.isatty()  # else the log is no part of what is drawn over
        self._live: Final = Live(
            console=Terminal(file=out, highlight=False, markup=False, emoji=False),
            get_renderable=self._drawn,
            redirect_stderr=is_below_log,
        )
        # A line of the log beside the first drawing would not know that the table is already there.
        self._live.start(refresh=is_below_log)

    at_most_once: Final = True
    needs_results: Final = False
    """Results of calls are shown only with `tool_content: true`."""

    def emit(self, report: Report) -> None:
        """Count the report in."""
        if not report.trajectory.recognised:
            return
        failing = line(report, self._clock()).rstrip() if report.label == "fail" else None
        with self._lock:
            is_whole = report.conversation is None or report.conversation.finished is not None
            self._scored += report.conversation is None
            for evaluation in report.evaluations if is_whole else ():
                tally = Tally(evaluation.type, evaluation.informational)
                self._tallies.setdefault(evaluation.name, tally).add(evaluation.outcome)
            if failing is not None:
                self._failing.append(failing)

    def close(self, timeout_s: float) -> bool:
        """Leave the table standing as it is at the end."""
        return within(timeout_s, self._live.stop)

    def _drawn(self) -> Group:
        table = Table("evaluator", "type", box=None, padding=(0, 3, 0, 0), header_style="dim")
        for column in COLUMNS:
            table.add_column(column, justify="right")
        with self._lock:
            for name, tally in self._tallies.items():
                table.add_row(printable(name), tally.type, *tally.cells, style=tally.style)
            failing = [Text(each, style="red") for each in self._failing]
            title = Text(f"{plural(self._scored, 'run')} scored", style="bold")
        return Group(title, table, *failing)
