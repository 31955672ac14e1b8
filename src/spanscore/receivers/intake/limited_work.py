"""A time limit for the work of many tasks, with one timer for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final


@dataclass(slots=True, eq=False)
class LimitedWork:
    """The work of one task that can be cut off: its context then raises TimeoutError."""

    task: asyncio.Task[Any] | None
    """None after the work has ended."""
    is_cut_off: bool = False

    def cut_off(self) -> None:
        """Cancel the work, if it is under way."""
        if self.task is not None and not self.is_cut_off:
            self.is_cut_off = True
            self.task.cancel()


class SharedTimeLimit:
    """The longest time that each of many pieces of work may take, in seconds; None for no limit.

    Two timers of its own, as `asyncio.timeout` has, took a twentieth of the time of a small request. Belongs to one
    event loop.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds: Final = seconds
        self._running: Final[dict[LimitedWork, float]] = {}
        """The end of each piece of work, by the clock of the event loop. All may take as long, so the first ends first.
        """
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def work(self) -> Iterator[LimitedWork]:
        """Limit the time of the current task in this context.

        Raises:
            TimeoutError: it took too long, or was cut off by others.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None  # noqa: S101 - there is nothing else to cancel
        work, cancelling = LimitedWork(task), task.cancelling()
        if self._seconds is not None:
            self._running[work] = loop.time() + self._seconds
            if self._timer is None:
                self._timer = loop.call_later(self._seconds, self._expire)
        is_ours = False
        try:
            try:
                yield work
            finally:
                work.task = None
                self._running.pop(work, None)
                is_ours = work.is_cut_off and task.uncancel() <= cancelling
        except asyncio.CancelledError as error:
            if is_ours:  # else others cancelled it, too
                raise TimeoutError from error
            raise

    def _expire(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for work, until in [*self._running.items()]:
            if until > loop.time():
                self._timer = loop.call_at(until, self._expire)
                break
            del self._running[work]
            work.cut_off()


NO_LIMIT: Final = SharedTimeLimit(None)
