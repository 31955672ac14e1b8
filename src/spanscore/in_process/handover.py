"""Hands scores to the application's providers, counts the ones that do not arrive, and logs that once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Final, Literal

from spanscore.contracts.immediate import Immediate
from spanscore.metrics.series import Values
from spanscore.model import Report
from spanscore.sdk import providers as host_providers

SHUT_DOWN: Final = "shut_down"
NOT_STARTED: Final = "not_started"

_LOGGER: Final = logging.getLogger(__name__)


class NotStarted(Immediate):
    """Takes the place of an exporter that could not be started: the application must not end for its sake."""

    def __init__(self, name: str) -> None:
        self.failures: Final[Counter[Values]] = Counter()
        """Reports that were not sent, by emitter and reason."""
        self._key: Final = (name, NOT_STARTED)

    def emit(self, report: Report) -> None:  # noqa: ARG002 - it goes nowhere
        """Count a report."""
        self.failures[self._key] += 1


class Handover(Immediate):
    """Watches the hand-over of scores to the application's providers.

    If no provider takes scores, the first score logs it: providers may be set after spanscore was. If the application
    has shut its providers down before the last traces were scored, the end logs how many scores were lost.
    `goes_elsewhere` returns whether scores also have another destination than these providers.
    """

    def __init__(self, goes_elsewhere: Callable[[], bool]) -> None:
        self.failures: Final[Counter[Values]] = Counter()
        """Evaluations that could not be handed over, by emitter and reason."""
        self._goes_elsewhere: Final = goes_elsewhere
        self._is_judged = False

    def lost(self, name: Literal["metrics", "logs"], evaluations: int) -> None:
        """Count evaluations that a provider could not be given."""
        if evaluations:
            self.failures[name, SHUT_DOWN] += evaluations

    def emit(self, report: Report) -> None:
        """Log a warning with the first score if scores go nowhere."""
        if self._is_judged or not report.evaluations:
            return
        self._is_judged = True
        if host_providers.takes_metrics() or host_providers.takes_logs() or self._goes_elsewhere():
            return
        _LOGGER.warning(
            "spanscore: scores go nowhere: the application has no meter provider or logger provider that exports; "
            "set one, or add `exporters: {console: {}}`, otlp or prometheus to the configuration"
        )

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Log how many evaluations were lost."""
        if self.failures:
            _LOGGER.warning(
                "spanscore: the application shut its providers down before its last traces were scored: %d evaluations "
                "are in no metric, %d in no log event; shut its tracer provider down first, or have it flush before",
                self.failures["metrics", SHUT_DOWN],
                self.failures["logs", SHUT_DOWN],
            )
        return True
