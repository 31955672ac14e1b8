"""Scores on their way to the application's own providers: told once where they do not arrive."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Literal

from spanscore.metrics.series import Values
from spanscore.model import Report
from spanscore.sdk import providers as host_providers

SHUT_DOWN: Final = "shut_down"

_LOGGER: Final = logging.getLogger(__name__)


class Handover:
    """Watches over what the application's providers are given.

    Where nobody takes scores at all, the first one says so: providers may be set after spanscore was. Where the
    application has shut its providers down before the last traces were scored, the end says how many it cost.

    Args:
        goes_elsewhere: whether scores also go where they are seen without these providers.
    """

    def __init__(self, goes_elsewhere: Callable[[], bool]) -> None:
        self._goes_elsewhere: Final = goes_elsewhere
        self._is_judged = False
        self._lost: Final[Counter[str]] = Counter()

    @property
    def failures(self) -> Mapping[Values, float]:
        """Evaluations that could not be handed over, by emitter and reason."""
        return {(name, SHUT_DOWN): number for name, number in dict(self._lost).items() if number}

    def lost(self, name: Literal["metrics", "logs"], evaluations: int) -> None:
        """Count evaluations that a provider could not be given."""
        self._lost[name] += evaluations

    def emit(self, report: Report) -> None:
        """Say where scores go nowhere, with the first of them."""
        if self._is_judged or not report.evaluations:
            return
        self._is_judged = True
        if host_providers.takes_metrics() or host_providers.takes_logs() or self._goes_elsewhere():
            return
        _LOGGER.warning(
            "spanscore: scores go nowhere: the application has no meter provider or logger provider that exports; "
            "set one, or add `exporters: {console: {}}`, otlp or prometheus to the configuration"
        )

    def flush(self, timeout_s: float) -> bool:  # noqa: ARG002 - nothing waits here
        """Do nothing."""
        return True

    def close(self, timeout_s: float) -> bool:  # noqa: ARG002 - as above
        """Say how many evaluations were lost."""
        in_metrics, in_logs = self._lost["metrics"], self._lost["logs"]
        if in_metrics or in_logs:
            _LOGGER.warning(
                "spanscore: the application shut its providers down before its last traces were scored: %d evaluations "
                "are in no metric, %d in no log event; shut its tracer provider down first, or have it flush before",
                in_metrics,
                in_logs,
            )
        return True
