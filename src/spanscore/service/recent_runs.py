"""The last runs that were scored, as the page and `/runs.json` show them. Scoring never waits for it."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
import zlib
from collections.abc import Callable
from concurrent.futures import Executor
from queue import SimpleQueue
from typing import Final, Generic, NamedTuple, TypeVar

from spanscore.contracts.immediate import Immediate
from spanscore.model import Report
from spanscore.reports.bounded_line import bounded_line
from spanscore.reports.cases import case_of, conversation_name
from spanscore.reports.page import encoded
from spanscore.reports.page.page_data import PageBudget, RunBatch
from spanscore.reports.page.story import cut
from spanscore.reports.reason_table import CountedRun

_WAITING: Final = 64
"""The most reports that wait to be written as text, beside the last one. If more come, those between are dropped: to
free a report costs less right after it was made."""
MOST_PER_S: Final = 80
"""Runs that are shown in a second; further ones are only counted."""
_AT_ONCE: Final = 8
"""The most reports that are written in one go. One alone, with nothing of it in the processor's cache, takes 0.5 ms,
one of several half of that: a few hundredths of a core, however much is scored."""
_RUN_BYTES: Final = 64 * 1024
_RUN: Final = PageBudget(failed=_RUN_BYTES, others=_RUN_BYTES, bare=_RUN_BYTES, told=_RUN_BYTES, reasons=_RUN_BYTES)
_MOST_BYTES: Final = 16 * 2**20
_REASON_BYTES: Final = 400
_FASTEST: Final = 1

PAUSE_S: Final = 2.0
"""As long as a browser waits before it asks again."""
_PAUSES: Final = 5
"""For each second that it takes: with the usual pause, making takes a tenth of the time at most."""

_log = logging.getLogger(__name__)

Made = TypeVar("Made")


class ShownRun(NamedTuple):
    """A run as JSON."""

    id: str
    """Unique, also among the runs of other processes; a run that is scored once more gets another one."""
    number: int
    """Grows from run to run."""
    time_s: float
    """When it was kept, seconds since the epoch."""
    text: bytes
    """For the page."""
    report: bytes
    """As a line of `spanscore score --json FILE`; compressed if `is_packed`."""
    is_packed: bool
    counted: CountedRun

    @property
    def weight(self) -> int:
        """The bytes of the larger of its two forms."""
        return max(len(self.text), len(self.report) + _REASON_BYTES * len(self.counted.reasons))

    @property
    def line(self) -> bytes:
        """The report, as a line of `spanscore score --json FILE`."""
        return zlib.decompress(self.report) if self.is_packed else self.report


class HeldRuns(NamedTuple):
    """The runs that are kept at one time."""

    last: str
    """The id of the run that was written last; another one before the first."""
    number: int
    """The number of that run; 0 before the first."""
    since_s: float
    """Every run that was written since then is kept, seconds since the epoch."""
    as_of_s: float
    skipped: int
    """Runs that came faster than they can be shown, since the start."""
    runs: tuple[ShownRun, ...]
    """Oldest first."""


class RecentRuns(Immediate):
    """An emitter that keeps the last runs; a run that late spans have scored once more takes the place of the earlier.

    A report is only put into a short queue. A thread makes text of it, so that nothing else is kept of a run.

    Args:
        most: runs to keep.
        pace_s: pause after the runs that are written in one go.
        most_bytes: size of all runs, in each of their two forms.
        clock: seconds since the epoch.
    """

    needs_results: Final = False
    """Results of calls are shown only with `tool_content: true`."""

    def __init__(
        self,
        most: int,
        pace_s: float = _AT_ONCE / MOST_PER_S,
        most_bytes: int = _MOST_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._most: Final = most
        self.skipped = 0
        """Runs that came faster than they can be shown."""
        self._session: Final = secrets.token_hex(4)
        self._pace_s: Final = pace_s
        self._most_bytes: Final = most_bytes
        self._unpacked_bytes: Final = most_bytes // most // 2
        """The longest line that is kept as it is: compressing takes a fifth of the time of writing a run."""
        self._clock: Final = clock
        self._since_s = clock()
        self._waiting: Final = SimpleQueue[Report | None]()
        self._latest: Report | None = None
        """The last report, while it does not fit into the queue."""
        self._is_open = False
        self._ended: Final = threading.Event()
        self._lock: Final = threading.Lock()
        self._runs: Final[dict[bytes, ShownRun]] = {}
        self._weight = 0
        self._written = 0

    @property
    def last(self) -> str:
        """The id of the run that was written last; another one before the first."""
        return f"{self._session}-{self._written}"

    @property
    def held(self) -> HeldRuns:
        """The runs that are kept."""
        with self._lock:
            runs = tuple(self._runs.values())
            return HeldRuns(self.last, self._written, self._since_s, self._clock(), self.skipped, runs)

    def start(self) -> None:
        """Keep the runs that come from now on."""
        self._since_s = self._clock()
        self._is_open = True
        threading.Thread(target=self._write, name="spanscore-page", daemon=True).start()

    def emit(self, report: Report) -> None:
        """Put a report into the queue if runs are kept; if it is full, the report waits until the next one comes."""
        if not self._is_open or not report.trajectory.recognised:
            return
        with self._lock:
            if self._latest is None and self._waiting.qsize() < _WAITING:
                self._waiting.put(report)
                return
            self.skipped += self._latest is not None
            self._latest = report

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - the shown runs are lost with the process
        """Write the waiting reports, and keep no more."""
        self._is_open = False
        self._ended.set()
        self._put_latest()
        self._waiting.put(None)
        return True

    def _write(self) -> None:
        written = 0
        while (report := self._waiting.get()) is not None:
            self._put_latest()
            try:
                line = encoded(bounded_line(report, _RUN_BYTES))
                counted = CountedRun.of(report)
                counted = counted._replace(agent=None if counted.agent is None else cut(counted.agent))
                self._keep(_identity(report), _text(report), line, counted)
            except Exception:  # noqa: BLE001 - one that cannot be shown must not cost the others
                _log.exception("a run cannot be shown on the page")
            del report  # which would be kept until the next one comes
            written += 1
            if self._waiting.empty() or not written % _AT_ONCE:
                self._ended.wait(self._pace_s)

    def _put_latest(self) -> None:
        with self._lock:
            if self._latest is not None:
                self._waiting.put(self._latest)
                self._latest = None

    def _keep(self, key: bytes, text: bytes, line: bytes, counted: CountedRun) -> None:
        is_packed = len(line) > self._unpacked_bytes
        kept = zlib.compress(line, _FASTEST) if is_packed else line
        with self._lock:
            self._written += 1
            self._forget(key)
            run = self._runs[key] = ShownRun(self.last, self._written, self._clock(), text, kept, is_packed, counted)
            self._weight += run.weight
            while len(self._runs) > self._most or self._weight > self._most_bytes:
                self._forget(next(iter(self._runs)))
                self._since_s = next((oldest.time_s for oldest in self._runs.values()), run.time_s)

    def _forget(self, key: bytes) -> None:
        if (run := self._runs.pop(key, None)) is not None:
            self._weight -= run.weight


def _identity(report: Report) -> bytes:
    """Return the identity of a run or a conversation; it is the same in all revisions."""
    conversation = report.conversation
    if conversation is not None:
        return conversation.key + conversation.turns[0].trace_id
    return report.trajectory.trace_id + report.trajectory.root_span_id


def _text(report: Report) -> bytes:
    trajectory = report.trajectory
    name = (
        conversation_name(report)
        or case_of(trajectory)
        or "/".join(filter(None, (trajectory.service, trajectory.agent)))
        or "unknown"
    )
    batch = RunBatch(_RUN)
    batch.add(report)
    return encoded(batch.embedded([name]))


class Renewed(Generic[Made]):
    """Something made of the kept runs: once for all concurrent readers, and again when runs have come.

    Args:
        recent: keeps the runs.
        make: makes it, in a thread of the executor.
        pause_s: it is made once in this time at most, or more rarely if that takes long; in between, readers get the
            one that is there.
    """

    def __init__(self, recent: RecentRuns, make: Callable[[HeldRuns], Made], pause_s: float) -> None:
        self.version = ""
        """The id of the last run in it."""
        self._recent: Final = recent
        self._make: Final = make
        self._pause_s: Final = pause_s
        self._made: asyncio.Future[Made] | None = None
        self._due = 0.0

    def made(self, maker: Executor) -> asyncio.Future[Made]:
        """Return it as it is made in `maker`, or as it is there, in this `version`."""
        loop, made = asyncio.get_running_loop(), self._made
        if made is None or (made.done() and loop.time() >= self._due and self.version != self._recent.last):
            held, begun = self._recent.held, loop.time()
            self.version = held.last
            made = self._made = loop.run_in_executor(maker, self._make, held)
            made.add_done_callback(lambda made: self._finished(made, begun, loop.time()))
        return made

    def _finished(self, made: asyncio.Future[Made], begun: float, ended: float) -> None:
        self._due = begun + self._pause_s * max(1.0, _PAUSES * (ended - begun))
        if made.cancelled() or made.exception() is not None:
            self._made = None  # the next reader has it made again
