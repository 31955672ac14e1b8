"""Sends encoded OTLP requests over HTTP or gRPC, and returns the receiver's answer."""

from spanscore.emitters.sending.client._answer import Accepted, Answer, Client, Refused, Signal, TryAgain
from spanscore.emitters.sending.client._client_tls import TrustFiles
from spanscore.emitters.sending.client._connect import TIMEOUT_S, Protocol, connect
from spanscore.emitters.sending.client._retries import Delivery, Retries

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
