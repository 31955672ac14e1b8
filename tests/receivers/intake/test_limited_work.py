"""The time limit that many tasks share."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receivers.intake.fast_loop import FastLoop
from spanscore.receivers.intake.limited_work import LimitedWork, SharedTimeLimit


@given(works=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12))
def test_each_piece_of_work_has_the_whole_time(works: list[tuple[int, int]]) -> None:
    """Whenever others begin and end: work that takes longer than the limit is cut off at the limit, and no other."""

    async def work(limit: SharedTimeLimit, begins: int, takes: float) -> float:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(begins)
        began = loop.time()
        with suppress(TimeoutError), LimitedWork(limit):
            await asyncio.sleep(takes)
        return loop.time() - began

    async def scenario() -> list[float]:
        limit = SharedTimeLimit(10)
        return await asyncio.gather(*(work(limit, begins, takes + 0.5) for begins, takes in works))

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        taken = runner.run(scenario())
    assert taken == pytest.approx([min(takes + 0.5, 10) for _, takes in works], abs=0.2)


def test_cancelled_work_is_cancelled() -> None:
    """A task that others cancel, before its time is over or in the same moment, does not report a time-out."""

    async def work(limit: SharedTimeLimit) -> None:
        with LimitedWork(limit):
            await asyncio.Event().wait()

    async def scenario() -> list[bool]:
        limited: list[LimitedWork] = []

        async def cut_off() -> None:
            with LimitedWork(SharedTimeLimit(None)) as work:
                limited.append(work)
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(work(SharedTimeLimit(60))), asyncio.create_task(cut_off())]
        await asyncio.sleep(0)
        limited[0].cut_off()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.cancelled() for task in tasks]

    assert [True, True] == asyncio.run(scenario())
