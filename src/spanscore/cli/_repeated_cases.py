"""Runs by their case, where `--key`, `--cases` or `--min-pass-rate` asks for it: how often each case passes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from spanscore.compare.names import short
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Report
from spanscore.reports.cases import Cases
from spanscore.runs.repeats import Repeats

MOST_CASES: Final = 100_000
"""The most cases that are counted separately: a key with another value in every run must not fill the memory."""

COLUMNS: Final = ("runs", "pass rate", "95 % interval", "pass^k")
_SHOWN: Final = 20
_LINE_WIDTH: Final = 1_000


class CaseGate(NamedTuple):
    """The gate of `--min-pass-rate` for one case, and the reason if it does not hold; empty if it does."""

    case: str
    bound: float
    why: str


class RepeatedCases:
    """Counts runs by case.

    The lower end of each case's interval must be at least `min_pass_rate`, if that is given.
    """

    def __init__(self, named: Cases, min_pass_rate: float | None = None) -> None:
        self._named: Final = named
        self._bound: Final = min_pass_rate
        self.cases: Final[dict[str, Repeats]] = {}
        """In the order of their first runs."""
        self.unnamed = 0
        """Runs that nothing names the case of."""
        self.beyond = 0
        """Runs of cases beyond the first `MOST_CASES`."""

    def add(self, report: Report) -> None:
        """Count a run in; one that pauses only if it fails already, as the trace in which it continues counts."""
        if report.trajectory.completeness.paused and not report.failing:
            return
        case = self._named.of(report.trajectory)
        if case is None:
            self.unnamed += 1
        elif case in self.cases or len(self.cases) < MOST_CASES:
            self.cases.setdefault(case, Repeats()).add(report)
        else:
            self.beyond += 1

    @property
    def k(self) -> int:
        """The k of pass^k: the least number of runs with a verdict that a case with one has, so that all compare."""
        return min((each.decided for each in self.cases.values() if each.decided), default=0)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield each of the first cases with the cells of its row, for people."""
        k = self.k
        for case, repeats in list(self.cases.items())[:_SHOWN]:
            runs = f"{repeats.runs} ({repeats.none} without a verdict)" if repeats.none else str(repeats.runs)
            rate, interval, in_a_row = repeats.pass_rate, repeats.interval, repeats.pass_hat(k)
            if rate is None or interval is None or in_a_row is None:
                yield printable(case), runs, "-", "-", "-"
            else:
                yield printable(case), runs, f"{rate:.3f}", f"{interval[0]:.3f} to {interval[1]:.3f}", f"{in_a_row:.3f}"

    def remarks(self) -> list[str]:
        """Return remarks on the rows: the meaning of k, and the number of omitted cases."""
        lines = []
        if self.k:
            lines.append(
                f"pass^k: the chance that k = {self.k} runs of a case all pass, estimated as C(passed, k) / C(runs, k)"
            )
        if (more := len(self.cases) - _SHOWN) > 0:
            lines.append(f"... and {more} more cases; --cases FILE has all")
        if self.unnamed:
            lines.append(f"{plural(self.unnamed, 'run')} of no case")
        return lines

    def lines(self) -> Iterator[str]:
        """Yield each case as a line of JSON, with a line end. Unknown values are null."""
        k = self.k
        for case, repeats in self.cases.items():
            told = {
                "case": case,
                "runs": repeats.runs,
                "passed": repeats.passed,
                "failed": repeats.failed,
                "none": repeats.none,
                "pass_rate": repeats.pass_rate,
                "pass_rate_interval": repeats.interval,
                "k": k or None,
                "pass_hat_k": repeats.pass_hat(k),
            }
            yield json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n"

    def gates(self) -> Iterator[CaseGate]:
        """Yield the gate of each case, and one for the runs that are of none; nothing without `min_pass_rate`."""
        if self._bound is None:
            return
        for case, repeats in self.cases.items():
            yield CaseGate(case, self._bound, repeats.why_below(self._bound))
        keys = " or ".join(self._named.keys)
        if self.unnamed:
            yield CaseGate("(no case)", self._bound, f"{plural(self.unnamed, 'run')} without {keys}: in no case's rate")
        if self.beyond:
            yield CaseGate(
                "(more cases)", self._bound, f"{plural(self.beyond, 'run')} of more than {MOST_CASES:,} cases"
            )

    def told_of_gates(self) -> list[str]:
        """Return a line for each gate that does not hold; only the first of many."""
        lines = [f"case {short(gate.case)}: {gate.why}" for gate in self.gates() if gate.why]
        more = [f"... and {len(lines) - _SHOWN} more cases below --min-pass-rate"] if len(lines) > _SHOWN else []
        return [printable(line, _LINE_WIDTH) for line in (*lines[:_SHOWN], *more)]
