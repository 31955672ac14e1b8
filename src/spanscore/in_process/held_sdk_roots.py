"""Root spans that wait, inside an application's process, for the scores of their trace."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.sdk.trace import ReadableSpan


class HeldSdkRoots:
    """Root spans that wait for their scores. Any thread adds them; each is taken once, by the first that asks.

    There is no lock: spans end in signal handlers and destructors too, where the thread may have the lock already. Each
    step is one operation of a dict or a list, which no other thread interrupts.
    """

    def __init__(self) -> None:
        self._by_trace: dict[int, list[ReadableSpan]] = {}

    def hold(self, root: ReadableSpan) -> None:
        """Keep a root."""
        trace_id = root.context.trace_id
        held = self._by_trace.setdefault(trace_id, [])
        held.append(root)
        # Its trace may have been taken between these steps: then the root was taken with it, or is still here.
        while self._by_trace.get(trace_id) is not held and _was_left(root, held):
            held = self._by_trace.setdefault(trace_id, [])
            held.append(root)

    def take(self, trace_id: int) -> Iterator[ReadableSpan]:
        """Yield the roots of a trace, in the order in which they came."""
        held = self._by_trace.pop(trace_id, [])
        while held:
            try:
                root = held.pop(0)
            except IndexError:  # the thread that added it has just taken it back
                return
            yield root

    def take_all(self) -> Iterator[ReadableSpan]:
        """Yield all of them."""
        for trace_id in list(self._by_trace):
            yield from self.take(trace_id)

    def clear(self) -> None:
        """Forget them: they are another process's."""
        self._by_trace.clear()


def _was_left(root: ReadableSpan, held: list[ReadableSpan]) -> bool:
    try:
        held.remove(root)
    except ValueError:
        return False
    return True
