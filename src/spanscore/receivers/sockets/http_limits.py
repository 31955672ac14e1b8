"""Limits for the clients of an HTTP server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """The time limits for a client in seconds, and the most clients."""

    head_s: float = 10.0
    """For the request line and the headers."""
    body_s: float = 30.0
    """For the body."""
    answer_s: float = 30.0
    """To read the answer."""
    idle_s: float = 60.0
    """Between two requests."""
    patience_s: float = 1.0
    """To send a request, where others wait for the connection."""
    connections: int = 1_000
    connections_per_peer: int = 100
    """From one IP address other than this machine's own."""
