"""The last runs that were scored, as a page shows them: told to whoever looks, and waited for by nobody."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from spanscore.model import Report
from spanscore.page import encoded
from spanscore.page.runs import Batch, Room
from spanscore.reports.cases import case_of

_WAITING: Final = 64
"""Reports that wait to be written down. Of more, which come faster than anybody can read, the oldest give way."""
_AT_ONCE: Final = 16
_PACE_S: Final = 0.2
"""In this time at most so many are written down, which takes some 0.3 ms each: a few hundredths of a core, however much
is scored."""
_RUN_BYTES: Final = 64 * 1024
_RUN: Final = Room(failed=_RUN_BYTES, others=_RUN_BYTES, bare=_RUN_BYTES, told=_RUN_BYTES)
_MOST_BYTES: Final = 16 * 2**20

_log = logging.getLogger(__name__)


class ShownRun(NamedTuple):
    """A run as JSON."""

    number: int
    """Of the runs that were written down, from 1 on."""
    id: bytes
    """The same, and of which process it is."""
    key: bytes
    """Says which run it is, also where late spans have it scored once more."""
    text: bytes


class RecentRuns:
    """An emitter that keeps the last runs, of which late spans may make another revision.

    What is scored is only put into a short queue; a thread of its own makes text of it, so that nothing is kept of a
    run but what is shown. All but `emit` and `close` belongs to the event loop in which it is started.

    Args:
        most: runs to keep.
        pace_s: how long to wait before what has come meanwhile is written down.
        most_bytes: size of the text of all.
    """

    def __init__(self, most: int, pace_s: float = _PACE_S, most_bytes: int = _MOST_BYTES) -> None:
        self.most: Final = most
        self.session: Final = secrets.token_hex(4)
        """Says of which process the number of a run is."""
        self.skipped = 0
        """Runs that came faster than they can be shown."""
        self._pace_s: Final = pace_s
        self._most_bytes: Final = most_bytes
        self._waiting: Final[deque[Report]] = deque(maxlen=_WAITING)
        self._arrived: Final = threading.Event()
        self._ended: Final = threading.Event()
        self._is_started = False
        self._written = 0
        self._runs: Final[dict[bytes, ShownRun]] = {}
        self._size = 0
        self._tell: Callable[[Sequence[ShownRun]], None] = _nobody
        self._loop: asyncio.AbstractEventLoop | None = None

    needs_results: Final = False
    """Results of calls are shown only with `tool_content: true`."""

    @property
    def runs(self) -> list[ShownRun]:
        """The runs that are kept, oldest first."""
        return list(self._runs.values())

    @property
    def last(self) -> int:
        """The number of the last run; 0 where there was none."""
        return next((run.number for run in reversed(self._runs.values())), 0)

    def start(self, tell: Callable[[Sequence[ShownRun]], None]) -> None:
        """Keep runs from now on, and tell of each in the running event loop."""
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._is_started = True
        threading.Thread(target=self._write_down, name="spanscore-page", daemon=True).start()

    def emit(self, report: Report) -> None:
        """Put a report into the queue, where one is kept; the oldest in a full queue gives way."""
        if not self._is_started or not report.trajectory.recognised:
            return
        if len(self._waiting) == _WAITING:
            self.skipped += 1
        self._waiting.append(report)
        self._arrived.set()

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nobody waits
        """Do nothing: what is shown is lost with the process."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Write down what waits, and nothing more."""
        self._ended.set()
        self._arrived.set()
        return True

    def _write_down(self) -> None:
        is_last = False
        while not is_last:
            self._arrived.wait()
            self._arrived.clear()
            is_last = self._ended.is_set()
            written = self._written_down(_WAITING if is_last else _AT_ONCE)
            if self._waiting:
                self._arrived.set()
            with suppress(RuntimeError):  # the loop is closed
                if self._loop is not None and written:
                    self._loop.call_soon_threadsafe(self._keep, written)
            self._ended.wait(self._pace_s)

    def _written_down(self, most: int) -> Sequence[ShownRun]:
        written = []
        for _ in range(most):
            try:
                report = self._waiting.popleft()
            except IndexError:
                break
            try:
                self._written += 1
                written.append(_shown(report, self._written, self.session))
            except Exception:  # noqa: BLE001 - one that cannot be shown must not cost the others
                _log.exception("a run cannot be shown on the page")
        return written

    def _keep(self, written: Sequence[ShownRun]) -> None:
        for run in written:
            if (earlier := self._runs.pop(run.key, None)) is not None:
                self._size -= len(earlier.text)
            self._runs[run.key] = run
            self._size += len(run.text)
        while len(self._runs) > self.most or self._size > self._most_bytes:
            self._size -= len(self._runs.pop(next(iter(self._runs))).text)
        self._tell(written)


def _nobody(_runs: Sequence[ShownRun]) -> None:
    """Tell nobody."""


def _shown(report: Report, number: int, session: str) -> ShownRun:
    trajectory = report.trajectory
    batch = Batch(_RUN)
    batch.add(report)
    name = case_of(trajectory) or "/".join(filter(None, (trajectory.service, trajectory.agent))) or "unknown"
    key = trajectory.trace_id + trajectory.root_span_id
    return ShownRun(number, f"{session}-{number}".encode(), key, encoded(batch.embedded([name])))
