"""What became of requests, counted, and told to the log: a sender may hear that it is refused and say nothing."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from spanscore.wording.sparingly import Sparingly

_log = logging.getLogger(__name__)


class Wrong(StrEnum):
    """What is wrong with a request that is refused for good."""

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
        """What the sender is told."""
        return _TOLD[self]


_TOLD: Final = {
    Busy.STARTING: "starting: what was received before the restart is taken in first",
    Busy.SHUTTING_DOWN: "shutting down",
    Busy.REQUESTS: "too many requests at once",
    Busy.MEMORY: "too many requests at once",
    Busy.STORAGE: "nothing can be stored now",
    Busy.DOWNSTREAM: "the next receiver does not keep up",
    Busy.FAULT: "internal error",
}


_TOLD_ELSEWHERE: Final = frozenset({Busy.STARTING, Busy.SHUTTING_DOWN, Busy.FAULT})
"""The log has a line of its own about each."""


@dataclass(slots=True)
class RequestCounts:
    """How many requests came to what. Plain numbers: they are read when somebody asks for the metrics."""

    accepted: int = 0
    empty: int = 0
    """Of those, the ones without any span or log record."""
    decoded: Counter[str] = field(default_factory=Counter)
    """Those of the accepted that came as traces in protobuf, by the decoder that has read them."""
    refused: Counter[str] = field(default_factory=Counter)
    """By why."""


class RefusalLog:
    """Writes a line for each reason, but no two for one within a minute. It says nothing of what was sent."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lines: Final = Sparingly(_tell, clock)

    def refused(self, door: str, reason: Wrong | Busy) -> None:
        """Take note of a refused request, and of where it came in."""
        if reason not in _TOLD_ELSEWHERE:
            self._lines.note((door, reason))

    def close(self) -> None:
        """Write what was not written yet."""
        self._lines.close()


def _tell(kind: tuple[str, Wrong | Busy], count: int) -> None:
    _log.warning("%s: requests refused (%s): %d", *kind, count)
