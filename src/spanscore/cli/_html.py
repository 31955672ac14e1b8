"""Reports as a page to look at: a verdict, what each evaluator and agent come to, and every run with its calls."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, TextIO

from spanscore.cli._summary import Summary
from spanscore.model import Report
from spanscore.page import render
from spanscore.page.runs import COLUMNS, SCRIPTS, Batch, embedded_data
from spanscore.page.story import cut
from spanscore.reports.cases import CaseNames
from spanscore.wording.plural import plural
from spanscore.wording.printable import printable

_LINE_WIDTH: Final = 1_000
_REASONS_TOLD: Final = 50
_HEADLINES: Final = {"passed": "Passed", "failed": "Failed", "unchecked": "Checked nothing"}


class Page:
    """Writes all reports as one page of HTML that asks nobody for anything. The same reports give the same bytes.

    It is written when all reports are in; what is kept of them is bounded but for a line of each.

    Args:
        key: the attribute that names cases.
        allow_unscored: whether evaluators may have checked nothing.
    """

    def __init__(self, out: TextIO, key: str | None, *, allow_unscored: bool) -> None:
        self._allow_unscored: Final = allow_unscored
        self._out: Final = out
        self._names: Final = CaseNames(key)
        self._batch: Final = Batch()
        self._labels: Final = Counter[str]()

    def add(self, report: Report) -> None:
        self._names.add(report.trajectory)
        self._batch.add(report)
        self._labels[report.label] += 1

    def finish(self, summary: Summary) -> None:
        unchecked = summary.unchecked()
        verdict = summary.verdict(allow_unscored=self._allow_unscored)
        told = [*summary.problems, *unchecked, *summary.told_of_gates(), *summary.remarks()]
        lines = [printable(line, _LINE_WIDTH) for line in told]
        more = [f"... and {len(lines) - _REASONS_TOLD} more"] if len(lines) > _REASONS_TOLD else []
        values: dict[str, Any] = {
            "verdict": verdict,
            "headline": _HEADLINES[verdict],
            "sentence": _sentence(self._labels),
            "reasons": [*lines[:_REASONS_TOLD], *more],
            "columns": COLUMNS,
            "notes": list(self._notes()),
        }
        evaluators = [[cut(name), cut(tally.type)] for name, tally in summary.tallies.items()]
        data = embedded_data([self._batch.embedded(self._names.names())], evaluators=evaluators)
        title = f"{_HEADLINES[verdict]}: {plural(summary.trajectories, 'run')} - spanscore"
        self._out.write(render("runs.html", data, title=title, scripts=SCRIPTS, **values))

    def _notes(self) -> list[str]:
        kept = "--json FILE has them all"
        notes = []
        if count := self._batch.without_content:
            notes.append(
                f"Arguments and results of {plural(count, 'run')} are left out, to keep the page small; {kept}."
            )
        if count := self._batch.without_calls:
            notes.append(f"The calls of {plural(count, 'run')} are left out, to keep the page small; {kept}.")
        return notes


def _sentence(labels: Counter[str]) -> str:
    runs = plural(labels.total(), "run")
    passed, failed, others = (labels[each] for each in ("pass", "fail", "not_evaluated"))
    if not labels:
        return "There was no run to score."
    if not passed and not failed:
        return f"None of {runs} was evaluated."
    told = f"{failed:,} of {runs} failed" if failed else f"{passed:,} of {runs} passed"
    return f"{told}, {others:,} not evaluated." if others else f"{told}."
