"""Counts of accepted and refused requests, and the log of refusals: a sender may not show that it is refused."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from spanscore.messages.printable import printable
from spanscore.messages.throttle import CallLater, Throttle

_log = logging.getLogger(__name__)


class Wrong(StrEnum):
    """The reason of a refusal after which a retry is useless."""

    MALFORMED = "malformed"
    NO_VALID_SPAN = "no_valid_span"
    TOO_LARGE = "too_large"
    TIMED_OUT = "timed_out"
    UNAUTHENTICATED = "unauthenticated"
    MISDIRECTED = "misdirected"
    UNSUPPORTED = "unsupported"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"


class Busy(StrEnum):
    """Why a request is not taken now, and should be sent again later."""

    STARTING = "starting"
    SHUTTING_DOWN = "shutting_down"
    REQUESTS = "too_many_requests"
    MEMORY = "no_memory"
    STORAGE = "storage"
    DOWNSTREAM = "downstream"
    FAULT = "internal_error"

    @property
    def told(self) -> str:
        """The message to the sender."""
        return _TOLD[self]


_TOLD: Final = {
    Busy.STARTING: "starting: stored requests are replayed first",
    Busy.SHUTTING_DOWN: "shutting down",
    Busy.REQUESTS: "too many requests at once",
    Busy.MEMORY: "too many requests at once",
    Busy.STORAGE: "the storage cannot take requests now",
    Busy.DOWNSTREAM: "the next receiver does not keep up",
    Busy.FAULT: "internal error",
}


_TOLD_ELSEWHERE: Final = frozenset({Busy.STARTING, Busy.SHUTTING_DOWN, Busy.FAULT})
"""The log has a line of its own about each."""


@dataclass(slots=True)
class RequestCounts:
    """Counts of requests by outcome. Plain numbers, read when metrics are collected."""

    accepted: int = 0
    empty: int = 0
    """Accepted requests without any span or log record."""
    decoded: Counter[str] = field(default_factory=Counter)
    """Accepted requests with traces in protobuf, by the decoder that read them."""
    refused: Counter[str] = field(default_factory=Counter)
    """By why."""


class Sender(NamedTuple):
    """The client that sent a request, as far as its receiver knows it."""

    address: str = ""
    user_agent: str = ""


class RefusalLog:
    """Logs refused requests, sparingly for each door and reason, with the latest sender but nothing of the request.

    Args:
        clock: seconds that never run backwards.
        call_later: has refusals reported though no further one comes; that of the running event loop by default.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, call_later: CallLater | None = None) -> None:
        self._lines: Final = Throttle(self._tell, clock, call_later or _call_later)
        self._latest: Final[dict[tuple[str, Wrong | Busy], Sender]] = {}

    def refused(self, door: str, reason: Wrong | Busy, sender: Sender) -> None:
        """Count a refused request, with the door that it came in by."""
        if reason not in _TOLD_ELSEWHERE:
            self._latest[door, reason] = sender
            self._lines.note((door, reason))

    def close(self) -> None:
        """Log the refusals that are not logged yet."""
        self._lines.close()

    def _tell(self, kind: tuple[str, Wrong | Busy], count: int) -> None:
        address, user_agent = map(printable, self._latest.pop(kind))
        source = f", the latest from {address}" if address else ""
        _log.warning("%s: requests refused (%s): %d%s%s", *kind, count, source, user_agent and f" ({user_agent})")


def _call_later(delay_s: float, action: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(delay_s, action)
