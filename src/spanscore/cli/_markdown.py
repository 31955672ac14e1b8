"""Reports as one comment for a pull request: the verdict first, then each evaluator, and the failing runs folded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, TextIO

from spanscore.cli._reason_texts import ROWS_SHOWN, counted, headings, headline, more, share, since_when, turn_of
from spanscore.cli._summary import Summary
from spanscore.messages.printable import printable
from spanscore.model import Failed, Outcome, Report, Score
from spanscore.reports.cases import CaseNames
from spanscore.reports.evaluation_event import failure_text
from spanscore.reports.reason_table import ReasonTable
from spanscore.reports.reason_words import agents
from spanscore.reports.tally import COLUMNS

MARKER: Final = "<!-- spanscore score -->"
"""The first line: by it a job finds its comment again."""
SIGNS: Final = {
    "passed": "\N{LARGE GREEN CIRCLE}",
    "failed": "\N{LARGE RED CIRCLE}",
    "unchecked": "\N{LARGE YELLOW CIRCLE}",
}
_WORDS: Final = {"passed": "passed", "failed": "failed", "unchecked": "checked nothing"}
_SHOWN: Final = 20
_LONGEST_CODE: Final = 200
_LONGEST_TEXT: Final = 500


class Markdown:
    """Writes all reports as Markdown when they are in. The same reports give the same bytes.

    Cases are named by the attribute `key`.
    """

    def __init__(self, out: TextIO, key: str | None) -> None:
        self._out: Final = out
        self._names: Final = CaseNames(key)
        self._failing: Final[list[tuple[int, str, list[str]]]] = []
        self._labels: Final = Counter[str]()

    def add(self, report: Report) -> None:
        self._names.add(report)
        if report.label == "fail" and self._labels["fail"] < _SHOWN:
            told = [_told(report, each.name, each.outcome) for each in report.evaluations if each.failing]
            self._failing.append((self._labels.total(), report.trajectory.trace_id.hex(), told))
        self._labels[report.label] += 1

    def finish(self, summary: Summary) -> None:
        verdict = summary.verdict
        why = summary.why
        runs = f"{counted(why.runs, why.conversations)}, {self._labels['fail']} failed"
        by_gates = " by the gates" if verdict == "passed" and self._labels["fail"] else ""
        lines = [MARKER, f"### {SIGNS[verdict]} spanscore: {_WORDS[verdict]}{by_gates}: {runs}", ""]
        reasons = [*summary.problems, *summary.unchecked(), *summary.told_of_gates(), *summary.remarks()]
        if reasons:
            lines += [*(f"- {as_text(reason)}" for reason in reasons[:_SHOWN]), ""]
        lines += [f"| evaluator | type | {' | '.join(COLUMNS)} |", f"|---|---|{'---|' * len(COLUMNS)}"]
        for name, tally in summary.tallies.items():
            lines.append(f"| {code(name)} | {code(tally.type)} | {' | '.join(tally.cells)} |")
        lines += ["", *_reasons(summary.why)]
        if self._failing:
            lines += [f"<details><summary>{counted(why.failing, why.failing_conversations, 'failing ')}</summary>", ""]
            names = self._names.names()
            for number, trace_id, told in self._failing:
                lines += [f"- {code(names[number])} {code(trace_id)}", *(f"  - {line}" for line in told)]
            if (rest := self._labels["fail"] - len(self._failing)) > 0:
                lines.append(f"- ... and {rest} more")
            lines += ["", "</details>"]
        self._out.write("\n".join(lines) + "\n")


def _reasons(table: ReasonTable) -> Iterator[str]:
    """Yield the lines of the table of reasons; none if no run failed."""
    if not (rows := table.rows()):
        return
    yield from (f"**{headline(table, rows)}**", "", f"| {' | '.join(headings(table))} |", "|--:|--:|---|---|---|")
    for row in rows[:ROWS_SHOWN]:
        errors = "".join(f"<br>{runs}x {as_text(text)}" for text, runs in row.errors)
        changed = f"<br>**{since_when(row)}**" if row.growth else ""
        turn = f"<br>{as_text(turn_of(row))}" if row.turn is not None else ""
        reason = f"{'&emsp;' if row.part_of else ''}{as_text(row.text)}{changed}{turn}{errors}"
        yield f"| {row.runs} | {share(row)} | {reason} | {as_text(agents(row))} | {code(row.trace_id)} |"
    if rest := more(rows):
        yield f"| | | {rest} | | |"
    yield ""


def _told(report: Report, name: str, outcome: Outcome) -> str:
    if isinstance(outcome, Score):
        return f"{code(name)} {outcome.value:.4g}: {as_text(report.told(outcome))}"
    return f"{code(name)}: {as_text(failure_text(report, outcome) if isinstance(outcome, Failed) else outcome.reason)}"


def code(text: str) -> str:
    """Return a text as code, in which nothing is read as Markdown, HTML or a person's name."""
    shown = printable(text, _LONGEST_CODE).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def as_text(text: str) -> str:
    """Return a text as one line in which nothing is read as Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#+!|@~&])", r"\\\1", printable(text, _LONGEST_TEXT))
