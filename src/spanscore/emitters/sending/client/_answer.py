"""The possible outcomes of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from spanscore.messages.printable import printable

Signal: TypeAlias = Literal["traces", "metrics", "logs"]

MAX_RESPONSE_SIZE: Final = 4 * 1024 * 1024
"""OTLP asks clients for a limit: a receiver must not be able to fill our memory."""

_MESSAGE_WIDTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The receiver has the request."""

    rejected: int = 0
    """Spans, data points or log records that it threw away nevertheless. They must not be sent again."""
    message: str = ""
    """Why, or a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    """The receiver could not take the request now, or was not reached."""

    reason: str
    """Such as `http_503`, `grpc_unavailable`, `unreachable` or `timeout`."""
    after_s: float | None = None
    """The wait that the receiver asks for, in seconds."""
    problem: str = field(default="", compare=False)
    """The reason in the words of the system or of the receiver, for people."""
    untrusted: bool = field(default=False, compare=False)
    """The receiver's certificate was refused. A service retries, as it may be replaced; a user should see it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The request must not be sent again."""

    reason: str
    """Such as `http_400` or `grpc_invalid_argument`."""
    message: str = ""
    about_content: bool = False
    """The request's content or size is wrong: a part of it may be accepted."""
    by_receiver: bool = True
    """Whether the receiver refused it; False if it was not sent for another reason."""


Answer: TypeAlias = Accepted | TryAgain | Refused


class Client(Protocol):
    """A connection to one receiver. Belongs to one thread, except for `abort`."""

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send an encoded Export...ServiceRequest and wait for the answer, at most for the client's timeout."""

    def abort(self) -> None:
        """End the request that is being sent, and all later ones, with `TryAgain`. May be called from any thread."""

    def close(self) -> None:
        """Free everything."""


def accepted(response: bytes) -> Accepted:
    """Read the response to a successful request. One that cannot be read changes nothing: the request was taken.

    The responses of all signals have the same fields under other names.
    """
    try:
        partial = ExportTraceServiceResponse.FromString(response).partial_success
    except DecodeError:
        return Accepted()
    return Accepted(rejected=max(0, partial.rejected_spans), message=shown(partial.error_message))


def shown(message: str) -> str:
    """Return a receiver's words as one line, not too long."""
    return printable(message, _MESSAGE_WIDTH)
