"""The readiness to take requests: checked repeatedly, for the pages and for clients that watch gRPC's health."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Final

from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.kafka import Kafka
from spanscore.service.downstream import Downstream
from spanscore.service.listeners import Listeners
from spanscore.service.pages import OK, is_ok
from spanscore.storage.durability import Durability

_EVERY_S: Final = 0.4

_log = logging.getLogger(__name__)


class Health:
    """The state of everything that is needed to take requests: `ok`, `ok, but ...`, or the problem."""

    def __init__(
        self,
        receivers: Collection[str],
        admission: Admission,
        downstream: Downstream,
        durability: Durability | None,
        kafka: Kafka | None,
    ) -> None:
        self._receivers: Final = [name for name in receivers if name != "kafka"]  # that one has a state of its own
        self._admission: Final = admission
        self._downstream: Final = downstream
        self._durability: Final = durability
        self._kafka: Final = kafka
        self._listening: Mapping[str, str] = {}
        self._last: Mapping[str, str] = {}
        self._watching: asyncio.Task[None] | None = None

    def states(self) -> Mapping[str, str]:
        """Return the state of everything, by name."""
        states = dict.fromkeys(self._receivers, "shutting down" if self._admission.closed else OK)
        if self._durability is not None:
            states["storage"] = self._durability.trouble or OK
        if self._kafka is not None:
            states["kafka"] = self._kafka.state
        return {**states, **self._downstream.states(), **self._listening}

    @property
    def troubles(self) -> Mapping[str, str]:
        """The states that are not `ok`."""
        return _wrong(self.states())

    def watch(self, listeners: Listeners) -> None:
        """Check all states from now on, and notify watching clients of changes."""
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
                _log.exception("readiness could not be determined")
            await asyncio.sleep(_EVERY_S)

    async def _tell(self, listeners: Listeners) -> None:
        before, self._last = self._last, self.states()
        wrong = _wrong(self._last)
        for name in _wrong(before).keys() - wrong.keys():
            _log.info("%s: ok again", name)
        for name, why in wrong.items():
            if is_ok(before.get(name, OK)):
                _log.warning("not ready: %s: %s", name, why)
        if bool(wrong) != bool(_wrong(before)):
            await listeners.tell_health(is_ready=not wrong)


def _wrong(states: Mapping[str, str]) -> dict[str, str]:
    return {name: state for name, state in states.items() if not is_ok(state)}
