"""An engine in an event loop: it is handed spans, and looks at the clock by itself."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from spanscore.engine import Engine
from spanscore.model import Span

_AFTER_A_FAULT_S: Final = 1.0
_SLICE_S: Final = 0.02
"""So long is scored before others in the loop have their turn: however many traces are due, nobody waits for all."""
_MOST_WAITING: Final = 65_536
"""With so many spans in closed traces that wait, no more are taken: as many as one request may have."""

_log = logging.getLogger(__name__)


class LiveEngine:
    """Owns an engine, in the running event loop.

    What is due is scored in slices. Spans that come between two slices join the traces that are still open, though they
    are due.

    Args:
        engine: what spans go to; its clock is `clock`.
        clock: seconds that never run backwards.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.monotonic) -> None:
        self.engine: Final = engine
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = float("inf")
        self._is_going_on = False
        self._rests = False
        self._stopped = False
        engine.on_answer = self._tell_answer

    @property
    def is_behind(self) -> bool:
        """Whether so much waits to be scored that senders should come again later."""
        return self.engine.backlog >= _MOST_WAITING

    def take(self, spans: Sequence[Span], sizes: Sequence[int]) -> None:
        """Take in the spans of one request, each of which keeps that many bytes."""
        self.engine.take(spans, sizes)
        self._work()

    def restore(self, spans: Sequence[Span], sizes: Sequence[int], received_at: float) -> None:
        """Take in spans that came before a restart, at that time on the clock of now; then call `catch_up`."""
        self.engine.take(spans, sizes, received_at)

    def evict(self, trace_id: bytes) -> None:
        """Close a trace, if it is open, because there is no room for it elsewhere."""
        self.engine.evict(trace_id)
        self._work()

    async def catch_up(self, now: float) -> None:
        """Score what was due by then, on the clock, while others in the loop have their turns."""
        try:
            is_done = False
            while not is_done:
                is_done = self.engine.work(self._clock() + _SLICE_S, now)
                await asyncio.sleep(0)
        except Exception:  # noqa: BLE001 - a fault in one trace must not keep the others from being taken in
            _log.exception("traces that were due could not be scored")

    def rest(self) -> None:
        """Do nothing by itself until `wake`."""
        self._rests = True

    def wake(self) -> None:
        """Look at the clock, if there is a reason to."""
        self._rests = False
        self._work()

    def stop(self) -> None:
        """Look at the clock no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _tell_answer(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._work)

    def _work(self) -> None:
        """Begin to score, unless that is under way."""
        if not self._is_going_on:
            self._go_on()

    def _go_on(self) -> None:
        self._is_going_on = False
        if self._stopped or self._rests:  # once it is stopped, another thread has the engine
            return
        try:
            is_done = self.engine.work(self._clock() + _SLICE_S)
        except Exception:  # noqa: BLE001 - a fault in one trace must not stop the clock for all others
            _log.exception("traces that were due could not be scored")
            self._wait_until(self._clock() + _AFTER_A_FAULT_S)
        else:
            if is_done:
                self._arm()
            else:
                self._is_going_on = True
                self._loop.call_soon(self._go_on)

    def _arm(self) -> None:
        due = self.engine.next_due()
        if due is not None and due < self._due:
            self._wait_until(due)

    def _wait_until(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_later(max(0.0, due - self._clock()), self._expire)

    def _expire(self) -> None:
        self._due = float("inf")
        self._work()
