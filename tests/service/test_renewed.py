"""What is made of the kept runs is made as rarely as that takes long."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from spanscore.service.recent_runs import HeldRuns, RecentRuns, Renewed


class Versions(RecentRuns):
    """Has a new run each time it is asked."""

    asked = 0

    @property
    def last(self) -> str:
        """Another one each time."""
        self.asked += 1
        return str(self.asked)


def test_what_takes_long_is_made_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once in the pause; if it takes half a second, once in two and a half pauses: a tenth of the time."""

    async def made_at(takes_s: float) -> list[float]:
        """Return when it is made for a reader who asks ten times a second."""
        loop, now, times = asyncio.get_running_loop(), [0.0], list[float]()
        monkeypatch.setattr(loop, "time", lambda: now[0])

        def make(_held: HeldRuns) -> None:
            times.append(now[0])
            now[0] += takes_s

        renewed = Renewed(Versions(1), make, 2.0)
        with ThreadPoolExecutor(1) as maker:
            while now[0] < 12:
                await renewed.made(maker)
                now[0] = round(now[0] + 0.1, 1)
        return times

    assert [0.0, 2.0, 4.0, 6.0, 8.0, 10.0] == asyncio.run(made_at(0))
    assert [0.0, 5.0, 10.0] == asyncio.run(made_at(0.5))
