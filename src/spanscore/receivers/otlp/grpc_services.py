"""The services of OTLP over gRPC: their calls are read, taken and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import grpc

from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.receivers.intake.admission import Admission, Unavailable
from spanscore.receivers.intake.arriving import ArrivalLimit, ArrivingBody
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.door import Door, what_is_wrong
from spanscore.receivers.intake.inflate import TooLarge
from spanscore.receivers.intake.intake import Intake
from spanscore.receivers.intake.limited_work import SharedTimeLimit
from spanscore.receivers.intake.requests import Busy, Sender, Wrong
from spanscore.receivers.otlp import _responses as responses
from spanscore.receivers.sockets.bearer import BearerTokens

_DOOR: Final = "OTLP over gRPC"
_PACKAGE: Final = "opentelemetry.proto.collector"
_TRACES: Final = f"{_PACKAGE}.trace.v1.TraceService"
_OTHERS: Final[Mapping[OtherSignal, str]] = {
    "metrics": f"{_PACKAGE}.metrics.v1.MetricsService",
    "logs": f"{_PACKAGE}.logs.v1.LogsService",
}

_DETAILS: Final = "grpc-status-details-bin"
_RETRY_INFO: Final = "google.rpc.retryinfo-bin"

_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class GrpcServices(grpc.GenericRpcHandler):
    """The services of OTLP.

    To gRPC they take a stream of requests, of which only the first is read: so a request can be refused before it is
    read.
    """

    def __init__(
        self, intake: Intake, admission: Admission, tokens: BearerTokens | None, max_size: int, body_s: float
    ) -> None:
        self._door = Door(_DOOR, intake, admission)
        self._tokens = tokens
        self._max_size = max_size
        self._limit = SharedTimeLimit(body_s)
        self._under_way = 0
        self.have_been_called = False
        self.is_closed = False
        """Whether every call is refused from now on."""
        self._progress = asyncio.Event()
        services: dict[str, OtherSignal | None] = {_TRACES: None}
        services |= {_OTHERS[signal]: signal for signal in intake.others}
        self.names = tuple(services)
        self._handlers: dict[str, _Handler] = {
            f"/{service}/Export": grpc.stream_unary_rpc_method_handler(self._handler(signal))
            for service, signal in services.items()
        }
        unserved = self._refusing(Wrong.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED, responses.ONLY_WITH_AN_EXPORTER)
        self._unserved = {f"/{_OTHERS[signal]}/Export": unserved for signal in _OTHERS.keys() - set(intake.others)}
        code = grpc.StatusCode.UNAUTHENTICATED
        self._not_allowed = self._refusing(Wrong.UNAUTHENTICATED, code, responses.NOT_ALLOWED)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> _Handler | None:
        """Return the handler of a request by its method, and by the sender's token."""
        handler = self._handlers.get(handler_call_details.method)
        if handler is None or self._tokens is None:
            return handler or self._unserved.get(handler_call_details.method)
        sent = [value for name, value in handler_call_details.invocation_metadata if name == "authorization"]
        return handler if self._tokens.accept(sent) else self._not_allowed

    async def answered(self) -> None:
        """Wait until no request is under way."""
        while self._under_way:
            self._progress.clear()
            await self._progress.wait()

    def _handler(self, signal: OtherSignal | None) -> Callable[[Any, _Context], Awaitable[bytes]]:
        async def export(_requests: Any, context: _Context) -> bytes:
            self._under_way += 1
            self.have_been_called = True
            context.add_done_callback(self._done)  # type: ignore[arg-type]  # typed as a class that nothing is
            try:
                if self.is_closed:
                    raise self._door.admission.refusal(Busy.SHUTTING_DOWN)
                with self._door.admission.request() as held:
                    # The body is in no variable: gRPC's library keeps those after `abort`, until garbage is collected.
                    answer = await self._door.hand_in(
                        signal, await self._read(context, held), Encoding.PROTOBUF, partial(_sender, context)
                    )
                return responses.success(answer, Encoding.PROTOBUF) if answer.message else b""
            except MalformedRequest as error:
                self._door.refused(what_is_wrong(error), _sender(context))
                status = (grpc.StatusCode.INVALID_ARGUMENT, str(error))
                details = {_DETAILS: responses.status(responses.INVALID_ARGUMENT, str(error), violation=str(error))}
            except Unavailable as error:
                self._door.refused(error.why, _sender(context))
                status = (grpc.StatusCode.UNAVAILABLE, str(error))
                delay_s = error.retry_after_s
                details = {
                    _DETAILS: responses.status(responses.UNAVAILABLE, str(error), retry_after_s=delay_s),
                    _RETRY_INFO: responses.retry_info(delay_s),
                }
            except TooLarge as error:
                self._door.refused(what_is_wrong(error), _sender(context))
                status = (grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
                details = {}  # without RetryInfo it is not sent again
            except TimeoutError:
                self._door.refused(Wrong.TIMED_OUT, _sender(context))
                status = (grpc.StatusCode.DEADLINE_EXCEEDED, "the request did not come in time")
                details = {}
            return await context.abort(*status, tuple(details.items()))

        return export

    async def _read(self, context: _Context, held: ArrivingBody) -> bytes:
        # As many messages of the largest size are read at once as fit into half of all memory.
        with (
            await self._door.admission.unsized.set_aside(self._max_size) as aside,
            ArrivalLimit(self._limit, body=aside),
        ):
            body = await context.read()
        if not isinstance(body, bytes):
            # Or gRPC refused the message, too large or damaged, and has answered already.
            message = "the request has no message"
            raise MalformedRequest(message)
        await held.add(len(body))
        return body

    def _refusing(self, why: Wrong, code: grpc.StatusCode, told: str) -> _Handler:
        async def refuse(_requests: Any, context: _Context) -> bytes:
            self._door.refused(why, _sender(context))
            return await context.abort(code, told)

        return grpc.stream_unary_rpc_method_handler(refuse)

    def _done(self, *_: Any) -> None:
        self._under_way -= 1
        self._progress.set()


def _sender(context: _Context) -> Sender:
    """Return the client of a call, which gRPC names like `ipv4:127.0.0.1:4317` or `ipv6:%5B::1%5D:4317`."""
    address = unquote(context.peer()).removeprefix("ipv4:").removeprefix("ipv6:")
    agents = [value for name, value in context.invocation_metadata() or () if name == "user-agent"]
    return Sender(address, str(agents[0]) if agents else "")
