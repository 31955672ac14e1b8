"""Whether requests are taken: looked at again and again, and told to those who ask and to those who watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeAlias

from spanscore.service.pages import OK

_EVERY_S: Final = 0.4

State: TypeAlias = Callable[[], str]
"""Says `ok` of something that is needed, or what is wrong with it."""

_log = logging.getLogger(__name__)


class Listening(Protocol):
    """What requests come in by."""

    async def troubles(self) -> Mapping[str, str]:
        """Return what is wrong, by configuration key; empty where all is well."""
        ...

    async def tell_health(self, *, is_ready: bool) -> None:
        """Tell those who watch."""
        ...


class Health:
    """Knows the state of everything that is needed to take requests.

    Args:
        states: what is needed, by name.
    """

    def __init__(self, states: Mapping[str, State]) -> None:
        self._states: Final = dict(states)
        self._listening: Mapping[str, str] = {}
        self._last: Mapping[str, str] = {}
        self._watching: asyncio.Task[None] | None = None

    def states(self) -> Mapping[str, str]:
        """Return the state of everything, by name."""
        return {name: state() for name, state in self._states.items()} | dict(self._listening)

    @property
    def is_ready(self) -> bool:
        """Whether all of it is right."""
        return not _wrong(self.states())

    def watch(self, listening: Listening) -> None:
        """Look at everything from now on, and tell those who watch when it changes."""
        self._watching = asyncio.get_running_loop().create_task(self._watch(listening))

    async def stop(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    async def _watch(self, listening: Listening) -> None:
        while True:
            try:
                self._listening = await listening.troubles()
                await self._tell(listening.tell_health)
            except Exception:  # noqa: BLE001 - whatever goes wrong, the next look is due
                _log.exception("the state could not be told")
            await asyncio.sleep(_EVERY_S)

    async def _tell(self, tell_health: Callable[..., Awaitable[None]]) -> None:
        before, self._last = self._last, self.states()
        wrong = _wrong(self._last)
        for name in _wrong(before).keys() - wrong.keys():
            _log.info("%s: ok again", name)
        for name, why in wrong.items():
            if before.get(name, OK) == OK:
                _log.warning("not ready: %s: %s", name, why)
        if bool(wrong) != bool(_wrong(before)):
            await tell_health(is_ready=not wrong)


def _wrong(states: Mapping[str, str]) -> dict[str, str]:
    return {name: state for name, state in states.items() if state != OK}
