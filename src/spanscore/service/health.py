"""Whether requests are taken: looked at again and again, and told to those who ask and to those who watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from spanscore.service.listeners import Listeners
from spanscore.service.pages import OK, Readiness

_EVERY_S: Final = 0.4

_log = logging.getLogger(__name__)


class Health:
    """Knows the state of everything that is needed to take requests.

    Args:
        states: says of everything but the listeners `ok`, or what is wrong with it, by name.
    """

    def __init__(self, states: Readiness) -> None:
        self._states: Final = states
        self._listening: Mapping[str, str] = {}
        self._last: Mapping[str, str] = {}
        self._watching: asyncio.Task[None] | None = None

    def states(self) -> Mapping[str, str]:
        """Return the state of everything, by name."""
        return {**self._states(), **self._listening}

    @property
    def is_ready(self) -> bool:
        """Whether all of it is right."""
        return not _wrong(self.states())

    def watch(self, listeners: Listeners) -> None:
        """Look at everything from now on, and tell those who watch when it changes."""
        self._watching = asyncio.get_running_loop().create_task(self._watch(listeners))

    async def stop(self) -> None:
        """Look no more."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    async def _watch(self, listeners: Listeners) -> None:
        while True:
            try:
                self._listening = await listeners.troubles()
                await self._tell(listeners)
            except Exception:  # noqa: BLE001 - whatever goes wrong, the next look is due
                _log.exception("the state could not be told")
            await asyncio.sleep(_EVERY_S)

    async def _tell(self, listeners: Listeners) -> None:
        before, self._last = self._last, self.states()
        wrong = _wrong(self._last)
        for name in _wrong(before).keys() - wrong.keys():
            _log.info("%s: ok again", name)
        for name, why in wrong.items():
            if before.get(name, OK) == OK:
                _log.warning("not ready: %s: %s", name, why)
        if bool(wrong) != bool(_wrong(before)):
            await listeners.tell_health(is_ready=not wrong)


def _wrong(states: Mapping[str, str]) -> dict[str, str]:
    return {name: state for name, state in states.items() if state != OK}
