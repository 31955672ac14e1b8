"""An engine in an event loop, with a clock: it takes spans, and scores traces when they are due."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from spanscore.model import Span
from spanscore.otlp.slices import Steps, at_once, in_slices
from spanscore.scoring.ahead import Ahead
from spanscore.scoring.engine import Engine
from spanscore.scoring.ledger import Ledger
from spanscore.scoring.owner import Owner

_AFTER_A_FAULT_S: Final = 1.0
_SLICE_S: Final = 0.005
"""The time of scoring before other tasks in the loop run: they never wait for all traces that are due."""
_SLICE_AHEAD_S: Final = 0.002
"""The same, of scoring traces that are not due yet."""
_IDLE_S: Final = 0.0001
"""The longest turn of the loop in which nothing else ran."""
_BUSY_S: Final = 0.002
"""The time until the next check whether nothing else runs: each check takes some of the time of a small request."""
_STALLED_S: Final = 0.25
"""If a timer is this late, the process did not run, as in a container without CPU: sockets hold unread spans."""
_MUCH: Final = 65_536
"""Spans, of closed traces and of requests, that wait: as many as one request may have. With so many, large requests are
not let in."""
_MOST: Final = 3 * _MUCH
"""The most waiting spans. A request may take a share of the room up to here, so that small ones still fit."""
_SHARE: Final = 16
_PART: Final = 512
"""So many spans are taken in one step, which lasts a few milliseconds where each is of another trace."""

_log = logging.getLogger(__name__)


class TakenCallback(Protocol):
    """A callback for taken spans of a request."""

    def __call__(self, spans: Sequence[Span], sizes: Sequence[int], *, is_last: bool) -> None:
        """Called with the spans, their sizes in bytes, and whether they were the last of their request."""


class LiveEngine:
    """Owns an engine, in the running event loop.

    Due traces are scored in slices. Spans that arrive between two slices join traces that are due but still open. While
    nothing else runs, traces are scored shortly before they are due. After a while in which the process could not run,
    all open traces wait anew: spans of that time are not read yet.

    Args:
        engine: the engine, with `clock` as its clock.
        clock: monotonic seconds.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self.engine: Final = engine
        self.ledger: Final = Ledger(engine.emitters.values(), engine.is_open, engine.table.past.is_paused)
        """The traces that are still needed."""
        queue, ledger = engine.queue, self.ledger
        queue.owner = Owner(answered=self._answered, paused=ledger.paused, scored=ledger.scored, gave_up=ledger.gave_up)
        self._clock = clock
        self._ahead = queue.ahead = Ahead(engine.table, clock, engine.faults)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf
        self._going_on: asyncio.Handle | None = None
        self._looked_at = -math.inf
        self._rests = False
        self._stopped = False
        self._arriving: Final[deque[Steps[None]]] = deque()
        self._arriving_spans = 0

    @property
    def is_behind(self) -> bool:
        """Whether many spans wait to be taken or scored."""
        return not self.has_room(_MUCH)

    def has_room(self, spans: int) -> bool:
        """Return whether a request with so many spans may come in now."""
        waiting = self.engine.queue.backlog + self._arriving_spans
        return waiting < _MUCH or spans * _SHARE <= _MOST - waiting

    def take(self, spans: Sequence[Span], sizes: Sequence[int], taken: TakenCallback | None = None) -> None:
        """Take the spans of one request; `sizes` are their bytes of memory.

        A large request is taken in slices, and later requests wait for it: between two slices no due trace is closed,
        and none is scored.
        """
        self._note_stall()
        if self._arriving or len(spans) > _PART:
            self._arriving.append(self._taking(spans, sizes, self._clock(), taken))
            self._arriving_spans += len(spans)
        else:
            try:
                self.engine.take(spans, sizes)
            finally:
                if taken is not None:
                    taken(spans, sizes, is_last=True)
        self._work()

    def take_whole(self, spans: Sequence[Span], sizes: Sequence[int]) -> None:
        """Take in the spans of one request before this returns."""
        self._note_stall()
        self.engine.take(spans, sizes)
        self._work()

    async def restore(
        self, spans: Sequence[Span], sizes: Sequence[int], received_at: float, taken: TakenCallback
    ) -> None:
        """Take in spans that came before a restart, at that time on the clock of now; then call `catch_up`."""
        self._arriving_spans += len(spans)
        await in_slices(self._taking(spans, sizes, received_at, taken))

    def evict(self, trace_id: bytes) -> None:
        """Close a trace, if it is open, because there is no room for it elsewhere."""
        self.engine.evict(trace_id)
        self._work()

    async def catch_up(self, now: float) -> None:
        """Score the traces that were due at `now`, on the clock, in slices; other tasks in the loop run between."""
        try:
            while not self.engine.work(self._clock() + _SLICE_S, now):  # noqa: ASYNC110 - nothing is waited for
                await asyncio.sleep(0)
        except Exception:  # noqa: BLE001 - a fault in one trace must not keep the others from being taken in
            _log.exception("traces that were due could not be scored")

    @property
    def rests(self) -> bool:
        """Whether it does nothing by itself, between `rest` and `wake`."""
        return self._rests

    def rest(self) -> None:
        """Take the spans that have arrived, and then do nothing by itself until `wake`."""
        self._note_stall()
        self._take_all()
        self._rests = True

    def wake(self) -> None:
        """Look at the clock, if there is a reason to."""
        self._rests = False
        self._work()

    def stop(self) -> None:
        """Take the spans that have arrived, and stop the timer."""
        self._stopped = True
        self._take_all()
        if self._timer is not None:
            self._timer.cancel()

    def _taking(
        self, spans: Sequence[Span], sizes: Sequence[int], received_at: float, taken: TakenCallback | None
    ) -> Steps[None]:
        for begin in range(0, len(spans), _PART):
            end = begin + _PART
            part, part_sizes = spans[begin:end], sizes[begin:end]
            try:
                try:
                    self.engine.take(part, part_sizes, received_at)
                finally:
                    if taken is not None:
                        taken(part, part_sizes, is_last=end >= len(spans))
            except Exception:  # noqa: BLE001 - one part must not cost the others
                _log.exception("spans of a large request could not be taken")
            self._arriving_spans -= len(part)
            yield

    def _take_all(self) -> None:
        while self._arriving:
            at_once(self._arriving.popleft())

    def _take_arriving(self, until: float) -> bool:
        """Take spans that have arrived until the time `until`, and return whether all of them are taken."""
        while self._arriving:
            if next(self._arriving[0], self) is self:
                self._arriving.popleft()
            if self._clock() >= until:
                break
        return not self._arriving

    def _answered(self) -> None:
        """Score on: an evaluation elsewhere was answered. Called on any thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._work)

    def _go_on(self) -> None:
        self._going_on = None
        self._work()

    def _work(self) -> None:
        """Score due traces, in slices, unless a slice is scheduled already, and set the timer for the next one."""
        if self._going_on is not None or self._stopped or self._rests:  # once stopped, another thread has the engine
            return
        self._note_stall()
        try:
            until = self._clock() + _SLICE_S
            is_done = (not self._arriving or self._take_arriving(until)) and self.engine.work(until)
            ahead = self._look_ahead() if is_done else -math.inf
        except Exception:  # noqa: BLE001 - a fault in one trace must not stop the clock for all others
            _log.exception("traces that were due could not be scored")
            due = self._clock() + _AFTER_A_FAULT_S
        else:
            if ahead == -math.inf:
                self._going_on = self._loop.call_soon(self._go_on)
                return
            next_due = self.engine.next_due()
            due = ahead if next_due is None else min(next_due, ahead)
        if due < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = self._loop.call_later(max(0.0, due - self._clock()), self._expire)

    def _look_ahead(self) -> float:
        """Score traces that are due soon, if nothing has run since the last call, and return when to call it again.

        That is minus infinity for the next turn of the loop, which shows whether anything else runs.
        """
        now = self._clock()
        passed = now - self._looked_at
        until = now + (_SLICE_AHEAD_S if passed < _IDLE_S else 0.0)
        while self._ahead.next_due() <= now < until:
            self._ahead.step(self.engine.queue.pipeline, until)
            now = self._clock()
        self._looked_at = now
        if (due := self._ahead.next_due()) > now:
            return due
        return now + _BUSY_S if _IDLE_S <= passed < _BUSY_S else -math.inf

    def _expire(self) -> None:
        self._note_stall()
        self._due = math.inf  # also if the timer was a little early by the clock
        self._work()

    def _note_stall(self) -> None:
        now = self._clock()
        if now - self._due > _STALLED_S:
            self.engine.table.resumed(now, since=self._due)
            self._due = math.inf
