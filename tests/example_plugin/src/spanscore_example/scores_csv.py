"""Scores in a CSV file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Self

from annotated_types import Ge

from spanscore.contracts import Host
from spanscore.contracts.settings import Example, FilePath
from spanscore.model import Report, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresCsvSettings:
    """Where rows go, and how they look."""

    path: Annotated[FilePath, Example("scores.csv")]
    """The file."""
    digits: Annotated[int, Ge(0)] = 2
    """How many decimals of a score are written."""


class ScoresCsv:
    """A CSV file with a row for each score: the trace, the evaluator and the value."""

    Settings: ClassVar = ScoresCsvSettings

    def __init__(self, path: Path, digits: int) -> None:
        self._file = path.open("a", newline="", encoding="utf-8")
        self._rows = csv.writer(self._file)
        self._digits = digits

    @classmethod
    def configured(cls, settings: ScoresCsvSettings, host: Host) -> Self:
        """Open the file. An OSError stops `spanscore serve`, and is logged inside an application."""
        del host
        return cls(settings.path, settings.digits)

    def emit(self, report: Report) -> None:
        """Write a row for each score."""
        for evaluation in report.evaluations:
            if isinstance(evaluation.outcome, Score):
                value = f"{evaluation.outcome.value:.{self._digits}f}"
                self._rows.writerow([report.trajectory.trace_id.hex(), evaluation.name, value])
        self._file.flush()  # when this returns, nobody else has the report any more

    def flush(self, timeout_s: float) -> bool:
        """Do nothing: the rows are in the file."""
        del timeout_s
        return True

    def close(self, timeout_s: float) -> bool:
        """Close the file."""
        del timeout_s
        self._file.close()
        return True
