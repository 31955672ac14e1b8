"""Reports as a person reads them: failing trajectories in full, the rest as counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TextIO, assert_never

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from spanscore.cli._summary import Summary
from spanscore.model import Evaluation, Failed, Report, Score, Skipped, ToolCall
from spanscore.printable import printable

_FAILING_SHOWN: Final = 20
_OTHERS_SHOWN: Final = 20
_CALLS_SHOWN: Final = 40
_SENTENCE_WIDTH: Final = 1_000
_PLAIN_WIDTH: Final = 120
_MARKS: Final = {"pass": ("✓", "green"), "fail": ("✗", "red"), "not_evaluated": ("-", "dim")}
_PARTED: Final = {
    "ok": "",
    "missing": "← missing",
    "extra": "← not expected",
    "wrong": "← another tool",
    "arguments": "← other arguments",
}


class Table:
    """Prints each trajectory as it comes: a line for one that passed, the whole story for one that failed."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, highlight=False, width=None if out.isatty() else _PLAIN_WIDTH)
        self._shown = {"pass": 0, "fail": 0, "not_evaluated": 0}

    def add(self, report: Report) -> None:
        """Print one trajectory."""
        label = report.label
        self._shown[label] += 1
        limit = _FAILING_SHOWN if label == "fail" else _OTHERS_SHOWN
        if self._shown[label] > limit:
            return
        self._console.print(_headline(report))
        if label == "fail":
            for evaluation in report.evaluations:
                self._tell(evaluation)
            self._console.print(_indented(_calls(report.trajectory.calls)))

    def finish(self, summary: Summary) -> None:
        """Print what was left out and the counts."""
        hidden = max(0, self._shown["fail"] - _FAILING_SHOWN)
        if hidden:
            self._console.print(f"... and {hidden} more failing; --format json tells of all")
        self._console.print()
        self._console.print(_counts(summary))
        failing = f", {summary.failing} failing" if summary.failing else ""
        self._console.print(f"{summary.trajectories} trajectories, {summary.tool_calls} tool calls{failing}")

    def _tell(self, evaluation: Evaluation) -> None:
        match evaluation.outcome:
            case Score(_, True) | Skipped():
                return
            case Score(value, _, explanation, details):
                told = printable(f"{evaluation.name}  {value:.4g}  {explanation}", _SENTENCE_WIDTH)
                self._console.print(_indented(Text(told)))
                if aligned := details.get("alignment"):
                    self._console.print(Padding(_alignment(aligned), (0, 0, 0, 4), expand=False))
            case Failed(error_type, message):
                told = printable(f"{evaluation.name}  {error_type}: {message}", _SENTENCE_WIDTH)
                self._console.print(_indented(Text(told, style="red")))
            case _:
                assert_never(evaluation.outcome)


def _headline(report: Report) -> Text:
    mark, style = _MARKS[report.label]
    trajectory = report.trajectory
    known = [trajectory.service, trajectory.agent, _plural(len(trajectory.calls), "tool call")]
    if not report.complete:
        known.append(f"incomplete ({report.close_reason})")
    text = Text.assemble((mark, style), " ", (trajectory.trace_id.hex(), "bold"), "  ")
    return text.append("  ".join(printable(word) for word in known if word))


def _calls(calls: tuple[ToolCall, ...]) -> Text:
    text = Text("called  ")
    for number, call in enumerate(calls[:_CALLS_SHOWN]):
        text.append(" → " if number else "").append(printable(call.name))
        if call.error is not None:
            text.append(f" ✗ {printable(call.error)}", style="red")
    if len(calls) > _CALLS_SHOWN:
        text.append(f" → ... {len(calls) - _CALLS_SHOWN} more")
    return text if calls else Text("called  nothing")


def _alignment(entries: Iterable[list[str | None]]) -> Grid:
    grid = Grid("expected", "actual", "", box=None, padding=(0, 3, 0, 0), header_style="dim")
    for expected, actual, status in entries:
        parted = _PARTED.get(status or "", status)
        grid.add_row(
            printable(expected or ""), printable(actual or ""), parted, style="" if status == "ok" else "yellow"
        )
    return grid


def _counts(summary: Summary) -> Grid:
    grid = Grid("evaluator", "type", box=None, padding=(0, 3, 0, 0), header_style="dim")
    for column in ("passed", "failed", "skipped", "errors", "mean"):
        grid.add_column(column, justify="right")
    for name, tally in summary.tallies.items():
        mean = "-" if tally.mean is None else f"{tally.mean:.3f}"
        grid.add_row(
            name,
            tally.type,
            str(tally.passed),
            str(tally.not_passed),
            str(tally.skipped),
            str(tally.failed),
            mean,
            style="red" if tally.not_passed or tally.failed else "",
        )
    return grid


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2), expand=False)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
