"""The back-off for evaluators that hang. Pure: the caller passes the time."""

from __future__ import annotations

from typing import Final

LOSSES: Final = 3
"""An evaluator that hangs so many times in a row, or ends its process, is set aside."""

_FIRST_PAUSE_S: Final = 10.0
_LONGEST_PAUSE_S: Final = 300.0


class Patience:
    """The back-off of one evaluator: after repeated losses it is not run for a while, twice as long each time.

    Otherwise an evaluator that always hangs would use its whole time limit for every trace, and delay all scores. A run
    that is evaluated several times, as some of its calls are uncertain, is one loss: it is given up at the first.
    """

    def __init__(self) -> None:
        self._losses = 0
        self._pause_s = _FIRST_PAUSE_S
        self._until = 0.0
        self._lost_run = b""

    def refusal(self, now: float, run: bytes = b"") -> str:
        """Return the reason why the evaluator is not run now, for a run with this id if it has one; empty if it is."""
        if run and run == self._lost_run:
            return "not run: it hung or ended its process at this run already"
        if self._losses < LOSSES or now >= self._until:
            return ""
        times = f"it hung or ended its process {self._losses} times in a row"
        return f"not run: {times}; tried again within {self._pause_s:g} s"

    def learn(self, now: float, run: bytes = b"", *, is_lost: bool) -> None:
        """Learn how an evaluation ended."""
        if is_lost:
            self._lost_run = run
        elif run != self._lost_run:
            self._lost_run = b""
        if not is_lost:
            self._losses, self._pause_s = 0, _FIRST_PAUSE_S
            return
        self._losses += 1
        if self._losses >= LOSSES:
            if self._losses > LOSSES:
                self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
            self._until = now + self._pause_s
