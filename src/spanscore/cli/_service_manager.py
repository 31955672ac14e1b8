"""The interface to a service manager such as systemd: signals, and notifications."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_SOCKET: Final = "NOTIFY_SOCKET"


def hold_hangups() -> None:
    """Have SIGHUP wait until `take_hangups`: one that comes before it can be handled would end the process."""
    if sys.platform != "win32" and hasattr(signal, "SIGHUP"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})


def take_hangups() -> None:
    """Unblock SIGHUP; a pending one is delivered at once."""
    if sys.platform != "win32" and hasattr(signal, "SIGHUP"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


class ServiceManager:
    """Notifies a service manager, as in https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html.

    If there is none, or it does not listen, nothing happens. It never blocks.
    """

    def __init__(self) -> None:
        # Removed from the environment: child processes must not notify for us.
        address = os.environ.pop(_SOCKET, "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._is_ready = False

    def ready(self) -> None:
        self._is_ready = True
        self._tell("READY=1")

    @contextmanager
    def reloading(self) -> Iterator[None]:
        """Notify that the configuration is read again, and when that is done, whether or not it could be used.

        Not before we were ready: it would end the waiting for that.
        """
        if self._is_ready:
            self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            yield
        finally:
            if self._is_ready:
                self._tell("READY=1")

    def stopping(self) -> None:
        self._is_ready = False
        self._tell("STOPPING=1")

    def _tell(self, state: str) -> None:
        if not self._address or not hasattr(socket, "AF_UNIX"):
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.settimeout(0)
            told.sendto(state.encode(), self._address)
