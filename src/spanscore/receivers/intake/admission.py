"""Admission of requests. Other senders are asked to retry later, so that nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final

from spanscore.errors import TryAgainError
from spanscore.receivers.intake.arriving import ArrivingBody, BodyMemory
from spanscore.receivers.intake.requests import Busy, RefusalLog, RequestCounts

_MAX_REQUESTS: Final = 64
_MAX_BYTES: Final = 256 * 2**20
_WAIT_S: Final = 5.0

_SHORTEST_DELAY_S: Final = 1.0
_LONGEST_DELAY_S: Final = 30.0
_HALF_LIFE_S: Final = 10.0
_REFUSALS_PER_SECOND: Final = 20.0


class Unavailable(TryAgainError):  # noqa: N818 - what the sender is told, and not an error of ours
    """A request cannot be taken now; the sender should send it again."""

    def __init__(self, why: Busy, told: str, retry_after_s: float) -> None:
        super().__init__(told, retry_after_s)
        self.why = why


class SmallestFirst:
    """A limit on the requests that are worked on at once: the smallest waiting request is next.

    Args:
        at_once: the limit.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers: Final = count()

    async def take(self, size: int = 0, wait_s: float | None = None) -> None:
        """Take a turn until `give_back`. Requests of one size have theirs in the order in which they came.

        `Door` takes a turn for a whole request: without a size, so the first one is next, and for `wait_s` at most.
        `Intake` takes one for decoding: with a size, so a small request overtakes large ones, within the time limit of
        the request.

        Raises:
            TimeoutError: it has waited for longer than `wait_s` seconds.
        """
        if self._free:
            self._free -= 1
        else:
            await self._wait(size, wait_s)

    def give_back(self) -> None:
        """Give a turn to the next waiting request, if there is one."""
        while self._waiting:
            *_, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def _wait(self, size: int, wait_s: float | None) -> None:
        loop = asyncio.get_running_loop()
        began, turn = loop.time(), loop.create_future()
        heappush(self._waiting, (size, next(self._numbers), turn))
        try:
            async with asyncio.timeout(wait_s):
                await turn
        except (asyncio.CancelledError, TimeoutError):
            if not turn.cancelled():  # it was given the turn, and does not need it any more
                self.give_back()
            raise
        if wait_s is not None and loop.time() - began > wait_s:  # by a busy loop: its sender may have given up
            self.give_back()
            raise TimeoutError


class RetryDelay:
    """The retry delay for senders, in seconds: longer after many refusals, and with jitter."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._jitter = jitter
        self._refusals = 0.0
        self._refused_at = clock()

    def next(self) -> float:
        """Count a refused sender, and return its delay in seconds."""
        self._refusals = self._lately() + 1
        self._refused_at = self._clock()
        return self.current()

    def current(self) -> float:
        """Return the delay in seconds without counting a sender."""
        delay_s = _SHORTEST_DELAY_S + self._lately() / _REFUSALS_PER_SECOND
        return min(_LONGEST_DELAY_S, delay_s * (1 + self._jitter() / 2))

    def _lately(self) -> float:
        return self._refusals * float(0.5 ** ((self._clock() - self._refused_at) / _HALF_LIFE_S))


class Admission:
    """Bounds what is being received at once, and closes when the process ends.

    Belongs to one event loop.

    Args:
        max_requests: the most requests that are worked on at once; further complete ones wait up to `wait_s`.
        max_bytes: the most bytes of requests in memory.
        wait_s: the longest wait of a request before it is refused, in seconds.
        delay: the retry delay for refused senders.
        trouble: returns the reason if no request can be taken now.
    """

    def __init__(
        self,
        *,
        max_requests: int = _MAX_REQUESTS,
        max_bytes: int = _MAX_BYTES,
        wait_s: float = _WAIT_S,
        delay: RetryDelay | None = None,
        trouble: Callable[[], Busy | None] | None = None,
    ) -> None:
        self.requests: Final = RequestCounts()
        """Counts of requests by outcome; the servers that answer requests count here, too."""
        self.refusal_log: Final = RefusalLog()
        self._trouble: Final = trouble
        self.turns: Final = SmallestFirst(max_requests)
        refusal = partial(self.refusal, Busy.MEMORY)
        self.memory: Final = BodyMemory(max_bytes, wait_s, refusal)
        self.unsized: Final = BodyMemory(max_bytes // 2, wait_s, refusal)
        """Memory for arriving bodies without a known size."""
        self.wait_s: Final = wait_s
        self._delay = delay or RetryDelay()
        self.closed = False
        """Whether all requests are refused."""

    def close(self) -> None:
        """Refuse all requests from now on, except those that were let in before."""
        self.closed = True

    def request(self) -> ArrivingBody:
        """Let a request in, and return its body, which has memory as long as it is the context.

        Raises:
            Unavailable: not now.
        """
        trouble = Busy.SHUTTING_DOWN if self.closed else self._trouble and self._trouble()
        if trouble is not None:
            raise self.refusal(trouble)
        return ArrivingBody(self.memory)

    def refusal(self, why: Busy, told: str | None = None, *, has_begun: bool = False) -> Unavailable:
        """Count a refused request, and return the error for its sender.

        `told` replaces the reason's own text. A request that had begun was cancelled for another one. That is no sign
        of too many requests, so it does not raise the retry delay of others.
        """
        self.requests.refused[why.value] += 1
        return Unavailable(why, told or why.told, self._delay.current() if has_begun else self._delay.next())
