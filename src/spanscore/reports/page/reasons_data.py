"""The table of reasons for which runs failed, as the data of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from spanscore.reports.reason_table import ReasonRow
from spanscore.reports.reason_words import agents, clearest

MOST_ROWS: Final = 200
"""Further reasons are one row."""


def reasons_data(rows: Sequence[ReasonRow]) -> dict[str, Any]:
    """Return `{"rows": [row, ...], "more": reasons without a row, "clearest": row or null}`.

    A row is `[reason, runs, agents, whether it is part of another one, [[text of an error, runs], ...], change or null,
    bars, number of all runs or conversations]`, a change `[ratio or null, begin, end]`, a bar
    `[begin, end, runs, failed runs]`; times are in ms since the epoch.
    """
    grown = clearest(rows)
    return {
        "rows": [_row(row) for row in rows[:MOST_ROWS]],
        "more": max(0, len(rows) - MOST_ROWS),
        "clearest": None if grown is None else _row(grown),
    }


def _row(row: ReasonRow) -> list[Any]:
    growth = row.growth
    return [
        row.text,
        row.runs,
        agents(row),
        int(row.part_of is not None),
        row.errors,
        None if growth is None else [growth.ratio, growth.begin_ns // 1_000_000, growth.end_ns // 1_000_000],
        [[each.begin_ns // 1_000_000, each.end_ns // 1_000_000, each.runs, each.failed] for each in row.over_time],
        row.of,
    ]
