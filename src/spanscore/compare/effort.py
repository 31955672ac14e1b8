"""Limits on the work of one evaluation, so that no run, not even a hostile one, can delay the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_COMPARISONS: Final = 250_000
"""No evaluation compares the arguments of more pairs of calls."""

MAX_WORK: Final = 20_000
"""No check of one value by a JSON Schema may apply more keywords."""


class TooMuchWorkError(Exception):
    """An evaluation would take more work than it may. The message is the reason to skip it."""


class Effort:
    """The work that one evaluation may still do.

    Beyond the limit `most`, in any unit, the error has `message`, with the limit in place of `{}`.
    """

    def __init__(
        self,
        most: int = MAX_COMPARISONS,
        message: str = "matching the arguments takes more than {} comparisons: the calls are too alike",
    ) -> None:
        self._most: Final = most
        self._message: Final = message
        self._left = most

    @property
    def spent(self) -> int:
        """The work that was spent."""
        return self._most - self._left

    def spend(self, work: int = 1) -> None:
        """Take note of work that is done.

        Raises:
            TooMuchWorkError: it is too much.
        """
        self._left -= work
        if self._left < 0:
            raise TooMuchWorkError(self._message.format(self._most))


@dataclass(slots=True)
class SchemaWork:
    """The work that is left for several checks by JSON Schemas."""

    left: int = MAX_WORK
    nested: int = 0
    """The nesting of the keywords that are being checked."""
