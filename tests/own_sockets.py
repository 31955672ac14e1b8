"""Free ports, and the sockets of this process that listen, also those of libraries that hand out none."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def listening() -> set[int]:
    """Return the ports on which this process listens."""
    return {port for copy, port in _listening()}


def shut(port: int) -> None:
    """Have a socket of this process that listens there listen no more."""
    for copy, its_port in _listening():
        if its_port == port:
            copy.shutdown(socket.SHUT_RDWR)


def _listening() -> Iterator[tuple[socket.socket, int]]:
    """Give a second descriptor of each socket that listens on a port, for as long as it is looked at."""
    for entry in list(Path("/proc/self/fd").iterdir()):
        copy = _copy(entry)
        if copy is not None:
            with copy:
                name: tuple[str, int] | str = ""
                with suppress(OSError):
                    if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        name = copy.getsockname()
                if isinstance(name, tuple):  # and no path, as that of a Unix socket
                    yield copy, name[1]


def _copy(entry: Path) -> socket.socket | None:
    """Return a second descriptor of a socket; None of what is none, or no more: other threads close some meanwhile."""
    try:
        if not str(entry.readlink()).startswith("socket:"):
            return None
        descriptor = os.dup(int(entry.name))
    except OSError:
        return None
    try:
        return socket.socket(fileno=descriptor)
    except OSError:  # it became something else meanwhile
        os.close(descriptor)
        return None
