"""Decides when a request is sent again."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

from annotated_types import Ge, Gt

from spanscore.emitters.sending.client._answer import Accepted, Client, Refused, Signal, TryAgain

Pause: TypeAlias = Callable[[float, TryAgain], bool]
"""Called with the seconds to wait and the reason. Waits, and returns whether to give up."""

GAVE_UP: Final = "gave_up"
RETRIES_EXHAUSTED: Final = "retries_exhausted"

_JITTER: Final = 0.5
_GROWTH: Final = 2.0
_DOUBLINGS: Final = 32  # beyond, any wait has reached its maximum


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The waits between attempts of one request, and when to give up. The wait doubles each time."""

    initial_s: Annotated[float, Ge(0)] = 0.5
    max_s: Annotated[float, Ge(0)] = 30.0
    max_asked_s: Annotated[float, Ge(0)] = 60.0
    """Wait no longer than this because the receiver asks for it."""
    max_elapsed_s: Annotated[float, Gt(0)] = math.inf
    """Send a request no more after this time since it was sent first. The default is to never give up."""

    def wait_s(self, attempt: int, asked_s: float | None, randomness: float) -> float:
        """Return how long to wait.

        Args:
            attempt: how often the request was sent already.
            asked_s: how long the receiver asks to wait; never less is waited.
            randomness: from 0 to 1; shortens or lengthens the wait by up to half, lest all clients return at once.
        """
        wait_s = min(self.max_s, self.initial_s * _GROWTH ** min(attempt - 1, _DOUBLINGS))
        wait_s *= 1 - _JITTER + 2 * _JITTER * randomness
        return wait_s if asked_s is None else max(wait_s, min(asked_s, self.max_asked_s))


class Delivery:
    """Sends each request until the receiver has taken or refused it, or until it is time to give up.

    Args:
        client: sends once.
        pause: waits.
        retries: how long to wait, and when to give up.
        clock: seconds that never run backwards.
    """

    def __init__(
        self,
        client: Client,
        pause: Pause,
        retries: Retries | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client: Final = client
        self._pause: Final = pause
        self._retries: Final = retries or Retries()
        self._clock: Final = clock

    def send(self, signal: Signal, body: bytes) -> Accepted | Refused:
        """Send one request."""
        began = self._clock()
        attempt = 0
        while True:
            attempt += 1
            answer = self._client.send(signal, body)
            if not isinstance(answer, TryAgain):
                return answer
            if self._clock() - began >= self._retries.max_elapsed_s:
                return Refused(reason=RETRIES_EXHAUSTED, message=answer.reason, by_receiver=False)
            wait_s = self._retries.wait_s(attempt, answer.after_s, random.random())  # noqa: S311 - guards no secret
            if self._pause(wait_s, answer):
                return Refused(reason=GAVE_UP, message=answer.reason, by_receiver=False)
