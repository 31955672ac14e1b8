"""A time limit for the work of many tasks, with one timer for all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Self


@dataclass(slots=True, eq=False)
class LimitedWork:
    """The context of work of the current task that takes too long, or can be cut off: it then raises TimeoutError."""

    limit: SharedTimeLimit
    task: asyncio.Task[Any] | None = None
    """None before the work begins, and after it has ended."""
    cancelling: int = 0
    """The number of cancellations of the task when the work began."""
    is_cut_off: bool = False

    def cut_off(self) -> None:
        """Cancel the work, if it is under way."""
        if self.task is not None and not self.is_cut_off:
            self.is_cut_off = True
            self.task.cancel()

    def __enter__(self) -> Self:
        self.task = task = asyncio.current_task()
        assert task is not None  # noqa: S101 - there is nothing else to cancel
        self.cancelling = task.cancelling()
        if self.limit.seconds is not None:
            self.limit.begin(self, self.limit.seconds)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.limit.running.pop(self, None)
        task, self.task = self.task, None
        # If others cancelled the task, too, it stays cancelled.
        is_ours = self.is_cut_off and task is not None and task.uncancel() <= self.cancelling
        if is_ours and isinstance(error, asyncio.CancelledError):
            raise TimeoutError from error


class SharedTimeLimit:
    """The longest time that each of many pieces of work may take, in seconds; None for no limit.

    Two timers of its own, as `asyncio.timeout` has, took a twentieth of the time of a small request. Belongs to one
    event loop.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds: Final = seconds
        self.running: Final[dict[LimitedWork, float]] = {}
        """The end of each piece of work, by the clock of the event loop. All may take as long, so the first ends first.
        """
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, work: LimitedWork, seconds: float) -> None:
        """Cut work off that takes longer from now on."""
        loop = asyncio.get_running_loop()
        self.running[work] = loop.time() + seconds
        if self._timer is None:
            self._timer = loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for work, until in [*self.running.items()]:
            if until > loop.time():
                self._timer = loop.call_at(until, self._expire)
                break
            del self.running[work]
            work.cut_off()


NO_LIMIT: Final = SharedTimeLimit(None)
"""For work whose time others limit."""
