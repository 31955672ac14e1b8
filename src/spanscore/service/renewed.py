"""Something that is made of the kept runs when a reader asks, and made again when runs have come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, Generic, TypeVar

from spanscore.service.recent_runs import HeldRuns, RecentRuns

PAUSE_S: Final = 2.0
"""As long as a browser waits before it asks again."""

Made = TypeVar("Made")


class Renewed(Generic[Made]):
    """Makes it once for all concurrent readers, in the running event loop.

    Args:
        recent: keeps the runs.
        make: makes it, in a thread.
        pause_s: it is made once in this time at most; in between, readers get the one that is there.
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
            held = self._recent.held
            self._due = loop.time() + self._pause_s
            self.version = held.last
            made = self._made = loop.run_in_executor(maker, self._make, held)
            made.add_done_callback(self._forget_failed)
        return made

    def _forget_failed(self, made: asyncio.Future[Made]) -> None:
        if made.cancelled() or made.exception() is not None:
            self._made = None  # the next reader has it made again
