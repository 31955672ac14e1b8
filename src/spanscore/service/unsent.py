"""Traces whose reports are on their way: they are kept until a receiver behind has them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from spanscore.contracts import Emitter, SendsInOrder


class _OnItsWay(NamedTuple):
    trace_id: bytes
    marks: tuple[int, ...]
    """What each emitter had queued when the trace was scored."""


class Unsent:
    """Knows the traces of which something may not have been sent.

    Args:
        emitters: those that reports went to.
    """

    def __init__(self, emitters: Iterable[Emitter]) -> None:
        self._senders: Final = [emitter for emitter in emitters if isinstance(emitter, SendsInOrder)]
        self._waiting: Final[deque[_OnItsWay]] = deque()
        self._ids: Final[Counter[bytes]] = Counter()  # a trace may wait with each of its revisions

    def __contains__(self, trace_id: bytes) -> bool:
        return trace_id in self._ids

    def add(self, trace_id: bytes) -> bool:
        """Note that a trace was scored, and return whether something of it is on its way."""
        progress = [sender.progress for sender in self._senders]
        if all(queued == settled for queued, settled in progress):
            return False
        self._waiting.append(_OnItsWay(trace_id, tuple(queued for queued, _ in progress)))
        self._ids[trace_id] += 1
        return True

    def sent(self) -> list[bytes]:
        """Return the traces of which every revision is sent or given up by now, and forget them."""
        done: list[bytes] = []
        settled = [sender.progress[1] for sender in self._senders]
        while self._waiting and all(
            mark <= so_far for mark, so_far in zip(self._waiting[0].marks, settled, strict=True)
        ):
            trace_id = self._waiting.popleft().trace_id
            self._ids[trace_id] -= 1
            if not self._ids[trace_id]:
                del self._ids[trace_id]
                done.append(trace_id)
        return done
