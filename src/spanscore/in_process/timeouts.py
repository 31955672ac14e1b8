"""Timeouts as the SDK's callers pass them."""

from __future__ import annotations

from threading import TIMEOUT_MAX
from typing import Final

DEFAULT_TIMEOUT_MS: Final = 30_000

LAST_SCORING_S: Final = 10.0
"""The most seconds of scoring at a shutdown without a timeout: the application may be busy, and wants to end."""

_LONGEST_S: Final = TIMEOUT_MAX / 2
"""Waiting for longer raises an error in Python; rounding may make it a little more."""


def seconds(timeout_millis: float | None) -> float:
    """Return a timeout in seconds, no longer than Python can wait; None is the default, as for the SDK's processors."""
    return min(max(0.0, (DEFAULT_TIMEOUT_MS if timeout_millis is None else timeout_millis) / 1000), _LONGEST_S)


def last_scoring_s(timeout_millis: float | None, *, passes_on: bool) -> float:
    """Return the most seconds of scoring at a shutdown.

    If something behind is shut down, too, it needs time to send its spans.
    """
    scoring_s = LAST_SCORING_S if timeout_millis is None else seconds(timeout_millis)
    return min(scoring_s, seconds(timeout_millis) / 2) if passes_on else scoring_s
