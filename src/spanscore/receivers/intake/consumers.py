"""The consumers behind an intake: they take spans, store requests, and send received requests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from spanscore.model import Span
from spanscore.otlp.encoding import Encoding

OtherSignal: TypeAlias = Literal["metrics", "logs"]

Take: TypeAlias = Callable[[Sequence[Span], Sequence[int]], None]
"""Takes the spans of one request, with stand-ins for refused ones, and the bytes of memory of each. Takes all, or
raises."""


class Onward(Protocol):
    """Sends received requests on unchanged. Takes a request as a whole or raises; does not wait."""

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:
        """Return whether a request of that many bytes, with these spans, could be taken now."""

    def is_waiting(self) -> bool:
        """Return whether requests wait to be sent: there is more room when they are."""

    def take(self, request: bytes) -> None:
        """Take an ExportTraceServiceRequest in protobuf: the spans that were accepted of one request."""

    def take_other(self, signal: OtherSignal, request: bytes) -> None:
        """Take a request with metrics or logs, in protobuf."""


class RequestStore(Protocol):
    """Stores requests until their spans are scored, so that they survive a restart."""

    def put(self, body: bytes, encoding: Encoding) -> Take:
        """Store a request unchanged, and return the function that takes its spans.

        Raises Unavailable if it cannot be written now, TooLarge if it never can.
        """

    async def stored(self) -> None:
        """Return when all that was put before is safe enough to be acknowledged; raises Unavailable."""
