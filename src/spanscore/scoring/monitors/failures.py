"""The last traces that failed, and the most frequent reasons, in few bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SHOWN_TRACES: Final = 10
SHOWN_REASONS: Final = 3

_KEPT_REASONS: Final = 5
_ID_BYTES: Final = 16


class Failures:
    """The failing runs of a series, since they became more."""

    __slots__ = ("reasons", "traces")

    def __init__(self) -> None:
        self.traces = b""
        """The ids of the last traces that failed, one after the other."""
        self.reasons: dict[str, int] | None = None
        """The most frequent reasons, with about how many runs have them."""

    def add(self, trace_id: bytes, reasons: Iterable[str]) -> None:
        """Note a run that failed."""
        self.traces = (self.traces + trace_id[:_ID_BYTES].ljust(_ID_BYTES, b"\0"))[-SHOWN_TRACES * _ID_BYTES :]
        for text in reasons:
            self.reasons = _counted(self.reasons, text)

    def clear(self) -> None:
        """Forget all of them."""
        self.traces, self.reasons = b"", None

    def last_traces(self) -> tuple[bytes, ...]:
        """Return the ids of the last ten traces."""
        return tuple(self.traces[at : at + _ID_BYTES] for at in range(0, len(self.traces), _ID_BYTES))

    def most_frequent(self) -> tuple[str, ...]:
        """Return the three most frequent reasons."""
        reasons = sorted((self.reasons or {}).items(), key=lambda each: (-each[1], each[0]))
        return tuple(text for text, _ in reasons[:SHOWN_REASONS])


def _counted(reasons: dict[str, int] | None, text: str) -> dict[str, int]:
    """Count a reason. Of more than five, a new one takes the place and the count of the rarest."""
    if reasons is None:
        return {text: 1}
    if text not in reasons and len(reasons) >= _KEPT_REASONS:
        rarest, most = min(reasons.items(), key=lambda each: each[1])
        # Made anew: a dict from which keys are removed grows.
        return {each: count for each, count in reasons.items() if each != rarest} | {text: most + 1}
    reasons[text] = reasons.get(text, 0) + 1
    return reasons
