"""A time limit for the work of many tasks, with one timer for all of them."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final, Self


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

    def begin(self, work: LimitedWork) -> None:
        """Limit the time of a piece of work from now on."""
        if self._seconds is not None:
            loop = asyncio.get_running_loop()
            self._running[work] = loop.time() + self._seconds
            if self._timer is None:
                self._timer = loop.call_later(self._seconds, self._expire)

    def end(self, work: LimitedWork) -> None:
        """Note that a piece of work has ended."""
        self._running.pop(work, None)

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


class LimitedWork:
    """The work of one task in this context.

    Raises:
        TimeoutError: it took too long, or was cut off by others.
    """

    __slots__ = ("_cancelling", "_limit", "_task", "is_cut_off")

    def __init__(self, limit: SharedTimeLimit) -> None:
        self._limit: Final = limit
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self.is_cut_off = False

    def cut_off(self) -> None:
        """Cancel the work, if it is under way."""
        if self._task is not None and not self.is_cut_off:
            self.is_cut_off = True
            self._task.cancel()

    def __enter__(self) -> Self:
        task = self._task = asyncio.current_task()
        assert task is not None  # noqa: S101 - there is nothing else to cancel
        self._cancelling = task.cancelling()
        self._limit.begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        self._limit.end(self)
        if not self.is_cut_off or task is None:
            return
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:  # else others cancelled it, too
            raise TimeoutError from error
