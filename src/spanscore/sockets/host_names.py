"""By which names this machine may be asked: a web page can lead its own name here, and pass for its own server."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from ipaddress import ip_address
from typing import Final

_PORT: Final = re.compile(r":\d*$", re.ASCII)


class HostNames:
    """The names of this machine: localhost, addresses of loopback, and further ones.

    A web page cannot pass for its server with an address, and browsers always say what they ask for.

    Args:
        names: the further ones.
    """

    def __init__(self, names: Collection[str] = ()) -> None:
        self._names = frozenset(name.lower() for name in ("localhost", *names))

    def include(self, hosts: Iterable[str]) -> bool:
        """Return whether each of a request's Host headers names this machine."""
        return all(map(self._includes, hosts))

    def _includes(self, host: str) -> bool:
        name = host.lower()
        found = _PORT.search(name)
        name = name[: found.start()] if found else name
        if name in self._names:
            return True
        try:
            return ip_address(name.removeprefix("[").removesuffix("]")).is_loopback
        except ValueError:
            return False
