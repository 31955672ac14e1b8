"""Receives OTLP over HTTP/1.1, as protobuf and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion11, web

from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.receivers.intake.admission import Admission, Unavailable
from spanscore.receivers.intake.arriving import ArrivalLimit, ArrivingBody
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.door import Door, what_is_wrong
from spanscore.receivers.intake.inflate import BadEncoding, GzipBody, PlainBody, TooLarge
from spanscore.receivers.intake.intake import ExportResponse, Intake
from spanscore.receivers.intake.limited_work import NO_LIMIT
from spanscore.receivers.intake.requests import Sender, Wrong
from spanscore.receivers.otlp import HttpServer as HttpSettings
from spanscore.receivers.otlp import _responses as responses
from spanscore.receivers.otlp import listed
from spanscore.receivers.sockets.bearer import BearerTokens
from spanscore.receivers.sockets.http_answers import ReadyAnswer
from spanscore.receivers.sockets.http_limits import HttpLimits
from spanscore.receivers.sockets.http_server import BaseHttpServer
from spanscore.receivers.sockets.listening import Address

_DOOR: Final = "OTLP over HTTP"
_OTHER_PATHS: Final[Mapping[str, OtherSignal]] = {"/v1/metrics": "metrics", "/v1/logs": "logs"}

_ENCODINGS: Final = {"application/x-protobuf": Encoding.PROTOBUF, "application/json": Encoding.JSON}
_CONTENT_TYPES: Final = {encoding: name for name, encoding in _ENCODINGS.items()}
_BODIES: Final[Mapping[str, type[PlainBody]]] = {
    **dict.fromkeys(("", "identity"), PlainBody),
    **dict.fromkeys(("gzip", "x-gzip"), GzipBody),  # two names of one encoding, by RFC 9110
}

_ALLOWED_HEADERS: Final = "Authorization, Content-Encoding, Content-Type"
_PREFLIGHT_S: Final = "7200"
_ACCEPTED: Final = {"Accept-Encoding": "gzip, identity"}
_SERVER: Final = {"Server": "spanscore"}

_FOREIGN_PAGE: Final = (
    "for a web page the Host must be localhost, an address of loopback or the one configured in "
    "receivers.otlp.protocols.http.endpoint, or its Origin one of receivers.otlp.protocols.http.cors.allowed_origins"
)
_CUT_OFF: Final = "the body is not what its headers say"

_ERRORS: Final[Mapping[Wrong, tuple[HTTPStatus, int]]] = {
    Wrong.MALFORMED: (HTTPStatus.BAD_REQUEST, responses.INVALID_ARGUMENT),
    Wrong.NO_VALID_SPAN: (HTTPStatus.BAD_REQUEST, responses.INVALID_ARGUMENT),
    Wrong.UNAUTHENTICATED: (HTTPStatus.UNAUTHORIZED, responses.UNAUTHENTICATED),
    Wrong.NOT_FOUND: (HTTPStatus.NOT_FOUND, responses.NOT_FOUND),
    Wrong.METHOD_NOT_ALLOWED: (HTTPStatus.METHOD_NOT_ALLOWED, responses.UNIMPLEMENTED),
    Wrong.TOO_LARGE: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, responses.RESOURCE_EXHAUSTED),
    Wrong.UNSUPPORTED: (HTTPStatus.UNSUPPORTED_MEDIA_TYPE, responses.INVALID_ARGUMENT),
    Wrong.MISDIRECTED: (HTTPStatus.MISDIRECTED_REQUEST, responses.PERMISSION_DENIED),
}
"""The status of HTTP, and the code of google.rpc.Status."""


class OtlpHttp(BaseHttpServer):
    """Receives OTLP over HTTP/1.1.

    Made in the event loop that serves it. Without bearer tokens everybody may send.
    """

    def __init__(
        self,
        intake: Intake,
        admission: Admission,
        settings: HttpSettings,
        tokens: BearerTokens | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        # Web pages may send to this machine under these names, too.
        super().__init__(limits, [endpoint.host for endpoint in listed(settings.endpoint)])
        self._door = Door(_DOOR, intake, admission)
        self._max_size = settings.max_request_body_size
        self._traces_path = settings.traces_url_path
        self._allowed_origins = frozenset(settings.cors.allowed_origins)
        self._tokens = tokens
        self._too_large = f"the request is larger than {self._max_size} bytes"
        others = {path: signal for path, signal in _OTHER_PATHS.items() if signal in intake.others}
        self._accepted = {
            encoding: ReadyAnswer(responses.success(ExportResponse(), encoding), _SERVER | {"Content-Type": name})
            for encoding, name in _CONTENT_TYPES.items()
        }
        self._signals: dict[str, OtherSignal | None] = {**others, self._traces_path: None}

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Take a request, and return the response."""
        encoding = _ENCODINGS.get(request.headers.get("Content-Type", "").partition(";")[0].strip().lower())
        origin = request.headers.get("Origin")
        try:
            answer = await self._take(request, encoding)
        except _HttpRefusal as refused:
            self._door.refused(refused.wrong, _sender(request))
            status, code = _ERRORS[refused.wrong]
            violation = refused.message if status is HTTPStatus.BAD_REQUEST else None
            body = responses.status(code, refused.message, encoding or Encoding.JSON, violation=violation)
            answer = _response(refused.status or status, body, encoding, refused.headers)
        except Unavailable as unavailable:
            self._door.refused(unavailable.why, _sender(request))
            delay_s = unavailable.retry_after_s
            body = responses.status(
                responses.UNAVAILABLE, str(unavailable), encoding or Encoding.JSON, retry_after_s=delay_s
            )
            headers = {"Retry-After": str(math.ceil(delay_s))}
            answer = _response(HTTPStatus.SERVICE_UNAVAILABLE, body, encoding, headers)
            answer.force_close()
        if origin is not None and origin in self._allowed_origins:
            answer = answer.response() if isinstance(answer, ReadyAnswer) else answer
            answer.headers.update({"Access-Control-Allow-Origin": origin, "Vary": "Origin"})
        return answer

    async def _take(self, request: web.BaseRequest, encoding: Encoding | None) -> web.Response | ReadyAnswer:
        if request.path not in self._signals:
            raise _HttpRefusal(Wrong.NOT_FOUND, self._not_found(request.path))
        if request.method != "POST":
            return self._other_method(request)
        if self._tokens is not None and not self._tokens.accept(request.headers.getall("Authorization", [])):
            raise _HttpRefusal(Wrong.UNAUTHENTICATED, responses.NOT_ALLOWED, {"WWW-Authenticate": "Bearer"})
        if self._is_from_a_foreign_page(request):
            raise _HttpRefusal(Wrong.MISDIRECTED, _FOREIGN_PAGE)
        if encoding is None:
            raise _HttpRefusal(Wrong.UNSUPPORTED, f"the Content-Type must be {' or '.join(_ENCODINGS)}")
        try:
            with self._door.admission.request() as held:
                with ArrivalLimit(NO_LIMIT, body=held):  # the connection limits the time
                    body = await self._body(request, held)
                answer = await self._door.hand_in(
                    self._signals[request.path], body, encoding, partial(_sender, request)
                )
        except (MalformedRequest, TooLarge) as error:
            raise _HttpRefusal(what_is_wrong(error), str(error)) from error
        if not answer.message:
            return self._accepted[encoding]
        return _response(HTTPStatus.OK, responses.success(answer, encoding), encoding)

    def _not_found(self, path: str) -> str:
        why = f"{path} takes metrics only with exporters.otlp" if path in _OTHER_PATHS else "there is nothing here"
        paths = [f"{signal} go to {path}" for path, signal in self._signals.items() if signal is not None]
        return "; ".join([why, f"traces go to {self._traces_path}", *paths])

    def _is_from_a_foreign_page(self, request: web.BaseRequest) -> bool:
        """Return whether the sender is a web page whose name resolves to our address: it needs no preflight request.

        Only browsers send an origin. They have no token, and listening beyond this machine requires one.
        """
        origin = request.headers.get("Origin")
        if origin is None or origin in self._allowed_origins or self._tokens is not None:
            return False
        return self.is_misled(request)

    def _other_method(self, request: web.BaseRequest) -> web.Response:
        origin = request.headers.get("Origin")
        if request.method == "OPTIONS" and origin in self._allowed_origins:
            headers = {
                "Access-Control-Allow-Methods": "POST",
                "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
                "Access-Control-Max-Age": _PREFLIGHT_S,
            }
            return web.Response(status=HTTPStatus.NO_CONTENT, headers=_SERVER | headers)
        message = f"the method must be POST, not {request.method}"
        raise _HttpRefusal(Wrong.METHOD_NOT_ALLOWED, message, {"Allow": "POST"})

    async def _body(self, request: web.BaseRequest, held: ArrivingBody) -> bytes:
        if (request.content_length or 0) > self._max_size:
            raise TooLarge(self._too_large)
        # Several headers are one list of encodings, of which one at most is decoded.
        content_encoding = ",".join(request.headers.getall("Content-Encoding", ())).strip().lower()
        if content_encoding not in _BODIES:
            raise _HttpRefusal(Wrong.UNSUPPORTED, "the Content-Encoding must be gzip or identity", _ACCEPTED)
        if "Expect" in request.headers:
            await _expected(request)
        body = _BODIES[content_encoding](self._max_size)
        try:
            while not request.content.at_eof():
                for grown in body.feed(await request.content.readany()):
                    await held.add(grown)
            return body.finish()
        except TooLarge:
            raise TooLarge(self._too_large) from None
        except BadEncoding as error:
            raise MalformedRequest(str(error)) from error
        except web.RequestPayloadError as error:
            raise MalformedRequest(_CUT_OFF) from error


@dataclass(eq=False)
class _HttpRefusal(Exception):  # noqa: N818 - a response to the sender, and not an error of ours
    """Ends a request that it is of no use to send again."""

    wrong: Wrong
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: HTTPStatus | None = None
    """Another than its kind has."""


def _sender(request: web.BaseRequest) -> Sender:
    name = request.get_extra_info("peername")
    address = str(Address(*name[:2])) if isinstance(name, tuple) else ""
    return Sender(address, request.headers.get("User-Agent", ""))


def _response(
    status: HTTPStatus, body: bytes, encoding: Encoding | None, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return a response in the encoding of the request; JSON if that is unknown."""
    content_type = {"Content-Type": _CONTENT_TYPES[encoding or Encoding.JSON]}
    return web.Response(status=status, body=body, headers=_SERVER | content_type | dict(headers or {}))


async def _expected(request: web.BaseRequest) -> None:
    """Answer `100 Continue` to a client that waits for it before it sends the body."""
    expectation = request.headers.get("Expect", "").lower()
    if expectation == "100-continue" and request.version == HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # aiohttp takes what was sent for the start of the answer
    elif expectation and expectation != "100-continue":
        message = "the only expectation met is 100-continue"
        raise _HttpRefusal(Wrong.UNSUPPORTED, message, status=HTTPStatus.EXPECTATION_FAILED)
