"""Scores on the terminal: a line of text for each run, or a table that is kept up to date."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, TextIO

from spanscore.contracts import Emitter, Host
from spanscore.emitters._report_line import line
from spanscore.emitters._waiting_lines import WaitingLines
from spanscore.model import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleExporter:
    """Prints one line for each run."""


class Console:
    """The terminal.

    Shows scores as they come: a live table on a terminal of our own, otherwise a line for each run.

    A terminal that is stopped, or a reader that does not read, holds nothing up: lines wait in a queue, and those
    that do not fit are left out and counted.

    This is what prints lines, on a thread of its own; `on` returns the table where there can be one.

    Args:
        out: where to.
        clock: the time in seconds since the Unix epoch.
    """

    Settings: ClassVar = ConsoleExporter

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.time) -> None:
        self._out: Final = out
        self._clock: Final = clock
        self._lines: Final = WaitingLines("console", self._print)
        self.outbox: Final = self._lines.outbox
        """Lines that wait to be printed."""

    @classmethod
    def configured(cls, settings: ConsoleExporter, host: Host) -> Emitter:  # noqa: ARG003 - nothing can be set
        """Return the emitter for standard output."""
        return cls.on(sys.stdout, owns_terminal=host.owns_terminal)

    @classmethod
    def on(cls, out: TextIO, clock: Callable[[], float] = time.time, *, owns_terminal: bool = True) -> Emitter:
        """Return the emitter that shows scores on an output.

        Args:
            out: where to.
            clock: as above.
            owns_terminal: nobody else writes there: a table that is drawn again and again has to know of all that is.
        """
        if not owns_terminal or not out.isatty() or os.environ.get("TERM", "") in ("", "dumb", "unknown"):
            return cls(out, clock)
        from spanscore.emitters._live_table import LiveTable  # noqa: PLC0415 - rich is slow to load

        return LiveTable(out, clock)

    at_most_once: Final = True
    """A line that was printed before a restart is not printed again, such as that of a run that pauses."""
    needs_results: Final = False
    """Results of calls are printed only with `tool_content: true`."""

    def emit(self, report: Report) -> None:
        """Queue a line, to be printed soon."""
        if report.trajectory.recognised:
            self._lines.put(line(report, self._clock()))

    def flush(self, timeout_s: float) -> bool:
        """Wait until all lines are printed."""
        return self._lines.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Wait until all lines are printed, and stop."""
        flushed = self.flush(timeout_s)
        self._lines.end()
        return flushed

    def _print(self, text: str) -> None:
        self._out.write(_encodable(text, self._out.encoding))
        self._out.flush()


def _encodable(text: str, encoding: str | None) -> str:
    """Replace characters that the terminal's encoding does not have."""
    known = encoding or "utf-8"
    return text.encode(known, "backslashreplace").decode(known)
