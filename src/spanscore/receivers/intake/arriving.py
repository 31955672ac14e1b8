"""Memory for the bodies of requests, and the one rule by which an arriving body is cancelled when it is short."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

from spanscore.errors import TryAgainError
from spanscore.receivers.intake.limited_work import LimitedWork

_PATIENCE_S: Final = 1.0
"""Each body counts as if it had been arriving for so long at least: among new ones the largest is the heaviest."""

_LEAST_PATIENCE_S: Final = 0.01
_MAX_WAITING: Final = 1_000


class BodyMemory:
    """Memory that bodies share. Belongs to one event loop.

    If it is short, the heaviest of the arriving bodies are cancelled, by bytes times seconds. If the heaviest is the
    one that asks for more, it alone is refused; so it is if all heavier ones together have too little.

    Args:
        max_bytes: the whole memory, in bytes.
        wait_s: the longest wait of a body for the memory that it sets aside, in seconds.
        refusal: returns the error for a body that gets no memory or is cancelled; takes `has_begun`.
    """

    def __init__(self, max_bytes: int, wait_s: float, refusal: Callable[..., TryAgainError]) -> None:
        self.free_bytes = max_bytes
        self.arriving: Final[list[ArrivingBody]] = []
        self.refusal: Final = refusal
        self.left: Final = asyncio.Event()
        """Set when a body arrives no more."""
        self._wait_s: Final = wait_s
        self._first_in_line: Final = asyncio.Lock()
        self._patiences_s: Final[deque[float]] = deque()
        """For each waiting body: the seconds that the bodies before it may take, so that it has its turn in time."""

    async def set_aside(self, size: int) -> ArrivingBody:
        """Return a body of unknown size that has so much memory as long as it is the context.

        It waits until there is some, or nothing else arrives: one may be of any size.

        Raises:
            TryAgainError: it waited too long, or too many wait.
        """
        body = ArrivingBody(self)
        if self._patiences_s or (size > self.free_bytes and self.arriving):
            await self._wait_in_line(body, size)
        self.free_bytes -= size
        body.size = size
        return body

    def cancel_heavier(self, asker: ArrivingBody, size: int, patience_s: float = _PATIENCE_S) -> bool:
        """Cancel enough bodies to free the memory that another one needs. If they have less, cancel none, return False.

        Only bodies that are heavier than the asking one will be are cancelled, the heaviest first.
        """
        now = asyncio.get_running_loop().time()
        short = size - self.free_bytes - sum(body.size for body in self.arriving if body.is_cancelled)
        least = asker.weight(now, patience_s, size)
        heavier = [(body.weight(now, patience_s), body) for body in self.arriving if not body.is_cancelled]
        heavier = sorted((each for each in heavier if each[0] > least), key=lambda each: each[0], reverse=True)
        chosen: list[ArrivingBody] = []
        for _, body in heavier:
            if short <= 0:
                break
            chosen.append(body)
            short -= body.size
        if short > 0:
            return False
        for body in chosen:
            body.cancel()
        return True

    async def _wait_in_line(self, body: ArrivingBody, size: int) -> None:
        if len(self._patiences_s) == _MAX_WAITING:
            raise self.refusal()
        # So that all waiting bodies have their turn in half of their longest wait.
        own_s = self._wait_s / 2 * len(self.arriving) / (len(self._patiences_s) + 1)
        self._patiences_s.append(own_s)
        try:
            async with asyncio.timeout(self._wait_s), self._first_in_line:
                while size > self.free_bytes and self.arriving:
                    patience_s = max(_LEAST_PATIENCE_S, min(_PATIENCE_S, *self._patiences_s))
                    self.cancel_heavier(body, size, patience_s)
                    self.left.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(patience_s):
                            await self.left.wait()
        except TimeoutError:
            raise self.refusal() from None
        finally:
            self._patiences_s.remove(own_s)


@dataclass(slots=True, eq=False)
class ArrivingBody:
    """The body of a request, and its memory, which it has as long as it is the context."""

    memory: BodyMemory
    size: int = 0
    """Bytes of memory."""
    since: float = math.inf
    """The start of its arrival, by the clock of the event loop."""
    is_cancelled: bool = False
    work: ArrivalLimit | None = None
    """The context in which it arrives."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.memory.free_bytes += self.size
        if isinstance(error, MemoryError):
            raise self.memory.refusal() from error

    async def add(self, size: int) -> None:
        """Reserve more memory, if need be that of others when they have given it back.

        Raises:
            TryAgainError: there is none.
        """
        memory = self.memory
        while size > memory.free_bytes:
            if not memory.cancel_heavier(self, size):
                raise memory.refusal(has_begun=bool(self.size))
            memory.left.clear()
            await memory.left.wait()
        memory.free_bytes -= size
        self.size += size

    def weight(self, now: float, patience_s: float, more: int = 0) -> float:
        """Return how many bytes it would have with some more, times the seconds since it began."""
        return (self.size + more) * max(now - self.since, patience_s)

    def cancel(self) -> None:
        """End the reading of it."""
        if self.work is not None and not self.work.is_cut_off:
            self.is_cancelled = True
            self.work.cut_off()


@dataclass(slots=True, eq=False)
class ArrivalLimit(LimitedWork):
    """The context in which a body arrives: meanwhile it may be cancelled for another one.

    Raises TryAgainError if it was cancelled, and TimeoutError if it took longer than the limit to arrive.
    """

    body: ArrivingBody = field(kw_only=True)

    def __enter__(self) -> Self:
        body = self.body
        body.since, body.work = asyncio.get_running_loop().time(), self
        body.memory.arriving.append(body)
        return LimitedWork.__enter__(self)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        memory, self.body.work = self.body.memory, None
        memory.arriving.remove(self.body)
        memory.left.set()
        try:
            LimitedWork.__exit__(self, kind, error, trace)
        except TimeoutError:
            if self.body.is_cancelled:
                raise memory.refusal(has_begun=True) from None
            raise
