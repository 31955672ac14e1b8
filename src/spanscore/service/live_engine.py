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

_log = logging.getLogger(__name__)


class LiveEngine:
    """Owns an engine, in the running event loop.

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
        self._stopped = False
        engine.on_answer = self._tell_answer

    def take(self, spans: Sequence[Span], sizes: Sequence[int]) -> None:
        """Take in the spans of one request, each of which keeps that many bytes."""
        try:
            self.engine.add(spans, sizes)
        finally:
            self._arm()

    def restore(self, spans: Sequence[Span], sizes: Sequence[int], received_at: float) -> None:
        """Take in spans that came before a restart, at that time on the clock of now; then call `wake`."""
        self.engine.restore(spans, sizes, received_at)

    def wake(self) -> None:
        """Look at the clock, if there is a reason to."""
        self._arm()

    def stop(self) -> None:
        """Look at the clock no more."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def _tell_answer(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._settle)

    def _settle(self) -> None:
        if not self._stopped:  # from then on another thread has the engine
            self.engine.settle()

    def _arm(self) -> None:
        due = self.engine.next_due()
        if due is not None and due < self._due:
            self._wait_until(due)

    def _wait_until(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._stopped:
            self._due = due
            self._timer = self._loop.call_later(max(0.0, due - self._clock()), self._expire)

    def _expire(self) -> None:
        self._due = float("inf")
        try:
            self.engine.expire()
        except Exception:  # noqa: BLE001 - a fault in one trace must not stop the clock for all others
            _log.exception("traces that were due could not be scored")
            self._wait_until(self._clock() + _AFTER_A_FAULT_S)
        else:
            self._arm()
