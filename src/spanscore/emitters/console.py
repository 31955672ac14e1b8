"""Scores on the terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Self, TextIO

from spanscore.contracts import Host
from spanscore.emitters._lines import Lines
from spanscore.model import Report
from spanscore.sending.outbox import Outbox

if TYPE_CHECKING:
    from spanscore.emitters._live_table import LiveTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleExporter:
    """Prints one line for each trajectory."""


class Console:
    """The terminal.

    Shows scores as they come: a live table on a terminal of our own, otherwise a line for each trajectory.

    A terminal that is stopped, or a reader that does not read, holds nothing up: lines wait in a queue, and those
    that do not fit are left out and counted.

    Args:
        out: where to; standard output by default.
        clock: the time in seconds since the Unix epoch.
        owns_terminal: nobody else writes there: a table that is drawn again and again has to know of all that is.
    """

    Settings: ClassVar = ConsoleExporter

    def __init__(
        self, out: TextIO | None = None, clock: Callable[[], float] = time.time, *, owns_terminal: bool = True
    ) -> None:
        stream = sys.stdout if out is None else out
        self._view: Final = _view(stream, clock) if owns_terminal else Lines(stream, clock)

    @classmethod
    def configured(cls, settings: ConsoleExporter, host: Host) -> Self:  # noqa: ARG003 - nothing can be set
        """Return what prints to standard output."""
        return cls(owns_terminal=host.owns_terminal)

    @property
    def outbox(self) -> Outbox | None:
        """What is not printed yet; None for the live table."""
        return self._view.outbox

    def emit(self, report: Report) -> None:
        """Show a report, soon."""
        self._view.emit(report)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is printed."""
        return self._view.flush(timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Wait until everything is printed, and stop."""
        return self._view.close(timeout_s)


def _view(out: TextIO, clock: Callable[[], float]) -> Lines | LiveTable:
    if not out.isatty() or os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return Lines(out, clock)
    from spanscore.emitters._live_table import LiveTable  # noqa: PLC0415 - rich is slow to load

    return LiveTable(out, clock)
