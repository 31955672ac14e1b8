"""Stands for an exporter that could not be started: what it should have sent is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spanscore.metrics.series import Values
from spanscore.model import Report

NOT_STARTED: Final = "not_started"


class NotStarted:
    """Takes the place of an exporter inside an application, which must not end for its sake.

    Args:
        name: that of the exporter.
    """

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._reports = 0

    @property
    def failures(self) -> Mapping[Values, float]:
        """Reports that were not sent, by emitter and reason."""
        return {(self._name, NOT_STARTED): self._reports} if self._reports else {}

    def emit(self, report: Report) -> None:  # noqa: ARG002 - it goes nowhere
        """Count a report."""
        self._reports += 1

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits here
        """Do nothing."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Do nothing."""
        return True
