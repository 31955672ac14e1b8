from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receivers.intake.fast_loop import FastLoop
from receivers.receiving import having_turn
from spanscore.receivers.intake.admission import Admission, RetryDelay, Unavailable
from spanscore.receivers.intake.arriving import ArrivalLimit, ArrivingBody
from spanscore.receivers.intake.limited_work import NO_LIMIT, SharedTimeLimit
from spanscore.receivers.intake.requests import Busy


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


def test_who_gives_way_does_not_have_others_wait_longer() -> None:
    """Two hundred that were displaced do not say that there are too many: the next refusal is for a second."""

    async def scenario() -> float:
        admission = Admission(delay=RetryDelay(Clock(), jitter=lambda: 0.0))
        for _ in range(200):
            admission.refusal(Busy.MEMORY, has_begun=True)
        return admission.refusal(Busy.MEMORY).retry_after_s

    assert 1.05 == asyncio.run(scenario())


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
            with admission.request() as held:
                await held.add(6)
                with pytest.raises(Unavailable, match="too many requests at once"):
                    await held.add(5)
        with admission.request() as first, admission.request() as second:
            await first.add(6)
            await second.add(4)

    asyncio.run(scenario())


def test_who_waits_gets_in_when_another_is_done() -> None:
    """With one place the second request begins when the first has ended."""

    async def scenario() -> list[str]:
        admission = Admission(max_requests=1)
        told: list[str] = []

        async def second() -> None:
            async with having_turn(admission.turns):
                told.append("second")

        async with having_turn(admission.turns):
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
        with admission.request() as held:
            admission.close()
            await held.add(1)
            with pytest.raises(Unavailable, match="shutting down"), admission.request():
                pass

    asyncio.run(scenario())


def test_those_who_wait_for_memory_have_their_turn() -> None:
    """Requests of unknown size are read as many at once as the largest ones fit, the others one after the other."""

    async def scenario() -> list[int]:
        admission = Admission(max_bytes=40)  # half of it is for them
        told: list[int] = []
        ends = [asyncio.Event() for _ in range(4)]

        async def read(number: int) -> None:
            async with reading_unsized(admission, 10):
                told.append(number)
                await ends[number].wait()

        reading = [asyncio.create_task(read(number)) for number in range(4)]
        for end in ends:
            for _ in range(10):
                await asyncio.sleep(0)
            told.append(-len(admission.unsized.arriving))
            end.set()
        await asyncio.gather(*reading)
        return told

    assert [0, 1, -2, 2, -2, 3, -2, -1] == asyncio.run(scenario())


def test_who_waited_too_long_is_sent_away_even_when_there_is_room_again() -> None:
    """A loop that was busy finds both at once, and the sender may have given up: nobody would hear the answer."""

    async def scenario() -> None:
        admission = Admission(max_requests=1)

        async def second() -> None:
            with pytest.raises(TimeoutError):
                async with having_turn(admission.turns, wait_s=0.01):
                    pass

        async with having_turn(admission.turns):
            waiting = asyncio.create_task(second())
            await asyncio.sleep(0)
            time.sleep(0.05)  # noqa: ASYNC251 - the loop has no time
        await waiting
        async with having_turn(admission.turns, wait_s=0.01):
            pass

    asyncio.run(scenario())


def test_reading_needs_no_turn() -> None:
    """However many are sending, who is there has its turn."""

    async def scenario() -> None:
        admission = Admission(max_requests=1)
        end = asyncio.Event()

        async def read() -> None:
            async with reading_in(admission) as held:
                await held.add(3)
                await end.wait()

        reading = [asyncio.create_task(read()) for _ in range(200)]
        await asyncio.sleep(0)
        async with having_turn(admission.turns, wait_s=0.01):
            end.set()
        await asyncio.gather(*reading)

    asyncio.run(scenario())


@asynccontextmanager
async def reading_in(admission: Admission) -> AsyncIterator[ArrivingBody]:
    """Let a body in that arrives meanwhile."""
    with admission.request() as held, ArrivalLimit(NO_LIMIT, body=held):
        yield held


@asynccontextmanager
async def reading_unsized(admission: Admission, size: int) -> AsyncIterator[None]:
    """Let a body in that arrives meanwhile, of unknown size."""
    with (
        admission.request(),
        await admission.unsized.set_aside(size) as body,
        ArrivalLimit(SharedTimeLimit(60), body=body),
    ):
        yield


async def arriving(admission: Admission, sizes: dict[str, int], told: list[str]) -> list[asyncio.Task[None]]:
    """Begin bodies of these sizes, which never come to their end, and have those cancelled named."""

    async def read(name: str, size: int) -> None:
        try:
            async with reading_in(admission) as held:
                await held.add(size)
                await asyncio.Event().wait()
        except Unavailable as unavailable:
            told.append(f"{name}: {unavailable}")

    reading = [asyncio.create_task(read(name, size)) for name, size in sizes.items()]
    await asyncio.sleep(0)
    return reading


async def end(reading: list[asyncio.Task[None]]) -> None:
    """Give them up."""
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


def test_who_has_held_the_most_for_the_longest_gives_way() -> None:
    """Where memory is short, bytes times seconds are compared: neither the oldest goes nor the largest of all."""

    async def scenario() -> list[str]:
        admission = Admission(max_bytes=100)
        told: list[str] = []
        reading = await arriving(admission, {"old": 10, "heaviest": 40}, told)
        await asyncio.sleep(10)
        reading += await arriving(admission, {"large": 45}, told)
        with admission.request() as held:
            await held.add(10)
            told.append("10 are there")
            await held.add(30)
            told.append("40 are there")
            with pytest.raises(Unavailable, match="too many requests at once"):
                await held.add(20)
        await end(reading)
        return told

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        told = runner.run(scenario())
    assert ["heaviest: too many requests at once", "10 are there", "40 are there"] == told


def test_of_new_ones_the_largest_gives_way_to_a_smaller_one() -> None:
    """In the first second time does not count; to a body that would be the largest itself nobody gives way."""

    async def scenario() -> list[str]:
        admission = Admission(max_bytes=100)
        told: list[str] = []
        reading = await arriving(admission, {"30": 30, "40": 40, "25": 25, "5": 5}, told)
        async with reading_in(admission) as held:
            await held.add(20)
            told.append("20 are there")
        async with reading_in(admission) as held:
            with pytest.raises(Unavailable, match="too many requests at once"):
                await held.add(60)
        await end(reading)
        return told

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        assert ["40: too many requests at once", "20 are there"] == runner.run(scenario())


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        pytest.param(69, [], id="it would have to go next"),
        pytest.param(90, [], id="even all others have too little"),
        pytest.param(30, ["heavy: too many requests at once", "there"], id="others are enough"),
    ],
)
def test_nobody_goes_for_nothing(asked: int, told: list[str]) -> None:
    """Who wants more than those heavier than itself have takes nothing from them, and goes alone."""

    async def scenario() -> list[str]:
        admission = Admission(max_bytes=100)
        heard: list[str] = []
        reading = await arriving(admission, {"light": 2, "heavy": 50}, heard)
        await asyncio.sleep(10)
        with suppress(Unavailable):
            async with reading_in(admission) as held:
                await held.add(30)
                await held.add(asked)
                heard.append("there")
        await end(reading)
        return heard

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        assert told == runner.run(scenario())


def test_the_more_wait_the_sooner_a_slow_one_goes() -> None:
    """Nobody knows the size of two hundred requests that never come; who comes after them is read within its wait."""

    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        admission = Admission(max_bytes=40, delay=RetryDelay(jitter=lambda: 0.0))

        async def read() -> None:
            with suppress(Unavailable):
                async with reading_unsized(admission, 10):
                    await asyncio.Event().wait()

        reading = [asyncio.create_task(read()) for _ in range(200)]
        await asyncio.sleep(0)
        began = loop.time()
        async with reading_unsized(admission, 10):
            waited_s = loop.time() - began
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        return waited_s

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        assert 2.5 == pytest.approx(runner.run(scenario()), abs=1.0)


def test_one_is_always_read() -> None:
    """A request that may be larger than all the memory there is, is read by itself."""

    async def scenario() -> None:
        admission = Admission(max_bytes=10, wait_s=0.01)
        with admission.request() as held:
            async with reading_unsized(admission, 100):
                assert 1 == len(admission.unsized.arriving)
                with admission.request(), pytest.raises(Unavailable, match="too many requests at once"):
                    async with reading_unsized(admission, 200):
                        pass
            await held.add(10)
        assert {"no_memory": 1} == admission.requests.refused

    asyncio.run(scenario())


def test_trouble_sends_everybody_away() -> None:
    """Whatever is wrong is asked for before anything is read, and counted as what it is."""

    async def scenario() -> None:
        troubles = [Busy.DOWNSTREAM, None]
        admission = Admission(trouble=lambda: troubles.pop(0))
        with pytest.raises(Unavailable, match="the next receiver does not keep up"), admission.request():
            pass
        with admission.request():
            pass
        assert {"downstream": 1} == admission.requests.refused

    asyncio.run(scenario())
