"""Admission of requests. Other senders are asked to retry later, so that nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Final, NamedTuple, Self

from spanscore.errors import TryAgainError
from spanscore.receivers.intake.arriving import ArrivingBody, BodyMemory
from spanscore.receivers.intake.limited_work import NO_LIMIT, SharedTimeLimit
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


class Reservation:
    """The memory and the turn of one request. Leaving the context releases both."""

    __slots__ = ("_admission", "_body", "_has_turn")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._body = ArrivingBody(admission.memory)
        self._has_turn = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._admission.memory.give_back(self._body)
        if self._has_turn:
            self._admission.turns.give_back()
        if isinstance(error, MemoryError):
            raise self._admission.refusal(Busy.MEMORY) from error

    async def add(self, size: int) -> None:
        """Reserve more memory, for which other requests may be cancelled: see `BodyMemory`.

        Raises:
            Unavailable: there is none.
        """
        await self._admission.memory.reserve(self._body, size)

    def reading(self, limit: SharedTimeLimit = NO_LIMIT, sets_aside: int = 0) -> ArrivingBody:
        """Return the context in which the request's body arrives, for which it needs no turn.

        Of bodies that set memory aside as many arrive at once as fit into half of all memory.
        """
        if sets_aside:
            return ArrivingBody(self._admission.set_aside, limit, sets_aside)
        self._body.limit = limit
        return self._body

    async def turn(self) -> None:
        """Wait for the request's turn, now that all of it is there.

        Raises:
            Unavailable: too many others have theirs, or wait.
        """
        turns = self._admission.turns
        if not turns.take_free():
            await self._wait_for_turn(turns)
        self._has_turn = True

    async def _wait_for_turn(self, turns: SmallestFirst) -> None:
        now = asyncio.get_running_loop().time
        until = now() + self._admission.wait_s
        try:
            async with asyncio.timeout_at(until):
                await turns.wait(0)
        except TimeoutError:
            raise self._admission.refusal(Busy.REQUESTS) from None
        if now() > until:  # woken so late by a busy loop, its sender may have given up
            turns.give_back()
            raise self._admission.refusal(Busy.REQUESTS)


class SmallestFirst:
    """A limit on the requests that are worked on at once: the smallest waiting request is next.

    Args:
        at_once: the limit.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers: Final = count()

    def turn(self, size: int) -> _DecodingTurn:
        """Return the context in which a request of that size has a turn."""
        return _DecodingTurn(self, size)

    def take_free(self) -> bool:
        """Take a turn, if one is free, until `give_back`."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def wait(self, size: int) -> None:
        """Wait for a turn that another request gives back; requests of one size in their order."""
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (size, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was given the turn, and does not need it any more
                self.give_back()
            raise

    def give_back(self) -> None:
        """Give a turn to the next waiting request, if there is one."""
        while self._waiting:
            *_, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


class _DecodingTurn(NamedTuple):
    turns: SmallestFirst
    size: int

    async def __aenter__(self) -> None:
        if not self.turns.take_free():
            await self.turns.wait(self.size)

    async def __aexit__(self, *_: object) -> None:
        self.turns.give_back()


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
        """Count a sender that is sent away, and return its delay in seconds."""
        self._refusals = self._lately() + 1
        self._refused_at = self._clock()
        return self.current()

    def current(self) -> float:
        """Return a delay in seconds without counting anybody."""
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
        self.set_aside: Final = BodyMemory(max_bytes // 2, wait_s, refusal)
        """Memory for arriving bodies without a known size."""
        self.wait_s: Final = wait_s
        self._delay = delay or RetryDelay()
        self.closed = False
        """Whether all requests are refused."""

    def close(self) -> None:
        """Send everybody away from now on, except the requests that were let in before."""
        self.closed = True

    def request(self) -> Reservation:
        """Let a request in, for as long as it is the context.

        Raises:
            Unavailable: not now.
        """
        trouble = Busy.SHUTTING_DOWN if self.closed else self._trouble and self._trouble()
        if trouble is not None:
            raise self.refusal(trouble)
        return Reservation(self)

    def refusal(self, why: Busy, told: str | None = None, *, has_begun: bool = False) -> Unavailable:
        """Count a refused request, and return the error for its sender.

        `told` replaces the reason's own text. A request that had begun was cancelled for another one. That is no sign
        of too many requests, so it does not raise the retry delay of others.
        """
        self.requests.refused[why.value] += 1
        return Unavailable(why, told or why.told, self._delay.current() if has_begun else self._delay.next())
