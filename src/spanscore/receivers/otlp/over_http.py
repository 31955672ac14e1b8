"""Receives OTLP over HTTP/1.1, as protobuf and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from aiohttp import HttpVersion11, web

from spanscore.intake.admission import Admission, Held, Unavailable
from spanscore.intake.door import Door, what_is_wrong
from spanscore.intake.inflate import BadEncoding, Body, GzipBody, PlainBody, TooLarge
from spanscore.intake.intake import Intake, OtherSignal
from spanscore.intake.requests import Wrong
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.receivers.otlp import HttpServer as HttpSettings
from spanscore.receivers.otlp import _responses as responses
from spanscore.receivers.otlp import listed
from spanscore.sockets.bearer import BearerTokens
from spanscore.sockets.http_connection import HttpLimits
from spanscore.sockets.http_server import HttpServer
from spanscore.sockets.listening import Address
from spanscore.sockets.tls import Tls

_DOOR: Final = "OTLP over HTTP"
_OTHER_PATHS: Final[Mapping[str, OtherSignal]] = {"/v1/metrics": "metrics", "/v1/logs": "logs"}

_ENCODINGS: Final = {"application/x-protobuf": Encoding.PROTOBUF, "application/json": Encoding.JSON}
_CONTENT_TYPES: Final = {encoding: name for name, encoding in _ENCODINGS.items()}
_BODIES: Final[Mapping[str, type[PlainBody | GzipBody]]] = {"": PlainBody, "identity": PlainBody, "gzip": GzipBody}

_ALLOWED_HEADERS: Final = "Authorization, Content-Encoding, Content-Type"
_PREFLIGHT_S: Final = "7200"
_ACCEPTED: Final = {"Accept-Encoding": "gzip, identity"}
_SERVER: Final = {"Server": "spanscore"}

_FOREIGN_PAGE: Final = (
    "for a web page the Host must be localhost, an address of loopback or the one configured in "
    "receivers.otlp.protocols.http.endpoint, or its Origin one of receivers.otlp.protocols.http.cors.allowed_origins"
)
_CUT_OFF: Final = "the body is not what its headers say"

_OK: Final = 200
_NO_CONTENT: Final = 204
_BAD_REQUEST: Final = 400
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_METHOD_NOT_ALLOWED: Final = 405
_TOO_LARGE: Final = 413
_UNSUPPORTED: Final = 415
_EXPECTATION_FAILED: Final = 417
_MISDIRECTED: Final = 421
_UNAVAILABLE: Final = 503


class OtlpHttp:
    """Receives OTLP over HTTP/1.1.

    Made in the event loop that serves it.

    Args:
        intake: takes what is received.
        admission: says whether there is room for it.
        settings: how it is served.
        tokens: the bearer tokens of those who may send; None lets everybody send.
        limits: what clients may do.
    """

    def __init__(
        self,
        intake: Intake,
        admission: Admission,
        settings: HttpSettings,
        tokens: BearerTokens | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        self._door = Door(_DOOR, intake, admission)
        self._max_size = settings.max_request_body_size
        self._traces_path = settings.traces_url_path
        self._allowed_origins = frozenset(settings.cors.allowed_origins)
        self._tokens = tokens
        self._too_large = f"the request is larger than {self._max_size} bytes"
        # By these names of this machine other web pages on it may send.
        names = [endpoint.host for endpoint in listed(settings.endpoint)]
        self._server = HttpServer(self._answer, limits, names)
        others = {path: signal for path, signal in _OTHER_PATHS.items() if signal in intake.others}
        self._signals: dict[str, OtherSignal | None] = {**others, self._traces_path: None}

    def listen(self, addresses: Sequence[Address], key: str, tls: Tls | None = None) -> list[Address]:
        """Bind the addresses and return them, with the port that the system chose where it is 0.

        Raises:
            ConfigError: a file of TLS cannot be used.
            ListenError: an address cannot be bound; then none is.
        """
        return self._server.listen(addresses, key, None if tls is None else tls.reloading_context())

    async def start(self) -> None:
        """Accept connections."""
        await self._server.start()

    async def trouble(self) -> str | None:
        """Return why not everybody can connect; None where all is well."""
        return self._server.trouble()

    async def refuse(self, grace_s: float) -> None:
        """Refuse connections at once, and let the requests under way finish. Those connected can hear why."""
        await self._server.refuse(grace_s)

    async def stop(self, grace_s: float) -> None:
        """Refuse connections at once, let the requests under way finish, and close."""
        await self._server.stop(grace_s)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        encoding = _ENCODINGS.get(_content_type(request))
        origin = request.headers.get("Origin")
        try:
            answer = await self._take(request, encoding)
        except _Refused as refused:
            if refused.wrong is not None:
                self._door.refused(refused.wrong)
            answer = refused.response(encoding)
        if origin is not None and origin in self._allowed_origins:
            answer.headers.update({"Access-Control-Allow-Origin": origin, "Vary": "Origin"})
        return answer

    async def _take(self, request: web.BaseRequest, encoding: Encoding | None) -> web.Response:
        if request.path not in self._signals:
            message = f"there is nothing here; traces go to {self._traces_path}"
            raise _Refused(_NOT_FOUND, responses.NOT_FOUND, message, wrong=Wrong.NOT_FOUND)
        signal = self._signals[request.path]
        if request.method != "POST":
            return self._other_method(request)
        if self._tokens is not None and not self._tokens.accept(request.headers.getall("Authorization", [])):
            headers = {"WWW-Authenticate": "Bearer"}
            raise _Refused(
                _UNAUTHORIZED, responses.UNAUTHENTICATED, responses.NOT_ALLOWED, headers, wrong=Wrong.UNAUTHENTICATED
            )
        if self._is_from_a_foreign_page(request):
            raise _Refused(_MISDIRECTED, responses.PERMISSION_DENIED, _FOREIGN_PAGE, wrong=Wrong.MISDIRECTED)
        if encoding is None:
            message = f"the Content-Type must be {' or '.join(_ENCODINGS)}"
            raise _Refused.unsupported(message)
        try:
            async with self._door.admission.request() as held:
                async with held.reading():  # the connection limits the time
                    body = await self._body(request, held)
                answer = await self._door.hand_in(held, signal, body, encoding)
        except MalformedRequest as error:
            raise _Refused.malformed(str(error), what_is_wrong(error)) from error
        except TooLarge as error:
            raise _Refused.too_large(str(error)) from error
        except Unavailable as unavailable:
            self._door.refused(unavailable.why)
            raise _Refused.for_now(unavailable) from unavailable
        return _response(_OK, responses.success(answer, encoding), encoding)

    def _is_from_a_foreign_page(self, request: web.BaseRequest) -> bool:
        """Return whether a web page sends that gave its own name our address: its browser does not ask us first.

        Only browsers say an origin. A token they do not have, and where others can send too there must be one.
        """
        origin = request.headers.get("Origin")
        if origin is None or origin in self._allowed_origins or self._tokens is not None:
            return False
        return self._server.is_misled(request)

    def _other_method(self, request: web.BaseRequest) -> web.Response:
        origin = request.headers.get("Origin")
        if request.method == "OPTIONS" and origin in self._allowed_origins:
            headers = {
                "Access-Control-Allow-Methods": "POST",
                "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
                "Access-Control-Max-Age": _PREFLIGHT_S,
            }
            return web.Response(status=_NO_CONTENT, headers=_SERVER | headers)
        message = f"the method must be POST, not {request.method}"
        headers = {"Allow": "POST"}
        raise _Refused(_METHOD_NOT_ALLOWED, responses.UNIMPLEMENTED, message, headers, wrong=Wrong.METHOD_NOT_ALLOWED)

    async def _body(self, request: web.BaseRequest, held: Held) -> bytes:
        if (request.content_length or 0) > self._max_size:
            raise _Refused.too_large(self._too_large)
        content_encoding = request.headers.get("Content-Encoding", "").strip().lower()
        if content_encoding not in _BODIES:
            message = "the Content-Encoding must be gzip or identity"
            raise _Refused.unsupported(message, _ACCEPTED)
        await _expected(request)
        body: Body = _BODIES[content_encoding](self._max_size)
        try:
            while chunk := await request.content.readany():
                for grown in body.feed(chunk):
                    await held.add(grown)
            return body.finish()
        except TooLarge:
            raise _Refused.too_large(self._too_large) from None
        except BadEncoding as error:
            raise _Refused.malformed(str(error)) from error
        except web.RequestPayloadError as error:
            raise _Refused.malformed(_CUT_OFF) from error


@dataclass(eq=False)
class _Refused(Exception):  # noqa: N818 - what the sender is told, and not an error of ours
    """Ends a request with an error."""

    status: int
    code: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    violation: str | None = None
    retry_after_s: float | None = None
    wrong: Wrong | None = None
    """What it is counted as; None where it is counted already."""

    @classmethod
    def malformed(cls, message: str, wrong: Wrong = Wrong.MALFORMED) -> _Refused:
        """Return what to tell where the request cannot be read: it is of no use to send it again."""
        return cls(_BAD_REQUEST, responses.INVALID_ARGUMENT, message, violation=message, wrong=wrong)

    @classmethod
    def too_large(cls, message: str) -> _Refused:
        """Return what to tell where the request is larger than it may be."""
        return cls(_TOO_LARGE, responses.RESOURCE_EXHAUSTED, message, wrong=Wrong.TOO_LARGE)

    @classmethod
    def unsupported(cls, message: str, headers: Mapping[str, str] | None = None) -> _Refused:
        """Return what to tell where the request is in a form that we do not know."""
        return cls(_UNSUPPORTED, responses.INVALID_ARGUMENT, message, headers or {}, wrong=Wrong.UNSUPPORTED)

    @classmethod
    def for_now(cls, unavailable: Unavailable) -> _Refused:
        """Return what to tell where the request should be sent again later."""
        delay_s = unavailable.retry_after_s
        headers = {"Retry-After": str(math.ceil(delay_s))}
        return cls(_UNAVAILABLE, responses.UNAVAILABLE, str(unavailable), headers, retry_after_s=delay_s)

    def response(self, encoding: Encoding | None) -> web.Response:
        """Return the answer, in the encoding of the request; JSON where that is not known."""
        encoding = encoding or Encoding.JSON
        body = responses.status(
            self.code, self.message, encoding, violation=self.violation, retry_after_s=self.retry_after_s
        )
        answer = _response(self.status, body, encoding, self.headers)
        if self.status == _UNAVAILABLE:
            answer.force_close()
        return answer


def _response(status: int, body: bytes, encoding: Encoding, headers: Mapping[str, str] | None = None) -> web.Response:
    content_type = {"Content-Type": _CONTENT_TYPES[encoding]}
    return web.Response(status=status, body=body, headers=_SERVER | content_type | dict(headers or {}))


def _content_type(request: web.BaseRequest) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def _expected(request: web.BaseRequest) -> None:
    """Tell a client that waits for it that it may send the body."""
    expectation = request.headers.get("Expect", "").lower()
    if expectation == "100-continue" and request.version == HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # aiohttp takes what was sent for the start of the answer
    elif expectation and expectation != "100-continue":
        message = "the only expectation met is 100-continue"
        raise _Refused(_EXPECTATION_FAILED, responses.INVALID_ARGUMENT, message, wrong=Wrong.UNSUPPORTED)
