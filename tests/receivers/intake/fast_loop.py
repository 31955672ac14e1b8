"""An event loop for tests of time limits."""

from __future__ import annotations

import asyncio
import selectors


class FastLoop(asyncio.SelectorEventLoop):
    """An event loop that waits for nothing: its time jumps to a little after what is due next, as others wake."""

    def __init__(self) -> None:
        super().__init__(_Jump(self))
        self.passed_s = 0.0

    def time(self) -> float:
        """Return the time that has passed."""
        return self.passed_s


class _Jump(selectors.SelectSelector):
    def __init__(self, loop: FastLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.passed_s += timeout + 1e-6 if timeout else 0.0
        return super().select(0)
