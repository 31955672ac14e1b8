"""Lines that wait to be written to a reader that may be slow or stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from spanscore.emitters.sending.outbox import Outbox

_CAPACITY: Final = 10_000
_CAPACITY_BYTES: Final = 32 * 2**20

_Line = TypeVar("_Line", str, bytes)


class WaitingLines(Generic[_Line]):
    """A bounded queue of lines, and the thread that writes them. Lines that do not fit are dropped and counted.

    Args:
        name: the name of the emitter.
        write: writes a line, and may wait; an OSError or ValueError is counted, and costs only this line.
    """

    def __init__(self, name: str, write: Callable[[_Line], object]) -> None:
        self.outbox: Final = Outbox(_CAPACITY, _CAPACITY_BYTES)
        self._write: Final[Callable[[_Line], object]] = write
        self._queue: Final[SimpleQueue[_Line | threading.Event | None]] = SimpleQueue()
        threading.Thread(target=self._run, name=f"spanscore-{name}", daemon=True).start()

    def put(self, line: _Line) -> None:
        """Queue a line. Does not wait."""
        if self.outbox.put(size=len(line)):
            self._queue.put(line)

    def flush(self, timeout_s: float) -> bool:
        """Return whether all queued lines were written within the timeout."""
        failures = self.outbox.failures
        written = threading.Event()
        self._queue.put(written)
        return written.wait(timeout_s) and failures == self.outbox.failures

    def end(self) -> None:
        """Let the thread end after the lines that wait."""
        self._queue.put(None)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            if isinstance(item, threading.Event):
                item.set()
                continue
            try:
                self._write(item)
            except (OSError, ValueError) as error:  # the reader has left, or the file is closed
                self.outbox.fail(type(error).__name__)
            finally:
                self.outbox.take(size=len(item))
