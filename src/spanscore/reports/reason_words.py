"""How many runs failed, for how many reasons, and of which agents: in words, the same in every output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanscore.messages.printable import printable
from spanscore.reports.reason_table import ReasonRow, ReasonTable

_AGENTS_SHOWN: Final = 2


def failed_for(table: ReasonTable, rows: Sequence[ReasonRow]) -> str:
    """Return how many runs failed, and for how many reasons; reasons that are part of another one do not count."""
    runs, reasons = table.runs, sum(row.part_of is None for row in rows)
    of = f"{runs:,} run" if runs == 1 else f"{runs:,} runs"
    return f"{table.failing:,} of {of} failed, for {reasons:,} reason{'' if reasons == 1 else 's'}"


def clearest(rows: Sequence[ReasonRow]) -> ReasonRow | None:
    """Return the reason that grew most clearly; None if none grew."""
    grown = [row for row in rows if row.growth is not None]
    return max(grown, key=lambda row: row.growth.evidence if row.growth else 0, default=None)


def agents(row: ReasonRow) -> str:
    """Return the names of the agents with the most of these runs."""
    more = len(row.agents) - _AGENTS_SHOWN
    return ", ".join(map(printable, row.agents[:_AGENTS_SHOWN])) + (f" and {more} more" if more > 0 else "")
