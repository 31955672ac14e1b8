"""The texts of a table of reasons for which runs failed: the same on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from spanscore.messages.plural import plural
from spanscore.messages.printable import MAX_LABEL_CHARS, printable
from spanscore.reports.reason_table import ReasonRow, ReasonTable
from spanscore.reports.reason_words import clearest, failed_for

_HEADINGS: Final = ("share", "reason", "agents", "such as")
ROWS_SHOWN: Final = 20
_MINUTE_S: Final = 60
_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def headings(table: ReasonTable) -> tuple[str, ...]:
    """Return the headings of the columns."""
    return ("count" if table.conversations else "runs", *_HEADINGS)


def counted(runs: int, conversations: int, kind: str = "") -> str:
    """Return numbers in words, such as `5 runs` or `5 failing runs and 1 failing conversation`."""
    numbers = [plural(runs, f"{kind}run")] if runs or not conversations else []
    return " and ".join([*numbers, *([plural(conversations, f"{kind}conversation")] if conversations else [])])


def headline(table: ReasonTable, rows: Sequence[ReasonRow]) -> str:
    """Return how many runs failed, for how many reasons, and the clearest change."""
    row = clearest(rows)
    grown = "" if row is None else f". {since_when(row)}: {printable(row.text, MAX_LABEL_CHARS)}"
    return failed_for(table, rows) + grown


def since_when(row: ReasonRow) -> str:
    """Return since when how many times as many runs fail for a reason; empty if no change is found."""
    if row.growth is None:
        return ""
    # The end is rounded up: the first of these runs may have ended in its minute.
    seconds = row.growth.begin_ns // 10**9, -(-row.growth.end_ns // (_MINUTE_S * 10**9)) * _MINUTE_S
    begin, end = (datetime.fromtimestamp(each, UTC) for each in seconds)
    until = f"{end:%H:%M}" if begin.date() == end.date() else f"{end:%Y-%m-%d %H:%M}"
    times = "new" if row.growth.ratio is None else f"×{row.growth.ratio:.1f}"  # noqa: RUF001 - the sign of times
    return f"{times} since {begin:%Y-%m-%d %H:%M} to {until} UTC"


def over_time(row: ReasonRow) -> str:
    """Return a block for each part of the runs, as high as the share that failed for a reason, of the largest one."""
    largest = max((bar.share for bar in row.over_time), default=0)
    return "".join(_BLOCKS[round(bar.share / largest * (len(_BLOCKS) - 1))] for bar in row.over_time) if largest else ""


def turn_of(row: ReasonRow) -> str:
    """Return where the reason is first found in a conversation: `first in turn 2 of conversation c-1`; else nothing."""
    if row.turn is None:
        return ""
    return f"first in turn {row.turn + 1} of conversation {printable(row.conversation_id or '?')}"


def share(row: ReasonRow) -> str:
    """Return the share of all runs, in percent."""
    return f"{(2_000 * row.runs + row.of) // (2 * row.of) / 10:.1f} %"  # halves upwards, as on the page


def more(rows: Sequence[ReasonRow]) -> str:
    """Return how many rows are not shown; empty if all are."""
    return f"... and {len(rows) - ROWS_SHOWN} more" if len(rows) > ROWS_SHOWN else ""
