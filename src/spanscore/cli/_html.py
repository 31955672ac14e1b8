"""Reports as a page of HTML: a verdict, the totals of each evaluator and agent, and every run with its calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TextIO

from spanscore.cli._reason_texts import counted
from spanscore.cli._summary import Summary
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Report
from spanscore.reports.cases import CaseNames
from spanscore.reports.page.page_data import RunBatch, reasons_data, runs_page
from spanscore.reports.page.story import cut
from spanscore.reports.reason_table import ReasonRow
from spanscore.reports.reason_words import failed_for

_LINE_WIDTH: Final = 1_000
_REASONS_TOLD: Final = 50
_WORDS: Final = {"passed": "Passed", "failed": "Failed", "unchecked": "Checked nothing"}


class HtmlPage:
    """Writes all reports as one page of HTML that makes no requests. The same reports give the same bytes.

    It is written after the last report. The memory for reports is bounded, except for a line of each. Cases are named
    by the attribute `key`.
    """

    def __init__(self, out: TextIO, key: str | None, trace_url: str | None = None) -> None:
        self._out: Final = out
        self._names: Final = CaseNames(key)
        self._batch: Final = RunBatch()
        self._passed: Final[Counter[str]] = Counter()
        self._trace_url: Final = trace_url

    def add(self, report: Report) -> None:
        self._names.add(report)
        self._batch.add(report)
        if report.label == "pass":
            self._passed["run" if report.conversation is None else "conversation"] += 1

    def finish(self, summary: Summary) -> None:
        unchecked = summary.unchecked()
        verdict = summary.verdict
        told = [*summary.problems, *unchecked, *summary.told_of_gates(), *summary.remarks()]
        lines = [printable(line, _LINE_WIDTH) for line in told]
        more = [f"... and {len(lines) - _REASONS_TOLD} more"] if len(lines) > _REASONS_TOLD else []
        rows = summary.why.rows()
        values: dict[str, Any] = {
            "title": f"{_WORDS[verdict]}: {counted(summary.why.runs, summary.why.conversations)} - spanscore",
            "verdict": verdict,
            "headline": self._headline(summary, rows),
            "sentence": "",
            "reasons": [*lines[:_REASONS_TOLD], *more],
            "notes": self._notes(),
        }
        data = {
            "why": reasons_data(rows),
            "evaluators": [[cut(name), cut(tally.type)] for name, tally in summary.tallies.items()],
            "trace_url": self._trace_url,
        }
        self._out.write(runs_page([self._batch.embedded(self._names.names())], data, **values))

    def _headline(self, summary: Summary, rows: Sequence[ReasonRow]) -> str:
        """Return how many runs failed or passed; after the verdict, where that does not follow from it."""
        verdict, table = summary.verdict, summary.why
        if summary.failing:
            told, follows = failed_for(table, rows), verdict == "failed"
        elif self._passed:
            numbers = {"run": table.runs, "conversation": table.conversations}
            passed = (f"{self._passed[what]:,} of {plural(all_of, what)}" for what, all_of in numbers.items() if all_of)
            told, follows = f"{' and '.join(passed)} passed", verdict == "passed"
        else:
            are_none = not table.runs and not table.conversations
            told = (
                "there was no run to score"
                if are_none
                else f"none of {counted(table.runs, table.conversations)} was evaluated"
            )
            follows = False
        return told if follows else f"{_WORDS[verdict]}: {told}"

    def _notes(self) -> list[str]:
        counts = {"Arguments and results": self._batch.without_content, "The calls": self._batch.without_calls}
        why = "are left out, to keep the page small; --json FILE has them all."
        return [f"{what} of {plural(count, 'run')} {why}" for what, count in counts.items() if count]
