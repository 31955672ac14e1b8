"""What whoever starts and stops us, such as systemd, does and wants to know."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_SOCKET: Final = "NOTIFY_SOCKET"


def hold_hangups() -> None:
    """Have SIGHUP wait until `take_hangups`: one that comes before it can be handled would end the process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})


def take_hangups() -> None:
    """Let SIGHUP come, one that has been waiting at once."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


class ServiceManager:
    """Is told how we do, as https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html says.

    Where nobody asks for it, or does not listen, nothing happens: it is never waited for.
    """

    def __init__(self) -> None:
        # Taken away: what we start does not speak for us.
        address = os.environ.pop(_SOCKET, "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._is_ready = False

    @property
    def is_told(self) -> bool:
        """Whether somebody asks for it."""
        return bool(self._address)

    def ready(self) -> None:
        self._is_ready = True
        self._tell("READY=1")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Say that the configuration is read again, and when that is done, whether or not it could be used.

        Not before we were ready: it would end the waiting for that.
        """
        if self._is_ready:
            self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
        yield
        if self._is_ready:
            self._tell("READY=1")

    def stopping(self) -> None:
        self._is_ready = False
        self._tell("STOPPING=1")

    def _tell(self, state: str) -> None:
        if not self._address:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.settimeout(0)
            told.sendto(state.encode(), self._address)
