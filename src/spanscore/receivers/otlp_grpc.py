"""Receives OTLP over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2

from spanscore.receivers import _responses as responses
from spanscore.receivers._admission import Admission, Unavailable
from spanscore.receivers._bearer import BearerTokens
from spanscore.receivers._intake import Encoding, Intake, OtherSignal
from spanscore.receivers._otlp import MalformedRequest
from spanscore.receivers._tls import Tls
from spanscore.sockets.listening import Address, why_not

_PACKAGE: Final = "opentelemetry.proto.collector"
_TRACES: Final = f"{_PACKAGE}.trace.v1.TraceService"
_OTHERS: Final[Mapping[OtherSignal, str]] = {
    "metrics": f"{_PACKAGE}.metrics.v1.MetricsService",
    "logs": f"{_PACKAGE}.logs.v1.LogsService",
}

_DETAILS: Final = "grpc-status-details-bin"
_BODY_S: Final = 30.0
_OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # else a second process on the port would silently take half of the requests
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_metadata_size", 64 * 1024),
    ("grpc.absolute_max_metadata_size", 64 * 1024),
    ("grpc.max_allowed_incoming_connections", 1_000),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 60_000),
    # Find out that a client is gone, of whose connection nobody hears anything any more.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"

_log = logging.getLogger(__name__)


class OtlpGrpc:
    """Receives OTLP over gRPC, and answers health checks.

    Made in the event loop that serves it.

    Args:
        intake: takes what is received.
        admission: says whether there is room for it.
        max_request_size: the largest message, in bytes, after decompression.
        tokens: the bearer tokens of those who may send; None lets everybody send.
        body_s: how long a client may take to send a message.
    """

    def __init__(
        self,
        intake: Intake,
        admission: Admission,
        *,
        max_request_size: int,
        tokens: BearerTokens | None = None,
        body_s: float = _BODY_S,
    ) -> None:
        if max_request_size < 1:  # to gRPC a negative number means that there is no limit
            message = f"the largest request must have at least 1 byte, not {max_request_size!r}"
            raise ValueError(message)
        self._services = _Services(intake, admission, tokens, body_s)
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(options=[*_OPTIONS, ("grpc.max_receive_message_length", max_request_size)])
        self._server.add_generic_rpc_handlers((self._services, _health_checks(self._health)))
        self._is_listening = False
        self._is_started = False

    def listen(self, addresses: Sequence[Address], key: str, tls: Tls | None = None) -> list[Address]:
        """Bind the addresses and return them, with the port that the system chose where it is 0.

        Raises:
            ConfigError: a file of TLS cannot be used.
            ListenError: an address cannot be bound; `stop` lets go of the others.
        """
        credentials = None if tls is None else tls.credentials()
        listening: list[Address] = []
        for address in addresses:
            # The addresses of one host name share a port.
            wanted = address._replace(port=address.port or (listening[-1].port if listening else 0))
            try:
                if credentials is None:
                    port = self._server.add_insecure_port(str(wanted))
                else:
                    port = self._server.add_secure_port(str(wanted), credentials)
            except RuntimeError as error:
                raise why_not(wanted, key) from error
            self._is_listening = True
            listening.append(address._replace(port=port))
        return listening

    async def start(self) -> None:
        """Accept requests."""
        self._is_started = True
        await self._server.start()
        for service in self._services.names:
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace_s: float) -> None:
        """Refuse connections at once, let the requests under way finish, and close."""
        if not self._is_started:
            if not self._is_listening:
                return
            await self.start()  # gRPC lets go of the ports of a server that was started, and of no other
        await self._health.enter_graceful_shutdown()
        stopping = asyncio.ensure_future(self._server.stop(grace_s))
        # Who watches the health does so for ever. What is waited for are the requests.
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._services.answered()
        await self._server.stop(None)
        await stopping


class _Services(grpc.GenericRpcHandler):
    """The services of OTLP.

    To gRPC they take a stream of requests, of which the first is read: so it is decided before a request is read
    whether it is wanted.
    """

    def __init__(self, intake: Intake, admission: Admission, tokens: BearerTokens | None, body_s: float) -> None:
        self._intake = intake
        self._admission = admission
        self._tokens = tokens
        self._body_s = body_s
        self._under_way = 0
        self._progress = asyncio.Event()
        services: dict[str, OtherSignal | None] = {_TRACES: None}
        if intake.takes_others:
            services |= {service: signal for signal, service in _OTHERS.items()}
        self.names = tuple(services)
        self._handlers: dict[str, _Handler] = {
            f"/{service}/Export": grpc.stream_unary_rpc_method_handler(self._handler(signal))
            for service, signal in services.items()
        }
        self._not_allowed: _Handler = grpc.stream_unary_rpc_method_handler(_not_allowed)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> _Handler | None:
        """Find the handler of a request by its method, and by who sent it."""
        handler = self._handlers.get(handler_call_details.method)
        if handler is None or self._tokens is None:
            return handler
        sent = dict(handler_call_details.invocation_metadata)
        return handler if self._tokens.accept(sent.get("authorization")) else self._not_allowed

    async def answered(self) -> None:
        """Wait until no request is under way."""
        while self._under_way:
            self._progress.clear()
            await self._progress.wait()

    def _handler(self, signal: OtherSignal | None) -> Callable[[Any, _Context], Awaitable[bytes]]:
        async def export(_requests: Any, context: _Context) -> bytes:
            self._under_way += 1
            context.add_done_callback(self._done)  # type: ignore[arg-type]  # typed as a class that nothing is
            try:
                async with self._admission.request() as held:
                    body = await self._read(context)
                    held.add(len(body))
                    return self._hand_over(signal, body)
            except MalformedRequest as error:
                status = (grpc.StatusCode.INVALID_ARGUMENT, str(error))
                details = responses.status(responses.INVALID_ARGUMENT, str(error), violation=str(error))
            except Unavailable as error:
                status = (grpc.StatusCode.UNAVAILABLE, str(error))
                details = responses.status(responses.UNAVAILABLE, str(error), retry_after_s=error.retry_after_s)
            except TimeoutError:
                status = (grpc.StatusCode.DEADLINE_EXCEEDED, "the request did not come in time")
                details = None
            return await _refuse(context, *status, details)

        return export

    async def _read(self, context: _Context) -> bytes:
        async with asyncio.timeout(self._body_s):
            body = await context.read()
        if not isinstance(body, bytes):
            # Or gRPC refused the message, too large or damaged, and has answered already.
            message = "the request has no message"
            raise MalformedRequest(message)
        return body

    def _hand_over(self, signal: OtherSignal | None, body: bytes) -> bytes:
        try:
            if signal is None:
                return responses.success(self._intake.traces(body, Encoding.PROTOBUF), Encoding.PROTOBUF)
            self._intake.other(signal, body, Encoding.PROTOBUF)
        except (MalformedRequest, Unavailable):
            raise
        except Exception as error:
            # Nothing was taken, so that the sender may try again: the next request may not meet the same fault.
            _log.exception("a request could not be taken")
            raise self._admission.refusal(responses.OUR_FAULT) from error
        return b""

    def _done(self, *_: Any) -> None:
        self._under_way -= 1
        self._progress.set()


async def _not_allowed(_requests: Any, context: _Context) -> bytes:
    return await _refuse(context, grpc.StatusCode.UNAUTHENTICATED, responses.NOT_ALLOWED, None)


async def _refuse(context: _Context, code: grpc.StatusCode, message: str, details: bytes | None) -> NoReturn:
    await context.abort(code, message, ((_DETAILS, details),) if details is not None else ())


def _health_checks(servicer: health.aio.HealthServicer) -> grpc.GenericRpcHandler:
    read = health_pb2.HealthCheckRequest.FromString
    write = health_pb2.HealthCheckResponse.SerializeToString
    return grpc.method_handlers_generic_handler(
        health.SERVICE_NAME,
        {
            "Check": grpc.unary_unary_rpc_method_handler(servicer.Check, read, write),
            "Watch": grpc.unary_stream_rpc_method_handler(servicer.Watch, read, write),
        },
    )
