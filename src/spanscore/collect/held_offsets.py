"""How far a partition of a topic is finished with, while some of its traces are still open."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable


class HeldOffsets:
    """Knows up to where one partition may be committed: to the first record of the oldest trace that is still needed.

    Whoever reads on from there, this process after a crash or another consumer, meets every open trace from its first
    record on. A trace is held once, at the first record it came in; each is released when it is scored.
    """

    def __init__(self) -> None:
        self.position: int | None = None
        """The offset behind the last record read; None while none was."""
        # In the order of their offsets, because records are read in that order. Ordered, because deleting the oldest
        # entry of a plain dict again and again is slow.
        self._first: OrderedDict[bytes, int] = OrderedDict()

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._first

    @property
    def committable(self) -> int | None:
        """The offset to commit; None while nothing was read."""
        return next(iter(self._first.values()), self.position)

    @property
    def trace_ids(self) -> tuple[bytes, ...]:
        """The traces that are held, from old to new."""
        return tuple(self._first)

    def read(self, offset: int, needed: Iterable[bytes]) -> None:
        """Note that a record was read, and which of its traces are needed further on.

        An offset below the position is of a topic that was made anew: what was held is not there any more.
        """
        if self.position is not None and offset < self.position:
            self._first.clear()
        self.position = offset + 1
        for trace_id in needed:
            self._first.setdefault(trace_id, offset)

    def release(self, trace_id: bytes) -> bool:
        """Hold a trace no longer, and say whether it was held."""
        return self._first.pop(trace_id, None) is not None
