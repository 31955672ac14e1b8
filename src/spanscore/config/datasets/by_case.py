"""Finds the row of a dataset with the expectation of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from spanscore.contracts import Evaluator
from spanscore.messages.nearest import ManyNames
from spanscore.model import Skipped, Trajectory

_LONGEST_SHOWN: Final = 100
_KEPT: Final = 1_000


class Expected(NamedTuple):
    """The evaluator that a row was made into."""

    evaluator: Evaluator | Skipped
    line: int


class ByCase:
    """The rows of a dataset, by their case.

    Messages name the file.
    """

    def __init__(self, rows: Mapping[str, Expected], key: str, file: str, path: Path) -> None:
        self._rows: Final = rows
        self._file: Final = file
        self._used: Final[set[str]] = set()
        self._missed: Final[dict[str, None]] = {}
        self._absence: Final = lru_cache(maxsize=_KEPT)(self._no_row)
        self._names: Final = ManyNames(rows)
        self.path: Final = path
        self.key: Final = key
        """The attribute that names the case of a run."""

    def __call__(self, trajectory: Trajectory) -> Evaluator | Skipped:
        """Return the evaluator with the expectation of a run, or the reason if it is unknown."""
        value = trajectory.attributes.get(self.key)
        if value is None:
            return absent(self.key)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            return Skipped(f"the attribute {self.key!r} is neither text nor an integer")
        name = str(value)
        row = self._rows.get(name)
        if row is None:
            start = name[: _LONGEST_SHOWN + 1]  # all that is shown, and a sign that there is more
            if len(self._missed) < _KEPT:
                self._missed[start] = None
            return self._absence(start)
        self._used.add(name)
        return row.evaluator

    def missed(self) -> Iterator[str]:
        """Yield a message for each run whose case has no row, for the first thousand: it was not checked."""
        yield from (self._absence(name).reason for name in self._missed)

    def evaluators(self) -> Iterator[Evaluator | Skipped]:
        """Yield the evaluators of the rows that runs have used."""
        yield from (row.evaluator for name, row in self._rows.items() if name in self._used)

    def unused(self) -> Iterator[tuple[str, str]]:
        """Yield each case without a run, and a message: nothing was checked against its row."""
        missed = ManyNames(self._missed)
        for name, row in self._rows.items():
            if name not in self._used:
                told = f"{self._file}:{row.line}: no run has {self.key} = {name[:_LONGEST_SHOWN]!r}"
                yield name, told + missed.nearest(name)

    def _no_row(self, name: str) -> Skipped:
        told = f"{self._file} has no row for {self.key} = {name[:_LONGEST_SHOWN]!r}"
        return Skipped(told + self._names.nearest(name))


def absent(attribute: str) -> Skipped:
    """Return the reason for a run without the attribute that identifies its case."""
    return Skipped(f"no attribute {attribute!r} on the root span")
