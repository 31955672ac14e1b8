"""The table of what skipped evaluators lacked, and how to record it. It holds neither arguments nor results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Lack, Report, Skipped, Trajectory
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.trajectories.lacking import CONTENT, Instrumentations, shortfall

_ROWS_SHOWN: Final = 100
_NAME_WIDTH: Final = 100
_TEXT_WIDTH: Final = 200
_ID: Final = "gen_ai.conversation.id"
_MASKED: Final[frozenset[Lack]] = frozenset({"arguments", "results"})
"""Content that a masked recording may lack, although the agent recorded it."""
_VARYING: Final = re.compile(r"(?<!attribute )'[^']*'(?:, '[^']*')*|\d+")
"""Numbers, and quoted texts but names of attributes: left out of reasons, so that equal ones fold."""
_HEADER: Final = ("agent", "instrumentation", "evaluator", "skipped", "missing or reason", "to get it")


class _Asking(NamedTuple):
    agent: str
    instrumentation: str
    evaluator: str


class _Key(NamedTuple):
    asked: _Asking
    lacks: tuple[Lack, ...]
    text: str
    """The reason, if `lacks` does not give it."""
    remedies: tuple[str, ...]


@dataclass(slots=True)
class _SkippedRuns:
    skipped: int = 0
    missing: Counter[Lack] = field(default_factory=Counter)
    total: Counter[Lack] = field(default_factory=Counter)
    unit: dict[Lack, str] = field(default_factory=dict)


class Lacked:
    """Counts the evaluations that were skipped.

    A conversation is named by the attributes `keys`; `dialects` has the names of dialects, by the name of their class.
    """

    def __init__(
        self,
        entries: Sequence[EvaluatorEntry],
        over_conversations: Sequence[EvaluatorEntry],
        keys: Sequence[str],
        dialects: Mapping[str, str],
    ) -> None:
        self._entries: Final = entries
        self._over_conversations: Final = over_conversations
        self._keys: Final = keys
        self._dialects: Final = dialects
        self._asked: Final[Counter[_Asking]] = Counter()
        self._rows: Final[dict[_Key, _SkippedRuns]] = {}

    def add(self, report: Report, instrumentations: Instrumentations) -> None:
        """Count the report of a run."""
        run = report.trajectory
        names = ", ".join(self._dialects.get(name, name) for name in instrumentations.names) or "-"
        told = {evaluation.name: evaluation.outcome for evaluation in report.evaluations}
        for entry in (*self._entries, *self._over_conversations):
            skipped = told[entry.name] if entry.name in told else self._unasked(entry, run)
            if skipped is None:
                continue
            asked = _Asking(run.agent or "-", names, entry.name)
            self._asked[asked] += 1
            if isinstance(skipped, Skipped):
                self._add(asked, skipped, run, instrumentations)

    def _unasked(self, entry: EvaluatorEntry, run: Trajectory) -> Skipped | None:
        """Return why an evaluator was not asked, if an attribute is missing: it would have chosen runs by that."""
        if entry.over == "conversation":
            known = any((run.conversation_id if key == _ID else None) or run.attributes.get(key) for key in self._keys)
            return None if known else Skipped("the run names no conversation", ("conversation id",))
        absent = sorted(key for key in entry.match if key not in run.attributes)
        return Skipped(f"{', '.join(absent)} of the root span, for `match`") if absent else None

    def _add(self, asked: _Asking, skipped: Skipped, run: Trajectory, instrumentations: Instrumentations) -> None:
        elsewhere = run.completeness.content_elsewhere and not CONTENT.isdisjoint(skipped.lacks)
        text = "kept outside the telemetry" if elsewhere else "" if skipped.lacks else _VARYING.sub("…", skipped.reason)
        remedies = dict.fromkeys(
            remedy
            for lack in skipped.lacks
            for remedy in (
                [" or ".join(self._keys)] if lack == "conversation id" else instrumentations.remedies(lack, run)
            )
        )
        if elsewhere:
            remedies = {"content in the telemetry itself": None}
        elif run.completeness.masked and not _MASKED.isdisjoint(skipped.lacks):
            remedies = {"masked: record without --mask": None}
        key = _Key(asked, skipped.lacks, text, tuple(remedies))
        row = self._rows.setdefault(key, _SkippedRuns())
        row.skipped += 1
        for lack in skipped.lacks:
            missing, total, row.unit[lack] = shortfall(run, lack)
            row.missing[lack] += missing
            row.total[lack] += total

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table; one line if nothing was skipped."""
        if not self._rows:
            yield "no evaluator was skipped"
            return
        ordered = sorted(self._rows.items(), key=lambda each: (each[0].asked, -each[1].skipped))
        table = [_HEADER, *(self._cells(key, row) for key, row in ordered[:_ROWS_SHOWN])]
        widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
        yield "what evaluators lacked"
        for cells in table:
            yield "  ".join(map(set_cell_size, cells, widths)).rstrip()
        if len(ordered) > _ROWS_SHOWN:
            yield f"... and {len(ordered) - _ROWS_SHOWN} more rows; --trace, --agent and --case pick some runs"

    def _cells(self, key: _Key, row: _SkippedRuns) -> tuple[str, ...]:
        counted = [
            f"{lack} of {row.missing[lack]} of {plural(row.total[lack], unit)}" if unit else lack
            for lack, unit in row.unit.items()
        ]
        return (
            *(printable(name, _NAME_WIDTH) for name in key.asked),
            f"{row.skipped} of {self._asked[key.asked]}",
            printable(", ".join(filter(None, [*counted, key.text])), _TEXT_WIDTH),
            printable("; ".join(key.remedies), _TEXT_WIDTH) or "-",
        )
