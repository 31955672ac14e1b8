"""Reports as a page of HTML: a verdict, the totals of each evaluator and agent, and every run with its calls."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, TextIO

from spanscore.cli._reason_texts import counted
from spanscore.cli._summary import Summary
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Report
from spanscore.reports.cases import CaseNames
from spanscore.reports.page.page_data import RunBatch, runs_page
from spanscore.reports.page.story import cut

_LINE_WIDTH: Final = 1_000
_REASONS_TOLD: Final = 50
_HEADLINES: Final = {"passed": "Passed", "failed": "Failed", "unchecked": "Checked nothing"}


class HtmlPage:
    """Writes all reports as one page of HTML that makes no requests. The same reports give the same bytes.

    It is written after the last report. The memory for reports is bounded, except for a line of each.

    Args:
        key: the attribute that names cases.
    """

    def __init__(self, out: TextIO, key: str | None) -> None:
        self._out: Final = out
        self._names: Final = CaseNames(key)
        self._batch: Final = RunBatch()
        self._labels: Final = {"run": Counter[str](), "conversation": Counter[str]()}

    def add(self, report: Report) -> None:
        self._names.add(report)
        self._batch.add(report)
        self._labels["run" if report.conversation is None else "conversation"][report.label] += 1

    def finish(self, summary: Summary) -> None:
        unchecked = summary.unchecked()
        verdict = summary.verdict
        told = [*summary.problems, *unchecked, *summary.told_of_gates(), *summary.remarks()]
        lines = [printable(line, _LINE_WIDTH) for line in told]
        more = [f"... and {len(lines) - _REASONS_TOLD} more"] if len(lines) > _REASONS_TOLD else []
        values: dict[str, Any] = {
            "title": f"{_HEADLINES[verdict]}: {counted(summary.why.runs, summary.why.conversations)} - spanscore",
            "verdict": verdict,
            "headline": _HEADLINES[verdict],
            "sentence": " ".join(_sentence(labels, what) for what, labels in self._labels.items() if labels)
            or "There was no run to score.",
            "reasons": [*lines[:_REASONS_TOLD], *more],
            "notes": self._notes(),
        }
        evaluators = [[cut(name), cut(tally.type)] for name, tally in summary.tallies.items()]
        batch = self._batch.embedded(self._names.names())
        self._out.write(runs_page([batch], {"evaluators": evaluators}, **values))

    def _notes(self) -> list[str]:
        counts = {"Arguments and results": self._batch.without_content, "The calls": self._batch.without_calls}
        why = "are left out, to keep the page small; --json FILE has them all."
        return [f"{what} of {plural(count, 'run')} {why}" for what, count in counts.items() if count]


def _sentence(labels: Counter[str], what: str) -> str:
    all_of_them = plural(labels.total(), what)
    passed, failed, others = (labels[each] for each in ("pass", "fail", "not_evaluated"))
    if not passed and not failed:
        return f"None of {all_of_them} was evaluated."
    told = f"{failed:,} of {all_of_them} failed" if failed else f"{passed:,} of {all_of_them} passed"
    return f"{told}, {others:,} not evaluated." if others else f"{told}."
