"""The attributes of an evaluation event as the SDK's exporters can encode them."""

from __future__ import annotations

from typing import Any

from spanscore.model import Evaluation, Report
from spanscore.reports.evaluation_event import event_attributes
from spanscore.wording.printable import encodable


def attributes(report: Report, evaluation: Evaluation) -> dict[str, Any]:
    """Return the attributes of the event for one evaluation."""
    return {
        key: encodable(value) if isinstance(value, str) else value
        for key, value in event_attributes(report, evaluation).items()
    }
