"""What was proven, what failed, and what could not be run: a table, and the exit status that goes with it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from programs import Programs

PROVEN: Final = 0
FAILED: Final = 1
NOT_RUN: Final = 3


class Outcome(StrEnum):
    """How a claim came out."""

    PROVEN = "proven"
    FAILED = "FAILED"
    NOT_RUN = "not run"
    GIVEN_UP = "given up"


class Results:
    """Collects claims and prints each as it is decided."""

    def __init__(self) -> None:
        self._outcomes: list[tuple[Outcome, str, str]] = []

    def section(self, title: str) -> None:
        """Begin a part of the table."""
        print(f"\n{title}", flush=True)

    def check(self, claim: str, proof: Callable[[], str]) -> bool:
        """Run a proof: what it returns is the evidence, and what it raises says why the claim is false."""
        try:
            evidence, outcome = proof(), Outcome.PROVEN
        except AssertionError as error:
            evidence, outcome = str(error), Outcome.FAILED
        except Exception as error:  # noqa: BLE001 - the other claims are to be looked at too
            evidence, outcome = f"{type(error).__name__}: {error}", Outcome.FAILED
        self._add(outcome, claim, evidence)
        return outcome is Outcome.PROVEN

    def lacks(self, programs: Programs, claim: str, *names: str) -> bool:
        """Say whether a claim cannot be looked at for want of a program, and if so, note it."""
        given_up = programs.given_up(*names)
        if given_up:
            self._add(Outcome.GIVEN_UP, claim, f"--without {','.join(given_up)}")
            return True
        missing = programs.missing(*names)
        if missing is not None:
            self.not_run(claim, missing)
        return missing is not None

    def not_run(self, claim: str, reason: str) -> None:
        """Say that something could not be looked at."""
        self._add(Outcome.NOT_RUN, claim, reason)

    def beyond(self, claim: str, reason: str) -> None:
        """Say what no machine could show with this script; it does not count."""
        print(f"  {claim}: {reason}", flush=True)

    @property
    def failed(self) -> bool:
        """Whether any claim was false."""
        return any(outcome is Outcome.FAILED for outcome, _, _ in self._outcomes)

    def status(self) -> int:
        """Print a summary and return the exit status: 1 if anything failed, else 3 if anything is not proven."""
        counts = {outcome: sum(each == outcome for each, _, _ in self._outcomes) for outcome in Outcome}
        print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()), flush=True)
        self._list(Outcome.FAILED, "Failed:")
        self._list(Outcome.NOT_RUN, "Missing, so this is no proof of:")
        self._list(Outcome.GIVEN_UP, "Given up, as asked:")
        if counts[Outcome.FAILED]:
            return FAILED
        if not counts[Outcome.PROVEN]:
            print("\nNothing was proven.", flush=True)
            return NOT_RUN
        return NOT_RUN if counts[Outcome.NOT_RUN] else PROVEN

    def _list(self, outcome: Outcome, title: str) -> None:
        reasons: dict[str, list[str]] = {}
        for each, claim, reason in self._outcomes:
            if each == outcome:
                reasons.setdefault(reason, []).append(claim)
        if reasons:
            print(f"\n{title}")
        for reason, claims in reasons.items():
            print("".join(f"  {claim}\n" for claim in claims) + f"      {reason}", flush=True)

    def _add(self, outcome: Outcome, claim: str, evidence: str) -> None:
        self._outcomes.append((outcome, claim, evidence))
        print(f"  {outcome:8} {claim}\n           {evidence}", flush=True)
