"""Who may hand in a request now. Everybody else is asked to come again later, so that nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from spanscore.receivers._requests import Busy, RequestCounts

_MAX_REQUESTS: Final = 64
_MAX_BYTES: Final = 256 * 2**20
_WAIT_S: Final = 5.0

_PATIENCE_S: Final = 1.0
"""How long a slow sender is left in peace while others wait for its place."""

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
    """The memory that one request holds while it is read."""

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

    @asynccontextmanager
    async def reading(self, max_size: int, timeout_s: float) -> AsyncIterator[None]:
        """Read, within the timeout, a request of which nobody knows the size before it is there.

        The memory for the largest one is set aside meanwhile. Where others wait for it, whoever takes long must go.

        Raises:
            Unavailable: there is no memory for it, or others wait for that.
            TimeoutError: it took too long.
        """
        async with self._admission.room(max_size) as place:
            try:
                async with asyncio.timeout(timeout_s) as place.limit:
                    yield
            except TimeoutError:
                if place.is_displaced:
                    raise self._admission.refusal(Busy.MEMORY) from None
                raise


class _Place:
    """The memory set aside for a request that is being read."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.limit: asyncio.Timeout | None = None
        self.is_displaced = False

    def displace(self, now: float) -> None:
        """End the reading."""
        if self.limit is not None and not self.limit.expired():
            self.is_displaced = True
            self.limit.reschedule(now)


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
        self.requests: Final = RequestCounts()
        """What became of requests; those who answer them count too."""
        self.trouble: Callable[[], Busy | None] = lambda: None
        """Says why nothing can be taken now, whatever it is."""
        self._slots = asyncio.Semaphore(max_requests)
        self._free_bytes = max_bytes
        self._for_reading = max_bytes // 2  # the rest is for those whose size is known
        self._places: list[_Place] = []
        self._waiting: deque[asyncio.Event] = deque()
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

    @property
    def reading(self) -> int:
        """How many requests are read that may be as large as is allowed."""
        return len(self._places)

    @asynccontextmanager
    async def request(self) -> AsyncIterator[Held]:
        """Let a request in.

        Raises:
            Unavailable: not now.
        """
        trouble = Busy.SHUTTING_DOWN if self._closed else self.trouble()
        if trouble is not None:
            raise self.refusal(trouble)
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
            raise self.refusal(Busy.MEMORY)
        self._free_bytes -= size

    def refusal(self, why: Busy, told: str | None = None) -> Unavailable:
        """Count a request that is not taken, and return what to tell its sender."""
        self.requests.refused[why.value] += 1
        return Unavailable(told or why.told, self._delay.next())

    @asynccontextmanager
    async def room(self, size: int) -> AsyncIterator[_Place]:
        """Set memory aside for a request that is being read.

        Raises:
            Unavailable: there is none, and did not become free.
        """
        if self._has_room(size) and not self._waiting:
            self._for_reading -= size
        else:
            await self._wait_for_room(size)
        place = _Place(asyncio.get_running_loop().time())
        self._places.append(place)
        try:
            yield place
        finally:
            self._places.remove(place)
            self._for_reading += size
            self._wake()

    def _has_room(self, size: int) -> bool:
        return self._for_reading >= size or not self._places  # one is always read, however large it may be

    async def _wait_for_room(self, size: int) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wait_s
        turn = asyncio.Event()
        self._waiting.append(turn)
        try:
            while self._waiting[0] is not turn or not self._has_room(size):
                now = loop.time()
                if now >= until:
                    raise self.refusal(Busy.MEMORY)
                self._displace(now)
                turn.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(min(until, now + _PATIENCE_S)):
                        await turn.wait()
            self._for_reading -= size
        finally:
            self._waiting.remove(turn)
            self._wake()

    def _wake(self) -> None:
        if self._waiting:
            self._waiting[0].set()

    def _displace(self, now: float) -> None:
        slow = [place for place in self._places if not place.is_displaced and now - place.since >= _PATIENCE_S]
        if slow:
            slow[0].displace(now)  # the first has been there longest

    async def _wait(self) -> None:
        now = asyncio.get_running_loop().time
        until = now() + self._wait_s
        try:
            async with asyncio.timeout_at(until):
                await self._slots.acquire()
        except TimeoutError:
            raise self.refusal(Busy.REQUESTS) from None
        if now() > until:  # the loop had no time to say so before: who waited that long may have given up
            self._slots.release()
            raise self.refusal(Busy.REQUESTS)
