"""Who may hand in a request now. Everybody else is asked to come again later, so that nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

_MAX_REQUESTS: Final = 64
_MAX_BYTES: Final = 256 * 2**20
_WAIT_S: Final = 5.0

_SHUTTING_DOWN: Final = "shutting down"
_TOO_MUCH: Final = "too many requests at once"

_SHORTEST_DELAY_S: Final = 1.0
_LONGEST_DELAY_S: Final = 30.0
_HALF_LIFE_S: Final = 10.0
_REFUSALS_PER_SECOND: Final = 20.0


class Unavailable(Exception):  # noqa: N818 - what the sender is told, and not an error of ours
    """A request cannot be taken now; the sender should send it again.

    Args:
        why: what the sender is told.
        retry_after_s: how long it should wait.
    """

    def __init__(self, why: str, retry_after_s: float) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


class RetryDelay:
    """How long a sender should wait: the longer the more were sent away lately, and not all equally long.

    Args:
        clock: seconds that never run backwards.
        jitter: a random number from 0 to 1.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._refusals = 0.0
        self._refused_at = clock()

    def next(self) -> float:
        """Count a sender that is sent away, and return its delay in seconds."""
        now = self._clock()
        self._refusals = self._refusals * 0.5 ** ((now - self._refused_at) / _HALF_LIFE_S) + 1
        self._refused_at = now
        delay_s = _SHORTEST_DELAY_S + self._refusals / _REFUSALS_PER_SECOND
        return min(_LONGEST_DELAY_S, delay_s * (1 + self._jitter() / 2))


class Held:
    """The bytes that one request holds in memory while it is read."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.size = 0

    def add(self, size: int) -> None:
        """Hold more.

        Raises:
            Unavailable: all requests together hold too much.
        """
        self._admission.reserve(size)
        self.size += size


class Admission:
    """Bounds what is being received at once, and closes when the process ends.

    Belongs to one event loop.

    Args:
        max_requests: how many requests are read at once; the next ones wait, unread, for a short time.
        max_bytes: how much of them is in memory.
        wait_s: how long a request waits before its sender is sent away.
        delay: how long senders should wait that are sent away.
    """

    def __init__(
        self,
        *,
        max_requests: int = _MAX_REQUESTS,
        max_bytes: int = _MAX_BYTES,
        wait_s: float = _WAIT_S,
        delay: RetryDelay | None = None,
    ) -> None:
        self._slots = asyncio.Semaphore(max_requests)
        self._free_bytes = max_bytes
        self._wait_s = wait_s
        self._delay = delay or RetryDelay()
        self._closed = False

    def close(self) -> None:
        """Send everybody away from now on, except the requests that were let in before."""
        self._closed = True

    @property
    def closed(self) -> bool:
        """Whether everybody is sent away."""
        return self._closed

    @asynccontextmanager
    async def request(self) -> AsyncIterator[Held]:
        """Let a request in.

        Raises:
            Unavailable: not now.
        """
        if self._closed:
            raise self.refusal(_SHUTTING_DOWN)
        if self._slots.locked():
            await self._wait()
        else:
            await self._slots.acquire()
        held = Held(self)
        try:
            yield held
        finally:
            self._free_bytes += held.size
            self._slots.release()

    def reserve(self, size: int) -> None:
        """Take memory for a request; `request` gives it back.

        Raises:
            Unavailable: there is none left.
        """
        if size > self._free_bytes:
            raise self.refusal(_TOO_MUCH)
        self._free_bytes -= size

    def refusal(self, why: str) -> Unavailable:
        """Return what to tell a sender that is sent away."""
        return Unavailable(why, self._delay.next())

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._wait_s):
                await self._slots.acquire()
        except TimeoutError:
            raise self.refusal(_TOO_MUCH) from None
