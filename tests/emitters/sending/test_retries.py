from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otlp_capture import InMemory
from spanscore.emitters.sending.client import Accepted, Answer, Delivery, Refused, Retries, TryAgain

AWAY = TryAgain(reason="unreachable")


class Time:
    """Passes by waiting only."""

    def __init__(self, give_up_at: float = float("inf")) -> None:
        self.now = 100.0
        self.waits: list[float] = []
        self._give_up_at = give_up_at

    def pause(self, seconds: float, answer: TryAgain) -> bool:
        """Wait."""
        self.waits.append(seconds)
        self.now += seconds
        return self.now >= self._give_up_at


def delivered(answers: Sequence[Answer], time: Time, retries: Retries | None = None) -> tuple[Answer, int]:
    """Return what became of a request, and how often it was sent."""
    receiver = InMemory(answers)
    answer = Delivery(receiver, time.pause, retries, lambda: time.now).send("traces", b"request")
    assert {("traces", b"request")} == set(receiver.sent)
    return answer, len(receiver.sent)


@pytest.mark.parametrize(
    "answer",
    [Accepted(), Accepted(rejected=2, message="too old"), Refused(reason="http_400"), Refused(reason="http_401")],
)
def test_an_answer_is_final(answer: Accepted | Refused) -> None:
    """What was taken, in part or with a warning too, or refused, is not sent again."""
    time = Time()

    assert (answer, 1) == delivered([answer], time)
    assert [] == time.waits


def test_a_receiver_that_is_away_is_waited_for() -> None:
    """The same request goes out until it is taken; the waits grow."""
    time = Time()

    assert (Accepted(), 6) == delivered([*[AWAY] * 5, Accepted()], time)
    assert 5 == len(time.waits)
    assert all(later > earlier / 3 for earlier, later in pairwise(time.waits))


def test_the_receivers_delay_is_kept() -> None:
    """No retry comes before the receiver asked for it."""
    time = Time()

    delivered([TryAgain(reason="http_503", after_s=40), Accepted()], time)
    assert [40] == time.waits


def test_a_receiver_that_is_away_for_hours_is_waited_for() -> None:
    """No time ends it, unless one is set."""
    time = Time()

    assert (Accepted(), 1001) == delivered([*[AWAY] * 1000, Accepted()], time)
    assert sum(time.waits) > 3600


def test_it_ends() -> None:
    """A request that nobody takes is given up after a time that was set."""
    time = Time()

    answer, _ = delivered([AWAY] * 1000, time, Retries(max_elapsed_s=60))
    assert Refused(reason="retries_exhausted", message="unreachable", by_receiver=False) == answer
    assert 60 <= sum(time.waits) <= 60 + 45


def test_it_can_be_ended() -> None:
    """Whoever waits can decide to wait no longer."""
    time = Time(give_up_at=100)

    gave_up = Refused(reason="gave_up", message="unreachable", by_receiver=False)
    assert (gave_up, 1) == delivered([AWAY], time)


@given(
    attempt=st.integers(1, 10**9),
    asked_s=st.none() | st.floats(0, 1e12),
    randomness=st.floats(0, 1, exclude_max=True),
    max_s=st.floats(0, 1000),
)
def test_waits_are_bounded(attempt: int, asked_s: float | None, randomness: float, max_s: float) -> None:
    """However often, and whatever is asked for, a wait is no longer than configured and no shorter than asked for."""
    retries = Retries(initial_s=0.5, max_s=max_s, max_asked_s=60)
    wait_s = retries.wait_s(attempt, asked_s, randomness)

    assert min(asked_s or 0, 60) <= wait_s <= max(1.5 * max_s, 60 if asked_s else 0)
