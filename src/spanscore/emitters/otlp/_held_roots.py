"""Root spans that wait for the scores of their trace, bounded in number, size and time. The caller passes the time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Final, NamedTuple

from annotated_types import Ge, Gt

from spanscore.otlp.raw_requests import RootSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLimits:
    """Limits for root spans that wait: number, bytes and seconds."""

    hold_s: Annotated[float, Ge(0)] = 30.0
    """Longer than traces take to be scored once their root has come."""
    max_roots: Annotated[int, Gt(0)] = 50_000
    max_bytes: Annotated[int, Gt(0)] = 64 * 2**20


class _WaitingRoot(NamedTuple):
    root: RootSpan
    until: float


class HeldRoots:
    """Root spans in the order of their arrival. A span that was received twice is held twice."""

    def __init__(self, limits: HoldLimits) -> None:
        self._limits: Final = limits
        # Ordered, because deleting the oldest entry of a plain dict again and again is slow.
        self._held: OrderedDict[int, _WaitingRoot] = OrderedDict()
        self._by_trace: dict[bytes, dict[int, bytes]] = {}
        self._numbers = count()
        self.size = 0
        """Bytes that they take up."""

    def __len__(self) -> int:
        return len(self._held)

    def add(self, root: RootSpan, now: float) -> list[RootSpan]:
        """Add a root, and return the roots that must leave to make room for it, the oldest first."""
        number = next(self._numbers)
        self._held[number] = _WaitingRoot(root, now + self._limits.hold_s)
        self._by_trace.setdefault(root.trace_id, {})[number] = root.span_id
        self.size += root.size
        displaced = []
        while len(self._held) > self._limits.max_roots or self.size > self._limits.max_bytes:
            displaced.append(self._let_go(next(iter(self._held))))
        return displaced

    def take(self, trace_id: bytes, span_id: bytes | None = None) -> list[RootSpan]:
        """Release the roots of a trace, or only the ones with a given span id."""
        of_trace = self._by_trace.get(trace_id, {})
        numbers = [number for number, held_id in of_trace.items() if span_id is None or held_id == span_id]
        return [self._let_go(number) for number in numbers]

    def take_others(self, trace_id: bytes, span_ids: Collection[bytes]) -> list[RootSpan]:
        """Release the roots of a trace that have none of these span ids."""
        of_trace = self._by_trace.get(trace_id, {})
        return [self._let_go(number) for number, held_id in list(of_trace.items()) if held_id not in span_ids]

    def expire(self, now: float) -> list[RootSpan]:
        """Let go of the roots that have waited too long."""
        expired = []
        while self._held and next(iter(self._held.values())).until <= now:
            expired.append(self._let_go(next(iter(self._held))))
        return expired

    def drain(self) -> list[RootSpan]:
        """Let go of all."""
        return [self._let_go(number) for number in list(self._held)]

    def _let_go(self, number: int) -> RootSpan:
        root, _ = self._held.pop(number)
        self.size -= root.size
        of_trace = self._by_trace[root.trace_id]
        del of_trace[number]
        if not of_trace:
            del self._by_trace[root.trace_id]
        return root
