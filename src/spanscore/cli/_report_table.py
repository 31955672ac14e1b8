"""Reports as a table for people: failing runs in full, the others as counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO, assert_never

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Column
from rich.table import Table as Grid
from rich.text import Text

from spanscore.cli._plain_console import PlainConsole
from spanscore.cli._reason_texts import ROWS_SHOWN, headings, headline, more, over_time, share, since_when, turn_of
from spanscore.cli._repeated_cases import COLUMNS as COLUMNS_OF_CASES
from spanscore.cli._summary import Summary
from spanscore.compare.alignment import CONTEXT, Entry
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Evaluation, Failed, Report, Score, Skipped, ToolCall
from spanscore.reports.aligned import aligned_lines, details_of, marked_calls
from spanscore.reports.cases import case_of, conversation_name
from spanscore.reports.evaluation_event import failure_text
from spanscore.reports.reason_table import ReasonRow, ReasonTable
from spanscore.reports.reason_words import agents
from spanscore.reports.tally import COLUMNS

_FAILING_SHOWN: Final = 20
_OTHERS_SHOWN: Final = 20
_CALLS_SHOWN: Final = 12
_FEWEST_FAILING: Final = 2
"""So many failing runs have a table of reasons."""
_SENTENCE_WIDTH: Final = 1_000
_MARK_WIDTH: Final = 200
_SHORT_ID: Final = 8
"""The digits of a trace id where there is no room for all; `--trace` takes them."""
_UNBOUNDED: Final = 10_000
_NAMES: Final = ("evaluator", "type")
_MARKS: Final = {"pass": ("✓", "green"), "fail": ("✗", "red"), "not_evaluated": ("-", "dim")}


class Table:
    """Prints all reports when they are in: why runs failed, then runs, then counts.

    A run that passed is a line, one that failed the whole story. Of the runs, only the first are kept. Cases are named
    by the attribute `key`. With `at_once`, each run is printed when it is added, and why runs failed after all of them.
    """

    def __init__(self, out: TextIO, key: str | None = None, *, at_once: bool = False) -> None:
        self._key: Final = key
        self._at_once: Final = at_once
        self._console = PlainConsole(out)
        self._shown = {"pass": 0, "fail": 0, "not_evaluated": 0}
        self._runs: Final[list[RenderableType]] = []

    def add(self, report: Report) -> None:
        label = report.label
        self._shown[label] += 1
        limit = _FAILING_SHOWN if label == "fail" else _OTHERS_SHOWN
        if self._shown[label] > limit:
            return
        self._runs.append(_headline(report, case_of(report.trajectory, self._key)))
        if label == "fail":
            for evaluation in report.evaluations:
                self._tell(report, evaluation)
            self._add_indented(_calls(report))
        if self._at_once:
            self._print_runs()

    def finish(self, summary: Summary) -> None:
        """Print everything. Without scored runs print nothing; stderr reports that."""
        if not summary.trajectories:
            return
        if self._at_once:
            self._console.print()
        self._tell_reasons(summary)
        self._print_runs()
        others = (("passing", self._shown["pass"]), ("without a verdict", self._shown["not_evaluated"]))
        hidden = [("failing", self._shown["fail"] - _FAILING_SHOWN), *((name, n - _OTHERS_SHOWN) for name, n in others)]
        if more := {name: count for name, count in hidden if count > 0}:
            runs = plural(sum(more.values()), "more run")
            kinds = ", ".join(f"{count:,} {name}" for name, count in more.items())
            self._console.print(f"... and {runs}, {kinds}; --format json has all")
        if not self._at_once:
            self._console.print()
        grids = filter(self._fits, (_counts(summary), _counts(summary, typed=False)))
        self._console.print(next(grids, None) or _counts_below(summary))
        self._tell_cases(summary)
        self._tell_unchecked(summary)
        why = summary.why
        counts = [plural(why.runs, "run"), plural(summary.tool_calls, "tool call")]
        if why.failing:
            counts.append(plural(why.failing, "failing run"))
        if why.conversations:
            counts.append(plural(why.conversations, "conversation"))
        if why.failing_conversations:
            counts.append(plural(why.failing_conversations, "failing conversation"))
        if summary.unchecked_cases:
            counts.append(f"{plural(len(summary.unchecked_cases), 'case')} not checked")
        if summary.problems:
            counts.append(plural(len(summary.problems) + summary.untold_problems, "problem"))
        self._console.print(", ".join(counts))

    def _print_runs(self) -> None:
        for each in self._runs:
            self._console.print(each)
        self._runs.clear()

    def _tell_reasons(self, summary: Summary) -> None:
        """Print why runs failed; of a single one its own lines say it."""
        if summary.failing < _FEWEST_FAILING:
            return
        rows = summary.why.rows()
        self._console.print(Text(headline(summary.why, rows), style="bold"))
        whole = self._reasons(summary.why, rows)
        self._console.print(whole if self._fits(whole) else self._reasons(summary.why, rows, _SHORT_ID))
        self._console.print()

    def _reasons(self, table: ReasonTable, rows: Sequence[ReasonRow], id_width: int | None = None) -> Grid:
        """Return the reasons, the ids of traces with so many digits."""
        written = self._console.written
        grid = Grid(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
        for place, heading in enumerate(headings(table)):
            grid.add_column(heading, justify="right" if place <= 1 else "left", overflow="fold")
        for row in rows[:ROWS_SHOWN]:
            indent = "  " if row.part_of else ""
            reason = Text(written(f"{indent}{printable(row.text, _SENTENCE_WIDTH)}"))
            if changed := since_when(row):
                reason.append(f"\n{indent}  {over_time(row)}  ", style="dim").append(changed, style="bold red")
            if turn := turn_of(row):
                reason.append(f"\n{indent}  {written(turn)}", style="dim")
            for text, runs in row.errors:
                reason.append(f"\n{indent}  {runs}x {written(text)}", style="dim")
            grid.add_row(str(row.runs), share(row), reason, agents(row), row.trace_id[:id_width])
        if rest := more(rows):
            grid.add_row("", "", Text(rest, style="dim"))
        return grid

    def _tell_cases(self, summary: Summary) -> None:
        if summary.repeated is None or not summary.repeated.cases:
            return
        grid = Grid("case", box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
        for column in COLUMNS_OF_CASES:
            grid.add_column(column, justify="right")
        for row in summary.repeated.rows():
            grid.add_row(*row)
        self._console.print()
        self._console.print(grid)
        for line in summary.repeated.remarks():
            self._console.print(Text(line, style="dim"))

    def _fits(self, grid: Grid) -> bool:
        """Return whether a grid is no wider than the output: in one that is, heads and names are cut."""
        unbounded = self._console.options.update(width=_UNBOUNDED)
        return self._console.measure(grid, options=unbounded).maximum <= self._console.width

    def _tell_unchecked(self, summary: Summary) -> None:
        """Print what was not scored and why, remarks, and gates."""
        skipped: dict[str, list[str]] = {}
        for name, count, reasons in summary.skipped():
            told = f"skipped {count}: {reasons}"
            skipped.setdefault(told, []).append(name)
        for told, names in skipped.items():
            self._console.print(Text(printable(f"{', '.join(names)} {told}", _SENTENCE_WIDTH), style="dim"))
        for line in (*summary.unchecked(), *summary.remarks()):
            self._console.print(Text(line, style="yellow"))
        for line in summary.told_of_gates():
            self._console.print(Text(line, style="yellow" if summary.passes else "red"))

    def _tell(self, report: Report, evaluation: Evaluation) -> None:
        match evaluation.outcome:
            case Score(_, True) | Skipped():
                return
            case Score() if evaluation.informational:
                return
            case Score(value) as score:
                told = printable(f"{evaluation.name}  {value:.4g}  {report.told(score)}", _SENTENCE_WIDTH)
                self._add_indented(Text(told))
                if aligned := details_of(evaluation).get("alignment"):
                    deviations = score.details.get("deviations", ()) if report.tool_content else ()
                    grid = _alignment(aligned, deviations, marked_calls(report, evaluation.name))
                    self._runs.append(Padding(grid, (0, 0, 0, 4), expand=False))
            case Failed() as failed:
                told = printable(f"{evaluation.name}  {failure_text(report, failed)}", _SENTENCE_WIDTH)
                self._add_indented(Text(told, style="red"))
            case _:
                assert_never(evaluation.outcome)

    def _add_indented(self, text: Text) -> None:
        for line in text.wrap(self._console, self._console.width - 2):  # a Padding would fill lines up with blanks
            line.rstrip()
            self._runs.append(Text("  ").append_text(line))


def _headline(report: Report, case: str | None) -> Text:
    mark, style = _MARKS[report.label]
    trajectory = report.trajectory
    case = conversation_name(report) or case
    named = filter(None, (trajectory.service, trajectory.agent, case))
    known = [*map(printable, named), plural(len(trajectory.calls), "tool call")]
    if report.conversation is not None and report.conversation.finished is None:
        pass  # its name says so
    elif not report.complete:
        seen = "passes in part" if report.label == "pass" else "incomplete"
        known.append(printable(f"{seen} ({report.incomplete})", _MARK_WIDTH))
    elif trajectory.completeness.resumed and report.conversation is None:
        known.append("continues after a pause")
    text = Text.assemble((mark, style), " ", (trajectory.trace_id.hex(), "bold"), "  ")
    return text.append("  ".join(known))


def _calls(report: Report) -> Text:
    """Return the calls of a run; of many calls only the deviating ones, with some before and after them."""
    calls = report.trajectory.calls
    marked = marked_calls(report)
    near = {other for index in marked for other in range(index - CONTEXT, index + CONTEXT + 1)}
    shown = range(len(calls)) if len(calls) <= _CALLS_SHOWN else sorted(near.intersection(range(len(calls))))
    parts: list[Text] = []
    following = 0
    for index in shown[:_CALLS_SHOWN]:
        parts += _left_out(index - following)
        parts.append(_call(calls[index], content=report.tool_content))
        following = index + 1
    parts += _left_out(len(calls) - following, sum(index >= following for index in marked))
    return Text("called  ").append_text(Text(" → ").join(parts)) if parts else Text("called  nothing")


def _left_out(count: int, deviating: int = 0) -> list[Text]:
    others = f", of which {deviating} deviate" if deviating else ""
    return [Text(f"… {plural(count, 'call')}{others} …", style="dim")] if count else []


def _call(call: ToolCall, *, content: bool) -> Text:
    text = Text(printable(call.name))
    error = call.error if content else call.error_without_content
    return text if error is None else text.append(f" ✗ {printable(error)}", style="red")


def _alignment(entries: Sequence[Entry], deviations: Sequence[Mapping[str, Any]], marked: Mapping[int, str]) -> Grid:
    columns = (Column(name, overflow="fold") for name in ("expected", "actual", ""))
    grid = Grid(*columns, box=None, padding=(0, 3, 0, 0), header_style="dim")
    for line in aligned_lines(entries, deviations, marked):
        style = "dim" if line.is_left_out else "yellow" if line.mark else ""
        grid.add_row(printable(line.expected), printable(line.actual), printable(line.mark, _MARK_WIDTH), style=style)
    return grid


def _counts(summary: Summary, *, typed: bool = True) -> Grid:
    grid = Grid(
        *_NAMES[: 1 + typed], box=None, padding=(0, 3 if typed else 1, 0, 0), pad_edge=False, header_style="dim"
    )
    for column in COLUMNS:
        grid.add_column(column, justify="right")
    for name, tally in summary.tallies.items():
        grid.add_row(*(printable(name), tally.type)[: 1 + typed], *tally.cells, style=tally.style)
    return grid


def _counts_below(summary: Summary) -> Text:
    """Return the counts of each evaluator below its name, for outputs in which no table has room."""
    lines = Text()
    for name, tally in summary.tallies.items():
        counts = ", ".join(f"{column} {count}" for column, count in zip(COLUMNS, tally.cells, strict=True))
        lines.append(f"{printable(name)}\n", style=tally.style).append(f"  {counts}\n")
    lines.right_crop(1)
    return lines
