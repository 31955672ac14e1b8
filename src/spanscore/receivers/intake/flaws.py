"""Flaws of requests that are accepted all the same: counted, logged if they are new, and worded for the sender."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Final

from spanscore.messages.plural import plural
from spanscore.otlp.findings import Caveat, Decoded, Refusal, told_of_no_run
from spanscore.receivers.intake.consumers import OtherSignal

_MESSAGE_CHARS: Final = 2_000
_EXAMPLE_CHARS: Final = 300
_ITEM: Final[Mapping[OtherSignal | None, str]] = {None: "span", "logs": "log record", "metrics": "data point"}

_log = logging.getLogger(__name__)


class Flaws:
    """Counts refused spans, log records and data points, by reason."""

    def __init__(self, refused: Counter[str], refused_points: Counter[str]) -> None:
        self._refused: Final = refused
        self._refused_points: Final = refused_points
        self._logged: Final[set[tuple[OtherSignal | None, Refusal | Caveat]]] = set()

    def note(self, decoded: Decoded, signal: OtherSignal | None) -> str:
        """Count the problems of a request and return a message; log it, as a warning if one is new to its signal."""
        counts = self._refused_points if signal == "metrics" else self._refused
        for refused in decoded.refused:
            if refused.spans:
                counts[refused.reason.value] += refused.spans
        message = _told(decoded, signal)
        found: list[Refusal | Caveat] = [*(refused.reason for refused in decoded.refused), *decoded.caveats]
        kinds = {(signal, kind) for kind in found}
        _log.log(logging.DEBUG if kinds <= self._logged else logging.WARNING, "%s", message)
        self._logged.update(kinds)
        return message


def _told(decoded: Decoded, signal: OtherSignal | None) -> str:
    item = _ITEM[signal]
    odd = [f"{caveat} ({count})" for caveat, count in decoded.caveats.items() if caveat is not Caveat.NO_RUN]
    if not decoded.refused:
        told = [f"all {item}s accepted, but not as they were sent: {', '.join(odd)}"] if odd else []
        lost = decoded.caveats.get(Caveat.NO_RUN)
        return "; ".join([*told, f"{Caveat.NO_RUN}: {told_of_no_run(lost)}"] if lost else told)
    counts = [
        f"{refused.spans} for {refused.reason}" if refused.spans else refused.reason for refused in decoded.refused
    ]
    examples = [_shortened(refused.example, _EXAMPLE_CHARS) for refused in decoded.refused]
    reasons = "; ".join(f"{count} ({example})" for count, example in zip(counts, examples, strict=True))
    total = decoded.refused_spans + len(decoded.spans) + sum(decoded.unread_records.values())
    others = f"; of the others: {', '.join(odd)}" if odd else ""
    count = decoded.refused_spans
    # The points of other metrics were not counted.
    of_all = plural(count, item) if signal == "metrics" else f"{count} of {total} {item}s"
    return _shortened(f"{of_all} refused: {reasons}", _MESSAGE_CHARS) + others


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
