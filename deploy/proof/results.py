"""What was proven, what failed, and what could not be run: a table, and the exit status that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

PROVEN: Final = 0
FAILED: Final = 1
NOT_RUN: Final = 3


class Outcome(StrEnum):
    """How a claim came out."""

    PROVEN = "proven"
    FAILED = "FAILED"
    NOT_RUN = "not run"


class Results:
    """Collects claims and prints each as it is decided."""

    def __init__(self) -> None:
        self._outcomes: list[Outcome] = []

    def section(self, title: str) -> None:
        """Begin a part of the table."""
        print(f"\n{title}", flush=True)

    def check(self, claim: str, proof: Callable[[], str]) -> None:
        """Run a proof: what it returns is the evidence, and what it raises says why the claim is false."""
        try:
            evidence, outcome = proof(), Outcome.PROVEN
        except Exception as error:  # noqa: BLE001 - the other claims are to be looked at too
            evidence, outcome = f"{type(error).__name__}: {error}", Outcome.FAILED
        self._add(outcome, claim, evidence)

    def not_run(self, claim: str, reason: str) -> None:
        """Say that something could not be looked at."""
        self._add(Outcome.NOT_RUN, claim, reason)

    def beyond(self, claim: str, reason: str) -> None:
        """Say what no machine could show with this script; it does not count."""
        print(f"  {claim}: {reason}", flush=True)

    def status(self) -> int:
        """Print a summary and return the exit status: 1 if anything failed, else 3 if anything could not be run."""
        counts = {outcome: self._outcomes.count(outcome) for outcome in Outcome}
        print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()), flush=True)
        if counts[Outcome.FAILED]:
            return FAILED
        return NOT_RUN if counts[Outcome.NOT_RUN] else PROVEN

    def _add(self, outcome: Outcome, claim: str, evidence: str) -> None:
        self._outcomes.append(outcome)
        print(f"  {outcome:8} {claim}\n           {evidence}", flush=True)
