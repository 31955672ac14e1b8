"""OTLP over gRPC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final, cast
from urllib.parse import SplitResult

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # it lacks the marker py.typed
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # as above
from grpc import StatusCode

from spanscore.emitters.sending.client._answer import (
    MAX_RESPONSE_SIZE,
    Answer,
    Refused,
    Signal,
    TryAgain,
    accepted,
    shown,
)
from spanscore.emitters.sending.client._client_tls import TrustFiles, content_of, tls_context
from spanscore.sdk.identity import scope_version

_SERVICES: Final[Mapping[Signal, str]] = {"traces": "trace", "metrics": "metrics", "logs": "logs"}
_PORTS: Final = {"http": 80, "https": 443}
_DETAILS: Final = "grpc-status-details-bin"

_LAST_ERROR: Final = "last error: "
# gRPC reports a refused certificate only in its text; with other words, the request is simply retried.
_UNTRUSTED: Final = re.compile(r"(?P<by>CERTIFICATE_VERIFY_FAILED)(?:: (?P<why>[^:]+))?|Hostname Verification Check")

# Likewise for a port at which another protocol is served.
_NO_TLS: Final = "WRONG_VERSION_NUMBER"
_NO_GRPC: Final = re.compile("Failed parsing HTTP/2|missing selected ALPN")

_RETRYABLE: Final = frozenset(
    {
        StatusCode.CANCELLED,
        StatusCode.DEADLINE_EXCEEDED,
        StatusCode.ABORTED,
        StatusCode.OUT_OF_RANGE,
        StatusCode.UNAVAILABLE,
        StatusCode.DATA_LOSS,
    }
)

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_RESPONSE_SIZE),
    ("grpc.enable_retries", 0),
    # A channel that could not connect waits by itself as well, by default up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Else a new channel may get the connection of another client.
    ("grpc.use_local_subchannel_pool", 1),
)


class GrpcClient:
    """Sends over gRPC."""

    def __init__(
        self, url: SplitResult, headers: Mapping[str, str], timeout_s: float, files: TrustFiles | None = None
    ) -> None:
        self._target: Final = url.netloc if url.port else f"{url.netloc}:{_PORTS[url.scheme]}"
        self._tls: Final = None if files is None else files.watched(partial(_credentials, files))
        self._metadata: Final = tuple(headers.items())
        self._timeout_s: Final = timeout_s
        self._is_closed = False
        self._open()

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send a request and wait for the answer."""
        if self._tls is not None and self._tls.look_again():
            self._reopen()
        try:
            response = self._exports[signal](body, timeout=self._timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            call = cast("grpc.Call", error)
            if call.code() is StatusCode.DEADLINE_EXCEEDED:  # the other end may be gone, and the connection not know it
                self._reopen()
            return _answer(call)
        except ValueError:  # the channel is closed
            return TryAgain(reason="aborted")
        return accepted(response)

    def close(self) -> None:
        """Close the connection, which ends the request that is being sent, and all later ones."""
        self._is_closed = True
        self._channel.close()

    abort = close

    def _reopen(self) -> None:
        self._channel.close()
        self._open()

    def _open(self) -> None:
        options = (*_OPTIONS, ("grpc.primary_user_agent", f"spanscore/{scope_version()}"))
        self._channel = channel = (
            grpc.insecure_channel(self._target, options)
            if self._tls is None
            else grpc.secure_channel(self._target, self._tls.content, options)
        )
        self._exports: Mapping[Signal, grpc.UnaryUnaryMultiCallable[bytes, bytes]] = {
            signal: channel.unary_unary(f"/opentelemetry.proto.collector.{name}.v1.{name.title()}Service/Export")
            for signal, name in _SERVICES.items()
        }
        if self._is_closed:  # meanwhile, by another thread
            channel.close()


def _answer(error: grpc.Call) -> Answer:
    code = error.code()
    reason = f"grpc_{code.name.lower()}"
    asked_s = _asked_s(error)
    if code in _RETRYABLE or (code is StatusCode.RESOURCE_EXHAUSTED and asked_s is not None):
        details = error.details() or ""
        if _NO_TLS in details or _NO_GRPC.search(details):
            return TryAgain(reason="tls" if _NO_TLS in details else "not_grpc")
        untrusted = _UNTRUSTED.search(details)
        return TryAgain(
            reason=reason,
            after_s=asked_s or None,
            problem=_refusal(untrusted) if untrusted else shown(details.rpartition(_LAST_ERROR)[2]),
            untrusted=untrusted is not None,
        )
    message = shown(error.details() or "")
    return Refused(reason=reason, message=message, about_content=code is StatusCode.INVALID_ARGUMENT)


def _refusal(found: re.Match[str]) -> str:
    if found["by"] is None:
        return "certificate is not valid for this host"
    return found["why"] or "certificate verify failed"


def _credentials(files: TrustFiles) -> grpc.ChannelCredentials:
    tls_context(files)  # gRPC itself only reports that it cannot connect
    roots, key, chain = (
        None if path is None else content_of(path) for path in (files.ca_file, files.key_file, files.cert_file)
    )
    return grpc.ssl_channel_credentials(roots, key, chain)


def _asked_s(error: grpc.Call) -> float | None:
    """Return the receiver's retry delay in seconds, which may be 0; None if it does not ask for a retry."""
    status = next((value for key, value in error.trailing_metadata() or () if key == _DETAILS), b"")
    with suppress(DecodeError):
        for detail in Status.FromString(status).details:
            retry_info = RetryInfo()
            if detail.Unpack(retry_info):  # else it is something else
                delay_s: float = retry_info.retry_delay.seconds + retry_info.retry_delay.nanos / 1e9
                return max(0.0, delay_s)
    return None
