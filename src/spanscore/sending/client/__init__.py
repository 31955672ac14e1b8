"""Sends OTLP requests that are already encoded, over HTTP or gRPC, and says what the receiver made of them."""

from spanscore.sending.client._answer import Accepted, Answer, Client, Refused, Signal, TryAgain
from spanscore.sending.client._connect import TIMEOUT_S, Protocol, connect
from spanscore.sending.client._retries import Delivery, Retries
from spanscore.sending.client._tls import TrustFiles

__all__ = [
    "TIMEOUT_S",
    "Accepted",
    "Answer",
    "Client",
    "Delivery",
    "Protocol",
    "Refused",
    "Retries",
    "Signal",
    "TrustFiles",
    "TryAgain",
    "connect",
]
