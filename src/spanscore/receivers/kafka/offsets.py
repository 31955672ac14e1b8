"""The offset up to which a partition is finished, while some of its traces are still open. Pure.

A commit is an offset, and a text that names to the next owner the traces after it that were scored already.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

MOST: Final = 380
"""So many traces fit into the text: brokers take 4,096 characters beside an offset."""

_VERSION: Final = "1:"
_MARK_BYTES: Final = 8


class HeldOffsets:
    """The offset up to which one partition may be committed: the first record of the oldest trace that is needed.

    A consumer that continues there, this process after a crash or another one, reads every open trace from its first
    record on. A trace is held once, at the first record it came in; each is released when it is scored.
    """

    def __init__(self) -> None:
        self.position: int | None = None
        """The offset after the last record read; None before the first."""
        self._written_at = -math.inf
        """When the last record read was written, in seconds of the clock of its sender."""
        # Each trace with the offset of its first record, and the time at which its last one was written.
        # In the order of these offsets, because records are read in that order. Ordered, because deleting the oldest
        # entry of a plain dict again and again is slow.
        self._traces: OrderedDict[bytes, tuple[int, float | None]] = OrderedDict()

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._traces

    @property
    def committable(self) -> int | None:
        """The offset to commit; None while nothing was read."""
        return next(iter(self._traces.values()), (self.position,))[0]

    @property
    def trace_ids(self) -> tuple[bytes, ...]:
        """The traces that are held, from old to new."""
        return tuple(self._traces)

    def read(self, offset: int, needed: Iterable[bytes], written_at: float | None = None) -> None:
        """Note that a record was read, which was written at that time, and hold its traces that are still needed.

        An offset below the position means that the topic was created again: the held traces no longer exist.
        """
        if self.position is not None and offset < self.position:
            self._traces.clear()
        self.position = offset + 1
        if written_at is not None:
            self._written_at = written_at
        for trace_id in needed:
            first, _ = self._traces.get(trace_id, (offset, None))
            self._traces[trace_id] = first, written_at

    def read_since(self, trace_id: bytes) -> float:
        """Return how many seconds after the last record of a trace the last record was written; infinite if unknown."""
        _, written_at = self._traces.get(trace_id, (0, None))
        return math.inf if written_at is None else self._written_at - written_at

    def release(self, trace_id: bytes) -> bool:
        """Release a trace, and return whether it was held."""
        return self._traces.pop(trace_id, None) is not None


class ScoredTraces:
    """The last traces that were scored, by this member and by earlier owners.

    Between the committed offset and the end of a partition lie open traces, which the next owner has to read, and
    scored ones, which it must not score again. It recognises these by their marks: hashes of trace ids, because whole
    ids would take twice the room.
    """

    def __init__(self, text: str = "") -> None:
        """Read the marks that were committed; a text in another format counts as none."""
        self._marks: Final = OrderedDict.fromkeys(_marks(text))

    def __contains__(self, trace_id: bytes) -> bool:
        return bool(self._marks) and _mark(trace_id) in self._marks

    def add(self, trace_id: bytes) -> None:
        """Add a scored trace; if there are too many, forget the one that was scored first."""
        mark = _mark(trace_id)
        self._marks[mark] = None
        self._marks.move_to_end(mark)
        if len(self._marks) > MOST:
            self._marks.popitem(last=False)

    def forget(self, trace_id: bytes) -> None:
        """Remember a trace no longer."""
        self._marks.pop(_mark(trace_id), None)

    @property
    def text(self) -> str:
        """The text to commit."""
        return _VERSION + b64encode(b"".join(self._marks)).decode() if self._marks else ""


def _marks(text: str) -> list[bytes]:
    if not text.startswith(_VERSION):
        return []
    try:
        marks = b64decode(text.removeprefix(_VERSION), validate=True)
    except ValueError:
        return []
    return [marks[start : start + _MARK_BYTES] for start in range(0, len(marks), _MARK_BYTES)]


def _mark(trace_id: bytes) -> bytes:
    return blake2b(trace_id, digest_size=_MARK_BYTES).digest()
