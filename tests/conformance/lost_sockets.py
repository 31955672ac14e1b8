"""Takes a listening socket away from a receiver of this process."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def shut(port: int) -> None:
    """Have a socket of this process that listens there listen no more."""
    for found in _sockets():
        if _listens(found, port):
            found.shutdown(socket.SHUT_RDWR)


def _sockets() -> Iterator[socket.socket]:
    """Give a second descriptor of each socket, for as long as it is looked at."""
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # other threads close some meanwhile
            if str(entry.readlink()).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as found:
                    yield found


def _listens(found: socket.socket, port: int) -> bool:
    try:
        return bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)) and found.getsockname()[1] == port
    except OSError:
        return False
