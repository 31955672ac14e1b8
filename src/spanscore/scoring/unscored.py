"""Log messages about spans and traces that are in no score, or in the score of an incomplete trace."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final

from spanscore.collect.table import TraceTable
from spanscore.contracts.instruments.tallies import Tallies
from spanscore.messages.faults import Faults
from spanscore.messages.printable import printable
from spanscore.messages.throttle import Throttle
from spanscore.model import Report
from spanscore.trajectories.reader import DialectReader

_log = logging.getLogger(__name__)


class Unscored:
    """Counts and logs what an engine does not score. A message that repeats is logged once, or every ten seconds.

    Args:
        tallies: counts traces without a known agent, and failures of dialects.
        faults: logs failures of dialects.
        clock: returns the time in seconds.
    """

    def __init__(self, tallies: Tallies, faults: Faults, clock: Callable[[], float]) -> None:
        self._tallies: Final = tallies
        self._faults: Final = faults
        self._evicted: Final = Throttle(_tell_evicted, clock)
        self._too_late: Final = Throttle(_tell_too_late, clock)
        self._has_known = False
        self._unknown: str | None = None
        """Why the first trace was not scored in which no agent is known."""

    def note_lost(self, table: TraceTable, reader: DialectReader) -> None:
        """Note the traces that the table has evicted, and the spans of agents that came too late for it."""
        while table.evicted:
            self._evicted.note(*table.evicted.popitem())
        while table.too_late:
            if reader.read(table.too_late.pop()) is not None:
                self._too_late.note(None)
        self.note_failures(reader.failures)
        self._evicted.tell_due()
        self._too_late.tell_due()

    def note_failures(self, failures: Counter[tuple[str, str]]) -> None:
        """Note failures of dialects, by name and type of the error, and remove them from the counter."""
        for (name, error), count in failures.items():
            self._tallies.dialect_errors[name, error] += count
            self._faults.tell_once(f"dialect {name!r} failed on a span: {error}; its traces are not scored")
        failures.clear()

    def note_recognised(self, report: Report) -> None:
        """Note whether an agent is known in the trace of a report; revisions do not count."""
        if report.revision:
            return
        if report.trajectory.recognised:
            self._has_known = True
            return
        self._tallies.unrecognised += 1
        if self._unknown is None:
            self._unknown = printable(report.trajectory.unread or "")
            _log.info("a trace is not scored: %s; further ones are only counted", self._unknown)

    def close(self) -> None:
        """Log the messages that were held back, and a warning if no agent was known in any trace."""
        self._evicted.close()
        self._too_late.close()
        if self._unknown is not None and not self._has_known:
            _log.warning("spanscore: no trace was scored, of %d: %s", self._tallies.unrecognised, self._unknown)


def _tell_too_late(_kind: None, count: int) -> None:
    _log.warning(
        "spans of agents that arrived after their trace was scored and removed from memory are in no score: %d; raise "
        "traces.decision_delay, or traces.trace_timeout for traces whose root is not received",
        count,
    )


def _tell_evicted(limit: str, count: int) -> None:
    _log.warning("open traces closed and scored as incomplete, as traces.%s is reached: %d", limit, count)
