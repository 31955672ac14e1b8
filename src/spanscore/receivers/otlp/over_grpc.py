"""Receives OTLP over gRPC."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2

from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.intake import Intake
from spanscore.receivers.otlp.grpc_services import GrpcServices
from spanscore.receivers.sockets.bearer import BearerTokens
from spanscore.receivers.sockets.grpc_tls import credentials
from spanscore.receivers.sockets.listening import Address, why_no_connection, why_not
from spanscore.receivers.sockets.tls import Tls

_FAREWELL_S: Final = 0.05
_NEVER_S: Final = 86_400.0
_LOOK_S: Final = 2.0
"""Between two connections to ourselves: each takes gRPC's library 2 ms of the CPU."""
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # else a second process on the port would silently take half of the requests
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_metadata_size", 64 * 1024),
    ("grpc.absolute_max_metadata_size", 64 * 1024),
    ("grpc.max_allowed_incoming_connections", 1_000),
    # gRPC closes no idle connection to make room for a new one. So a client is disconnected soon that does not answer
    # the settings of HTTP/2, as each client of gRPC does. gRPC has no limit for the time until the first call.
    ("grpc.server_handshake_timeout_ms", 3_000),
    ("grpc.http2.settings_timeout", 3_000),
    # A client that watches the health is never idle. Clients print nothing about this end, unlike that for idleness.
    ("grpc.max_connection_age_ms", 300_000),
    ("grpc.max_connection_age_grace_ms", 30_000),
    # Detect clients that are gone without closing their connection.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits:
    """The time limits for clients, in seconds."""

    body_s: float = 30.0
    """To send a message."""
    idle_s: float = 75.0
    """Between two calls. SDKs send metrics every 60 s; a stock client prints a line about each end for idleness."""


class OtlpGrpc:
    """Receives OTLP over gRPC, and answers health checks.

    Made in the event loop that serves it. The largest message is so many bytes after decompression. Without bearer
    tokens everybody may send.
    """

    def __init__(
        self,
        intake: Intake,
        admission: Admission,
        *,
        max_request_size: int,
        tokens: BearerTokens | None = None,
        limits: GrpcLimits | None = None,
    ) -> None:
        limits = limits or GrpcLimits()
        if max_request_size < 1:  # to gRPC a negative number means that there is no limit
            message = f"the largest request must have at least 1 byte, not {max_request_size!r}"
            raise ValueError(message)
        self._services = GrpcServices(intake, admission, tokens, max_request_size, limits.body_s)
        self._health = health.aio.HealthServicer()
        options = (
            ("grpc.max_receive_message_length", max_request_size),
            ("grpc.max_connection_idle_ms", round(limits.idle_s * 1000)),
        )
        self._server = grpc.aio.server(options=[*_OPTIONS, *options])
        self._server.add_generic_rpc_handlers((self._services, _health_checks(self._health)))
        self._listening: list[Address] = []
        self._trouble: str | None = None
        self._looks_at = -math.inf
        self._is_ready = True
        self._is_started = False
        self._is_stopped = False

    def listen(self, addresses: Sequence[Address], key: str, tls: Tls | None = None) -> list[Address]:
        """Bind the addresses and return them, with the port that the system chose where it is 0.

        Raises:
            ConfigError: a file of TLS cannot be used.
            ListenError: an address cannot be bound; `stop` releases the others.
        """
        listening: list[Address] = []
        for address in addresses:
            # The addresses of one host name share a port.
            wanted = address._replace(port=address.port or (listening[-1].port if listening else 0))
            try:
                if tls is None:
                    port = self._server.add_insecure_port(str(wanted))
                else:
                    port = self._server.add_secure_port(str(wanted), credentials(tls))
            except RuntimeError as error:
                raise why_not(wanted, key) from error
            listening.append(address._replace(port=port))
            self._listening.append(listening[-1])
        return listening

    async def start(self) -> None:
        """Accept requests."""
        self._is_started = True
        await self.tell_health(is_ready=self._is_ready)
        await self._server.start()

    async def trouble(self) -> str | None:
        """Return the reason if an address accepts no connections; None if all do. It connects now and then to see."""
        now = asyncio.get_running_loop().time()
        if self._trouble is not None or now >= self._looks_at:
            self._looks_at = now + _LOOK_S
            found = [await why_no_connection(address) for address in self._listening]
            self._trouble = next(filter(None, found), None)
        return self._trouble

    async def tell_health(self, *, is_ready: bool) -> None:
        """Answer health checks from now on, or from the start on, like this."""
        self._is_ready = is_ready
        status = health_pb2.HealthCheckResponse.SERVING if is_ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", *self._services.names):
            await self._health.set(service, status)

    async def stop(self, grace_s: float) -> None:
        """Refuse connections at once, let the requests under way finish, and close. May be called twice."""
        if self._is_stopped:
            return
        if not self._is_started:
            if not self._listening:
                return
            await self.start()  # gRPC releases the ports of a started server only
        self._is_stopped = self._services.is_closed = True
        await self._health.enter_graceful_shutdown()
        if self._services.have_been_called and grace_s:
            # From then on gRPC itself answers, without a retry delay.
            await asyncio.sleep(_FAREWELL_S)
        # gRPC reads memory that it has freed if the time of one call of `stop` runs out while another call ends. So the
        # time of the first call never runs out, and the second call ends both.
        stopping = asyncio.ensure_future(self._server.stop(_NEVER_S))
        # Clients may watch the health for ever, so only requests are waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._services.answered()
        await self._server.stop(None)
        await stopping


def _health_checks(servicer: health.aio.HealthServicer) -> grpc.GenericRpcHandler:
    # That of the library also registers List, which its own servicer does not have.
    read = health_pb2.HealthCheckRequest.FromString
    write = health_pb2.HealthCheckResponse.SerializeToString
    return grpc.method_handlers_generic_handler(
        health.SERVICE_NAME,
        {
            "Check": grpc.unary_unary_rpc_method_handler(servicer.Check, read, write),
            "Watch": grpc.unary_stream_rpc_method_handler(servicer.Watch, read, write),
        },
    )
