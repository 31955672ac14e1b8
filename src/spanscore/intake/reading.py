"""Those whose requests are being read: nobody is given a turn for that, and who takes long gives way to others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from spanscore.errors import TryAgainError

_PATIENCE_S: Final = 1.0
"""How long a slow sender is left in peace while others wait for its place."""

_LEAST_PATIENCE_S: Final = 0.01
_MAX_WAITING: Final = 1_000


@dataclass(slots=True, eq=False)
class Reader:
    """Who reads a request."""

    size: int = 0
    """The memory that it holds by now."""
    since: float = 0.0
    limit: asyncio.Timeout | None = None
    is_displaced: bool = False

    def displace(self, now: float) -> None:
        """End the reading."""
        if self.limit is not None and not self.limit.expired():
            self.is_displaced = True
            self.limit.reschedule(now)

    def bytes_per_s(self, now: float) -> float:
        """Return how fast it comes."""
        return self.size / max(now - self.since, _LEAST_PATIENCE_S)


@dataclass(slots=True, eq=False)
class _Turn:
    """One that waits."""

    patience_s: float
    """How long those before it may take, for it to be read in time."""
    may_look: asyncio.Event = field(default_factory=asyncio.Event)


class Readers:
    """All of them, and those who wait because nobody knows how large their requests are.

    Args:
        max_bytes: the memory of all requests. Half of it may be set aside for those whose size is not known before they
            are there; the rest is for the others.
        wait_s: how long one waits for some of that half.
        refusal: makes what is raised for who has given way, which had begun, or found no place to begin.
    """

    def __init__(self, max_bytes: int, wait_s: float, refusal: Callable[..., TryAgainError]) -> None:
        self._max_bytes = max_bytes
        self._free = max_bytes // 2
        self._wait_s = wait_s
        self._refusal = refusal
        self._readers: list[Reader] = []
        self.places: list[Reader] = []
        """The ones that memory is set aside for."""
        self._waiting: deque[_Turn] = deque()
        self._left = asyncio.Event()

    def reading(self, reader: Reader, timeout_s: float | None, set_aside: int) -> AbstractAsyncContextManager[None]:
        """See `Held.reading`."""
        return _Reading(self, reader, timeout_s, set_aside)

    async def begin(self, reader: Reader, set_aside: int) -> None:
        """Wait until there is room for what a reader sets aside, and count it among those that read."""
        if set_aside:
            if self._waiting or self._is_full(set_aside):
                await self._wait_for_room(set_aside)
            self._free -= set_aside
            self.places.append(reader)
        reader.since = asyncio.get_running_loop().time()
        self._readers.append(reader)

    def end(self, reader: Reader, set_aside: int) -> None:
        """Give back what a reader has set aside, and count it no more."""
        self._readers.remove(reader)
        self._left.set()
        if set_aside:
            self.places.remove(reader)
            self._free += set_aside
            self._wake()

    def gave_way(self) -> TryAgainError:
        """Return what is raised for a reader that had begun."""
        return self._refusal(has_begun=True)

    async def displace(self, size: int, wanted: int, asker: Reader) -> None:
        """Take at least that much memory from others, and return when they have given it back. It may be less.

        Nobody has to go for nothing: neither where all of them together have too little, nor for somebody who is to go
        before they do.

        Args:
            size: how much.
            wanted: how much the one that needs it will then have in all.
            asker: the one that needs it.

        Raises:
            TryAgainError: it is itself the next to go.
        """
        now = asyncio.get_running_loop().time()
        size -= sum(reader.size for reader in self._readers if reader.is_displaced)
        chosen: list[Reader] = []
        for reader in self._giving_way(now, wanted):
            if size <= 0:
                break
            if reader is asker:
                raise self._refusal(has_begun=True)
            chosen.append(reader)
            size -= reader.size
        for reader in chosen if size <= 0 else ():
            reader.displace(now)
        going = {reader for reader in self._readers if reader.is_displaced}
        while going.intersection(self._readers):
            self._left.clear()
            await self._left.wait()

    def _giving_way(self, now: float, wanted: int) -> list[Reader]:
        """Return who goes first: the slowest that have had their time, then who has more than an equal share."""
        holding = [reader for reader in self._readers if reader.size and not reader.is_displaced]
        slow = [reader for reader in holding if now - reader.since >= _PATIENCE_S]
        slow.sort(key=lambda reader: reader.bytes_per_s(now))
        share = self._max_bytes / max(1, len(self._readers))
        if wanted > share:
            return slow
        large = [reader for reader in holding if reader.size > share]
        large.sort(key=lambda reader: reader.size, reverse=True)
        return list(dict.fromkeys(slow + large))

    def _is_full(self, size: int) -> bool:
        return size > self._free and bool(self.places)  # one is always read, however large it may be

    async def _wait_for_room(self, size: int) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + self._wait_s
        if len(self._waiting) == _MAX_WAITING:
            raise self._refusal(has_begun=False)
        turn = _Turn(self._wait_s / 2 * len(self.places) / (len(self._waiting) + 1))
        self._waiting.append(turn)
        try:
            while self._waiting[0] is not turn or self._is_full(size):
                now = loop.time()
                if now >= until:
                    raise self._refusal(has_begun=False)
                next_look = until
                if self._waiting[0] is turn:
                    # So that all who wait have their turn in half of the time they wait for it.
                    least = min(waiting.patience_s for waiting in self._waiting)
                    patience_s = max(_LEAST_PATIENCE_S, min(_PATIENCE_S, least))
                    self._displace_longest(now, patience_s)
                    next_look = min(until, now + patience_s)
                turn.may_look.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(next_look):
                        await turn.may_look.wait()
        finally:
            self._waiting.remove(turn)
            self._wake()

    def _wake(self) -> None:
        if self._waiting:
            self._waiting[0].may_look.set()

    def _displace_longest(self, now: float, patience_s: float) -> None:
        for reader in self.places:  # the first has been there longest
            if not reader.is_displaced and now - reader.since >= patience_s:
                reader.displace(now)
                return


class _Reading:
    """The time in which one request is read: a class, as a generator takes longer, and each request has one."""

    __slots__ = ("_limit", "_reader", "_readers", "_set_aside", "_timeout_s")

    def __init__(self, readers: Readers, reader: Reader, timeout_s: float | None, set_aside: int) -> None:
        self._readers = readers
        self._reader = reader
        self._timeout_s = timeout_s
        self._set_aside = set_aside

    async def __aenter__(self) -> None:
        await self._readers.begin(self._reader, self._set_aside)
        self._limit = self._reader.limit = asyncio.timeout(self._timeout_s)
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError:
            if self._reader.is_displaced:
                raise self._readers.gave_way() from None
            raise
        finally:
            self._readers.end(self._reader, self._set_aside)
