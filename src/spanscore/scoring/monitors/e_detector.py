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
_STATE: Final = struct.Struct("<6d3I?3x3I")
_BETS: Final = 5


class Evidence(NamedTuple):
    """The evidence of one series, up to the end of a minute. Flat, as every minute reads and writes it."""

    bet_1: float = 0.0
    bet_2: float = 0.0
    bet_3: float = 0.0
    bet_4: float = 0.0
    bet_5: float = 0.0
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
    def bets(self) -> tuple[float, ...]:
        """The evidence of each bet."""
        return self[:_BETS]

    @property
    def value(self) -> float:
        """The evidence: the mean of the bets."""
        return sum(self.bets) / _BETS

    def packed(self) -> bytes:
        """Return it in few bytes."""
        return _STATE.pack(*self)

    @classmethod
    def unpacked(cls, state: bytes) -> Evidence:
        """Return the evidence from its packed form.

        Raises:
            struct.error: it is something else.
        """
        return cls._make(_STATE.unpack(state))


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
        self._bets: Final = (*(min((q - p) / (p * (1 - p)), largest) for q in rates), largest)

    def after(self, before: Evidence, minute: int, bad: int, counted: int, threshold: float) -> Evidence:
        """Return the evidence after a minute with runs.

        Args:
            before: the evidence before it.
            minute: the minute.
            bad: its runs that failed.
            counted: its runs; at least 1.
            threshold: the evidence of an alarm.
        """
        m1, m2, m3, m4, m5, growth, since, bad_before, counted_before, is_alarm, *_ = before
        if is_alarm:
            return self._after_in_alarm(before, minute, bad, counted)
        above = bad / counted - self.at_most
        first, second, third, fourth, fifth = self._bets
        m1 = (1 + first * above) * (m1 + 1)
        m2 = (1 + second * above) * (m2 + 1)
        m3 = (1 + third * above) * (m3 + 1)
        m4 = (1 + fourth * above) * (m4 + 1)
        m5 = (1 + fifth * above) * (m5 + 1)
        total = m1 + m2 + m3 + m4 + m5
        if total > MOST:
            m1, m2, m3, m4, m5 = (min(each, MOST) for each in (m1, m2, m3, m4, m5))
            total = m1 + m2 + m3 + m4 + m5
        growth *= 1 + second * above
        if growth <= 1:
            found = Evidence(m1, m2, m3, m4, m5)
        else:
            bad, counted = bad_before + bad, counted_before + counted
            found = Evidence(m1, m2, m3, m4, m5, min(growth, MOST), since or minute, bad, counted)
        if total < threshold * _BETS:
            return found
        return found._replace(is_alarm=True, since=found.since or minute, portion=minute + 1)

    def _after_in_alarm(self, before: Evidence, minute: int, bad: int, counted: int) -> Evidence:
        runs = (before.bad + bad, before.counted + counted)
        portion = (before.portion, before.portion_bad + bad, before.portion_counted + counted)
        found = Evidence(*before[:7], *runs, before.is_alarm, *portion)
        if minute - found.portion + 1 < PORTION_MINUTES or found.portion_counted < PORTION_RUNS:
            return found
        if found.portion_bad <= self.at_most * found.portion_counted:
            return Evidence()
        return found._replace(portion=minute + 1, portion_bad=0, portion_counted=0)

    def least(self, evidence: Evidence, minutes: int) -> Evidence:
        """Return the least evidence that there may be after so many unknown minutes: each as if no run had failed."""
        if evidence.is_alarm:
            return evidence
        bets = (m * (1 - bet * self.at_most) ** minutes for bet, m in zip(self._bets, evidence.bets, strict=True))
        return Evidence._make((*bets, *evidence[_BETS:]))
