"""The evidence that runs fail more often than they may: a minute in, evidence and alarm out.

A mixture of Shiryaev-Roberts e-detectors (Shin, Ramdas, Rinaldo, "E-detectors: a nonparametric framework for sequential
change detection", arXiv 2203.03532), with bets on a number from 0 to 1: the share of a minute's runs that failed. As
long as that share is at most the objective on average, whatever happened before, the evidence of n minutes is at most n
on average. So it reaches a threshold of n at the earliest after n minutes on average.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

MOST: Final = 1e12
"""Evidence does not grow further."""
PORTION_MINUTES: Final = 60
PORTION_RUNS: Final = 100
"""An alarm ends after so many minutes and runs that meet the objective."""

_LARGEST_BET: Final = 0.95
_STATE: Final = struct.Struct("<6d7I")
_BEGIN: Final = (0.0,) * 5


class Evidence(NamedTuple):
    """The evidence of one series, up to the end of a minute."""

    bets: tuple[float, ...] = _BEGIN
    """The evidence of each bet."""
    growth: float = 1.0
    """By how much more likely the failures since `since` are at twice the objective; 1 before the first."""
    since: int = 0
    """The minute in which the failures began to be more, as far as can be told; 0 if they are not more."""
    bad: int = 0
    """The runs that failed since then."""
    counted: int = 0
    """The runs since then."""
    is_alarm: bool = False
    portion: int = 0
    """The first minute of the runs that may end the alarm."""
    portion_bad: int = 0
    portion_counted: int = 0

    @property
    def value(self) -> float:
        """The evidence: the mean of the bets."""
        return sum(self.bets) / len(self.bets)

    def packed(self) -> bytes:
        """Return it in few bytes."""
        numbers = (self.since, self.bad, self.counted, self.is_alarm, self.portion)
        return _STATE.pack(*self.bets, self.growth, *numbers, self.portion_bad, self.portion_counted)

    @classmethod
    def unpacked(cls, state: bytes) -> Evidence:
        """Return what was packed.

        Raises:
            struct.error: it is something else.
        """
        *bets, growth, since, bad, counted, is_alarm, portion, portion_bad, portion_counted = _STATE.unpack(state)
        return cls(tuple(bets), growth, since, bad, counted, bool(is_alarm), portion, portion_bad, portion_counted)


class Objective:
    """At most a share of the runs may fail.

    Args:
        at_most: the share.
    """

    def __init__(self, at_most: float) -> None:
        self.at_most: Final = at_most
        p = at_most
        largest = _LARGEST_BET / p
        rates = (1.5 * p, 2 * p, 4 * p, max(0.5, (1 + p) / 2))
        bets = (*(min((q - p) / (p * (1 - p)), largest) for q in rates), largest)
        self._bets: Final = bets
        self._twice: Final = bets[1]

    def after(self, before: Evidence, minute: int, bad: int, counted: int, threshold: float) -> Evidence:
        """Return the evidence after a minute with runs.

        Args:
            before: the evidence before it.
            minute: the minute.
            bad: its runs that failed.
            counted: its runs; at least 1.
            threshold: the evidence of an alarm.
        """
        if before.is_alarm:
            return self._after_in_alarm(before, minute, bad, counted)
        above = bad / counted - self.at_most
        first, second, third, fourth, fifth = self._bets
        m1, m2, m3, m4, m5 = before.bets
        evidence = (
            min((1 + first * above) * (m1 + 1), MOST),
            min((1 + second * above) * (m2 + 1), MOST),
            min((1 + third * above) * (m3 + 1), MOST),
            min((1 + fourth * above) * (m4 + 1), MOST),
            min((1 + fifth * above) * (m5 + 1), MOST),
        )
        growth = min((1 + self._twice * above) * before.growth, MOST)
        if growth <= 1:
            found = Evidence(evidence)
        else:
            since = before.since or minute
            found = Evidence(evidence, growth, since, before.bad + bad, before.counted + counted)
        if found.value < threshold:
            return found
        return found._replace(is_alarm=True, since=found.since or minute, portion=minute + 1)

    def _after_in_alarm(self, before: Evidence, minute: int, bad: int, counted: int) -> Evidence:
        found = before._replace(
            portion_bad=before.portion_bad + bad,
            portion_counted=before.portion_counted + counted,
            bad=before.bad + bad,
            counted=before.counted + counted,
        )
        if minute - found.portion + 1 < PORTION_MINUTES or found.portion_counted < PORTION_RUNS:
            return found
        if found.portion_bad <= self.at_most * found.portion_counted:
            return Evidence()
        return found._replace(portion=minute + 1, portion_bad=0, portion_counted=0)

    def least(self, evidence: Evidence, minutes: int) -> Evidence:
        """Return the least evidence that there may be after so many unknown minutes: each as if no run had failed."""
        bets = tuple(m * (1 - bet * self.at_most) ** minutes for bet, m in zip(self._bets, evidence.bets, strict=True))
        return evidence if evidence.is_alarm else evidence._replace(bets=bets)
