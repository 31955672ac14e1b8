"""How much work one evaluation may take, so that no run, however it was made, can hold up the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_COMPARISONS: Final = 250_000
"""No evaluation compares the arguments of more pairs of calls."""


MAX_WORK: Final = 20_000
"""No check of one value by a JSON Schema may apply more keywords."""


class TooMuchWorkError(Exception):
    """Matching the calls of a run would take more comparisons than it may."""


class Effort:
    """What is left of the comparisons that one evaluation may make."""

    def __init__(self) -> None:
        self._left = MAX_COMPARISONS

    def spend(self, comparisons: int) -> None:
        """Take note of comparisons that are made.

        Raises:
            TooMuchWorkError: they are too many.
        """
        self._left -= comparisons
        if self._left < 0:
            message = f"matching the arguments takes more than {MAX_COMPARISONS} comparisons: the calls are too alike"
            raise TooMuchWorkError(message)


@dataclass(slots=True)
class Work:
    """How much work is left for a number of checks by JSON Schemas."""

    left: int = MAX_WORK
    nested: int = 0
    """How many keywords are being checked, one within the other."""
