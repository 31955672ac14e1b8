"""A comparison of two versions on a terminal."""

from __future__ import annotations

from typing import Final, TextIO

from rich.console import Console
from rich.table import Table as Grid

from spanscore.cli._columns import width_of
from spanscore.cli._diff_text import MARKS, Comparison, difference, judgement, level
from spanscore.messages.printable import printable
from spanscore.runs.diff import Verdict

_PLAIN_WIDTH: Final = 120
_SHOWN: Final = 30
_LONG: Final = 400
_STYLES: Final = {Verdict.WORSE: "red", Verdict.BETTER: "green", Verdict.SAME: "", Verdict.INCONCLUSIVE: "yellow"}


def print_table(found: Comparison, out: TextIO) -> None:
    """Print the verdict, each measure, and the changes."""
    console = Console(file=out, highlight=False, markup=False, width=width_of(out) or _PLAIN_WIDTH)
    console.print(printable(found.headline(), _LONG), style=_STYLES[found.verdict] or None)
    for line in found.how():
        console.print(printable(line, _LONG), style="dim")
    grid = Grid(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name in ("", "evaluator", "measure", "base", "new", "difference", "verdict"):
        grid.add_column(name)
    for each in found.measures:
        cells = (printable(each.evaluator), each.measure.value, level(each, "base"), level(each, "new"))
        grid.add_row(
            MARKS[each.verdict], *cells, difference(each), judgement(each), style=_STYLES[each.verdict] or None
        )
    console.print()
    console.print(grid)
    if not found.changes:
        return
    console.print("\nWhat changed")
    for change in found.changes[:_SHOWN]:
        tools = " \N{RIGHTWARDS ARROW} ".join(map(printable, change.tools)) + ("  " if change.tools else "")
        example = f"  such as trace {change.examples[0]}" if change.examples else ""
        what = printable(change.what, _LONG)
        console.print(f"  {tools}{what}: {change.base} \N{RIGHTWARDS ARROW} {change.new}{example}", soft_wrap=True)
    if len(found.changes) > _SHOWN:
        console.print(f"  ... and {len(found.changes) - _SHOWN} more; --format json has all")
