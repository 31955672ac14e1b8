"""Shows what became of requests."""

from __future__ import annotations

from spanscore.instruments.own import REQUESTS_ACCEPTED, REQUESTS_EMPTY, REQUESTS_REFUSED
from spanscore.intake.requests import RequestCounts
from spanscore.metrics.telemetry import Telemetry


def count_requests(telemetry: Telemetry, requests: RequestCounts) -> None:
    """Have own metrics tell how many requests were accepted and refused."""
    telemetry.observe(REQUESTS_ACCEPTED, lambda: {(): requests.accepted})
    telemetry.observe(REQUESTS_EMPTY, lambda: {(): requests.empty})
    telemetry.observe(
        REQUESTS_REFUSED, lambda: {(reason,): number for reason, number in dict(requests.refused).items()}
    )
