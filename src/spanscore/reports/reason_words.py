"""How many runs failed, for how many reasons, and of which agents: in words, the same in every output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.reports.reason_table import ReasonRow, ReasonTable

_AGENTS_SHOWN: Final = 2


def failed_for(table: ReasonTable, rows: Sequence[ReasonRow]) -> str:
    """Return how many runs and conversations failed, for how many reasons, without those that are part of another."""
    failed = [
        f"{failing:,} of {plural(all_of, what)} failed"
        for what, failing, all_of in (
            ("run", table.failing, table.runs),
            ("conversation", table.failing_conversations, table.conversations),
        )
        if all_of
    ]
    return f"{', '.join(failed)}, for {plural(sum(row.part_of is None for row in rows), 'reason')}"


def clearest(rows: Sequence[ReasonRow]) -> ReasonRow | None:
    """Return the reason that grew most clearly; None if none grew."""
    grown = [row for row in rows if row.growth is not None]
    return max(grown, key=lambda row: row.growth.evidence if row.growth else 0, default=None)


def agents(row: ReasonRow) -> str:
    """Return the names of the agents with the most of these runs."""
    more = len(row.agents) - _AGENTS_SHOWN
    return ", ".join(map(printable, row.agents[:_AGENTS_SHOWN])) + (f" and {more} more" if more > 0 else "")
