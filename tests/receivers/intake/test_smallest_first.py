"""Requests that wait for their turn to be decoded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from receivers.receiving import having_turn
from spanscore.receivers.intake.admission import SmallestFirst


def order(sizes: Sequence[int], at_once: int, leaving: Sequence[int] = ()) -> tuple[list[int], int]:
    """Return the sizes of requests in the order of their turns, and how many had one at once at most."""
    had: list[int] = []
    most = now = 0

    async def work(turns: SmallestFirst, size: int) -> None:
        nonlocal most, now
        async with having_turn(turns, size):
            had.append(size)
            now += 1
            most = max(most, now)
            try:
                for _ in range(3):
                    await asyncio.sleep(0)
            finally:
                now -= 1

    async def scenario() -> None:
        turns = SmallestFirst(at_once)
        tasks = [asyncio.ensure_future(work(turns, size)) for size in sizes]
        for step in leaving:
            await asyncio.sleep(0)
            tasks[step % len(tasks)].cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        async with asyncio.timeout(10), having_turn(turns, 0):  # one is free
            pass

    asyncio.run(scenario())
    return had, most


def test_the_smallest_is_next() -> None:
    """The first ones have their turns at once; of those that wait, the smallest overtakes the others."""
    assert ([9, 1, 3, 5, 7], 1) == order([9, 7, 5, 3, 1], 1)


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    at_once=st.integers(1, 4),
    leaving=st.lists(st.integers(0, 99), max_size=12),
)
def test_no_turn_is_lost(sizes: list[int], at_once: int, leaving: list[int]) -> None:
    """Whoever leaves and when: all others have their turns, never too many at once, and in the end all are free."""
    had, most = order(sizes, at_once, leaving)
    assert most <= at_once
    assert len(had) >= len(sizes) - len({step % len(sizes) for step in leaving})
