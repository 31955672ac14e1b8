"""Sends OTLP requests that are already encoded, over HTTP or gRPC, and says what the receiver made of them."""

from spanscore.otlp_client._answer import Accepted, Answer, Client, Refused, Signal, TryAgain
from spanscore.otlp_client._connect import Protocol, connect
from spanscore.otlp_client._retries import Delivery, Pause, Retries
from spanscore.otlp_client._tls import TrustFiles

__all__ = [
    "Accepted",
    "Answer",
    "Client",
    "Delivery",
    "Pause",
    "Protocol",
    "Refused",
    "Retries",
    "Signal",
    "TrustFiles",
    "TryAgain",
    "connect",
]
