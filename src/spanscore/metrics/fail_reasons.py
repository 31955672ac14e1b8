"""Keeps the reasons with a series of their own few: their texts come from traffic, and may all differ."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MOST_ADMITTED: Final = 80
"""Reasons that are admitted at once: as many series as a metric of many agents keeps free."""
ADMITTING_RUN: Final = 5
"""The run with which a reason is admitted."""
MOST_COUNTED: Final = 1_024
"""Reasons whose runs are counted before they are admitted: those that were seen last."""
UNSEEN_S: Final = 3_600.0
"""The time without a run after which an admitted reason may give way to another one."""


class ReasonAdmission:
    """Admits reasons of failing runs that occur again, so that single texts do not use up the series of a metric.

    Pure: the caller passes the time.
    """

    def __init__(self) -> None:
        self._admitted: Final[OrderedDict[str, float]] = OrderedDict()
        """The time of the last run of each admitted reason, the one that was not seen for longest first."""
        self._counted: Final[OrderedDict[str, int]] = OrderedDict()
        """The runs of each other reason, in the same order."""

    def admits(self, reason: str, now_s: float) -> bool:
        """Count a run, and return whether its reason is admitted.

        A reason is admitted from its fifth run on. If 80 are admitted, the one that was not seen for longest gives way,
        if that is an hour; else the new one is not admitted yet. The time is in seconds that never run backwards.
        """
        if reason in self._admitted:
            self._admitted[reason] = now_s
            self._admitted.move_to_end(reason)
            return True
        runs = self._counted.pop(reason, 0) + 1
        if runs >= ADMITTING_RUN and self._has_room(now_s):
            self._admitted[reason] = now_s
            return True
        self._counted[reason] = runs
        if len(self._counted) > MOST_COUNTED:
            self._counted.popitem(last=False)
        return False

    def _has_room(self, now_s: float) -> bool:
        """Return whether a reason can be admitted; make room if one can give way."""
        if len(self._admitted) < MOST_ADMITTED:
            return True
        if now_s - next(iter(self._admitted.values())) < UNSEEN_S:
            return False
        self._admitted.popitem(last=False)
        return True
