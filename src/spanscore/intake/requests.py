"""What became of requests, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


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


_TOLD = {
    Busy.STARTING: "starting: what was received before the restart is taken in first",
    Busy.SHUTTING_DOWN: "shutting down",
    Busy.REQUESTS: "too many requests at once",
    Busy.MEMORY: "too many requests at once",
    Busy.STORAGE: "nothing can be stored now",
    Busy.DOWNSTREAM: "the next receiver does not keep up",
    Busy.FAULT: "internal error",
}


@dataclass(slots=True)
class RequestCounts:
    """How many requests came to what. Plain numbers: they are read when somebody asks for the metrics."""

    accepted: int = 0
    empty: int = 0
    """Of those, the ones without any span."""
    refused: Counter[str] = field(default_factory=Counter)
    """By why."""
