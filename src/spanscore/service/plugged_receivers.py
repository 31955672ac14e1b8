"""Receivers that bring spans to an intake they are given, as those of plug-ins do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Final

from spanscore.config import Config
from spanscore.contracts import Receiver
from spanscore.errors import ConfigError
from spanscore.intake.admission import Admission
from spanscore.intake.door import Door
from spanscore.intake.intake import Intake
from spanscore.plugins import find
from spanscore.sockets.listening import ListenError

_LONGER_S: Final = 1.0

_log = logging.getLogger(__name__)


class PluggedReceiver:
    """Starts and stops a receiver of a plug-in, whatever it raises."""

    def __init__(self, key: str, receiver: Receiver) -> None:
        self._key: Final = key
        self._receiver: Final = receiver
        self._is_stopped = False

    async def start(self) -> None:
        """Begin, and log where it listens.

        Raises:
            ListenError: it cannot.
        """
        try:
            where = await self._receiver.start()
        except Exception as error:
            message = f"{self._key}: cannot be started: {type(error).__name__}: {error}"
            raise ListenError(message) from error
        _log.info("receiving from %s (%s)", where, self._key)

    async def stop(self, grace_s: float) -> None:
        """Have it bring nothing more, and wait no longer than it is allowed to take."""
        if self._is_stopped:
            return
        self._is_stopped = True
        try:
            async with asyncio.timeout(grace_s + _LONGER_S):
                await self._receiver.stop(grace_s)
        except Exception:  # noqa: BLE001 - a plug-in's own code runs, and the others are to be stopped too
            _log.exception("%s: could not be stopped", self._key)


def plugged_receivers(config: Config, intake: Intake, admission: Admission) -> Iterator[tuple[str, PluggedReceiver]]:
    """Yield the receivers that a configuration lists, by their keys in it; the service builds the others.

    Raises:
        ConfigError: one cannot be built.
    """
    for name, settings in config.receivers.items():
        key, configured = f"receivers.{name}", getattr(find("receivers", name), "configured", None)
        if configured is not None:
            try:
                receiver = configured(settings, Door(key, intake, admission))
            except Exception as error:
                message = f"{key}: cannot be built: {type(error).__name__}: {error}"
                raise ConfigError(message) from error
            yield key, PluggedReceiver(key, receiver)
