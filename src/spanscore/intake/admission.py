"""Who may hand in a request now. Everybody else is asked to come again later, so that nothing is lost."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from spanscore.errors import TryAgainError
from spanscore.intake.reading import Reader, Readers
from spanscore.intake.requests import Busy, RefusalLog, RequestCounts

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


@dataclass(slots=True, eq=False, kw_only=True)
class Held(Reader):
    """What one request holds, for as long as it is the context: memory, and a turn while it is worked on."""

    admission: Admission
    has_turn: bool = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.admission.free_bytes += self.size
        if self.has_turn:
            self.admission.turns.release()

    async def add(self, size: int) -> None:
        """Hold more memory. Where there is none, those give way who are slow, or hold more than an equal share.

        Raises:
            Unavailable: all requests together hold too much.
        """
        admission = self.admission
        if size > admission.free_bytes:
            await admission.readers.displace(size - admission.free_bytes, self.size + size, self)
            if size > admission.free_bytes:
                raise admission.refusal(Busy.MEMORY)
        admission.free_bytes -= size
        self.size += size

    def reading(self, timeout_s: float | None = None, set_aside: int = 0) -> AbstractAsyncContextManager[None]:
        """Read the request, within the timeout, which needs no turn. Where others need its memory, it may have to go.

        Args:
            timeout_s: how long that may take; None where somebody else looks after it.
            set_aside: how large it may be where nobody knows before it is there: that much is kept free for it.

        Raises:
            Unavailable: there is no memory for it, or others wait for that.
            TimeoutError: it took too long.
        """
        return self.admission.readers.reading(self, timeout_s, set_aside)

    async def turn(self) -> None:
        """Wait for the request's turn, now that all of it is there.

        Raises:
            Unavailable: too many others have theirs, or wait.
        """
        turns = self.admission.turns
        if turns.locked():
            await self._wait_for_turn(turns)
        else:
            await turns.acquire()
        self.has_turn = True

    async def _wait_for_turn(self, turns: asyncio.Semaphore) -> None:
        now = asyncio.get_running_loop().time
        until = now() + self.admission.wait_s
        try:
            async with asyncio.timeout_at(until):
                await turns.acquire()
        except TimeoutError:
            raise self.admission.refusal(Busy.REQUESTS) from None
        if now() > until:  # told so late by a busy loop, its sender may have given up
            turns.release()
            raise self.admission.refusal(Busy.REQUESTS)


class RetryDelay:
    """How long a sender should wait: the longer the more were sent away lately, and not all equally long."""

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
        max_requests: how many requests are worked on at once; the next ones that are there wait for a short time.
        max_bytes: how much of them is in memory.
        wait_s: how long a request waits before its sender is sent away.
        delay: how long senders should wait that are sent away.
        trouble: says why nothing can be taken now, whatever it is.
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
        """What became of requests; those who answer them count too."""
        self.refusal_log: Final = RefusalLog()
        self._trouble: Final = trouble
        self.turns: Final = asyncio.Semaphore(max_requests)
        self.free_bytes = max_bytes
        """How much may still be received."""
        self.readers: Final = Readers(max_bytes, wait_s, partial(self.refusal, Busy.MEMORY))
        self.wait_s: Final = wait_s
        self._delay = delay or RetryDelay()
        self.closed = False
        """Whether everybody is sent away."""

    def close(self) -> None:
        """Send everybody away from now on, except the requests that were let in before."""
        self.closed = True

    def request(self) -> Held:
        """Let a request in, for as long as it is the context.

        Raises:
            Unavailable: not now.
        """
        trouble = Busy.SHUTTING_DOWN if self.closed else self._trouble and self._trouble()
        if trouble is not None:
            raise self.refusal(trouble)
        return Held(admission=self)

    def refusal(self, why: Busy, told: str | None = None, *, has_begun: bool = False) -> Unavailable:
        """Count a request that is not taken, and return what to tell its sender.

        It is told the reason, or that in other words. One that had begun has given way, which does not say that there
        are too many: others wait no longer.
        """
        self.requests.refused[why.value] += 1
        return Unavailable(why, told or why.told, self._delay.current() if has_begun else self._delay.next())
