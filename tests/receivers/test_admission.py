from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.receivers._admission import Admission, RetryDelay, Unavailable


class Clock:
    """Seconds that a test tells."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return them."""
        return self.now


def test_the_delay_grows_with_the_senders_sent_away_and_falls_with_time() -> None:
    """A single sender waits a second; of many at once the last waits longest; ten seconds later it is half as much."""
    clock = Clock()
    delay = RetryDelay(clock, jitter=lambda: 0.0)
    first = delay.next()
    later = [delay.next() for _ in range(199)]
    clock.now = 10.0

    assert (1.05, 11.0, 6.05) == (first, later[-1], pytest.approx(delay.next()))


@given(steps=st.lists(st.tuples(st.floats(0, 100), st.floats(0, 1)), max_size=50), repeat=st.integers(1, 100))
def test_the_delay_is_bounded(steps: list[tuple[float, float]], repeat: int) -> None:
    """Whenever senders come and however the dice fall, a delay is at least a second and at most thirty."""
    clock = Clock()
    chance = [0.0]
    delay = RetryDelay(clock, jitter=lambda: chance[0])
    for pause, chance[0] in steps:
        clock.now += pause
        for _ in range(repeat):
            assert 1 <= delay.next() <= 30


def test_memory_is_given_back() -> None:
    """What one request holds is free for the next one when it ends, however it ends."""

    async def scenario() -> None:
        admission = Admission(max_bytes=10)
        for _ in range(3):
            async with admission.request() as held:
                held.add(6)
                with pytest.raises(Unavailable, match="too many requests at once"):
                    held.add(5)
        async with admission.request() as first, admission.request() as second:
            first.add(6)
            second.add(4)

    asyncio.run(scenario())


def test_who_waits_gets_in_when_another_is_done() -> None:
    """With one place the second request begins when the first has ended."""

    async def scenario() -> list[str]:
        admission = Admission(max_requests=1, wait_s=10)
        told: list[str] = []

        async def second() -> None:
            async with admission.request():
                told.append("second")

        async with admission.request():
            waiting = asyncio.create_task(second())
            await asyncio.sleep(0)
            told.append("first")
        await waiting
        return told

    assert ["first", "second"] == asyncio.run(scenario())


def test_a_closed_door_stays_open_for_those_inside() -> None:
    """After closing nobody is let in; who was in before may finish."""

    async def scenario() -> None:
        admission = Admission()
        async with admission.request() as held:
            admission.close()
            held.add(1)
            with pytest.raises(Unavailable, match="shutting down"):
                async with admission.request():
                    pass

    asyncio.run(scenario())
