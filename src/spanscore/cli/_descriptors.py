"""The limit on file descriptors of this process."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Final

MOST: Final = 4_096
"""Twice as many as connections over HTTP and gRPC: those that are in their TLS handshake are not counted."""


def allow_descriptors() -> None:
    """Raise the soft limit, as far as the hard one allows: often it is 1,024, less than the connections that are taken.

    Without descriptors, no client is let in, and nothing can be stored.
    """
    if sys.platform != "win32":
        with suppress(ImportError, OSError, ValueError):
            import resource  # noqa: PLC0415 - not every system has it

            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
            if soft != resource.RLIM_INFINITY and soft < most:
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
