"""Answers whose content does not depend on the request: errors of HTTP, which end the connection, and success."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from aiohttp import web

NOT_HTTP: Final = "not valid HTTP/1.1"
RETRY_AFTER_S: Final = "5"


class ReadyAnswer(web.StreamResponse):
    """A response with status 200 that is the same for each request: one object answers all of them.

    aiohttp takes a tenth of the time of a small request to make a response, and to write it.
    """

    _keep_alive = True

    def __init__(self, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        self._content: Final = body
        self._made_at = -1
        self._bytes = b""

    def bytes_now(self) -> bytes:
        """Return the bytes of the response to a client that keeps its connection."""
        if (now := int(time.time())) != self._made_at:
            self._made_at = now
            fields = {**self.headers, "Content-Length": len(self._content), "Date": formatdate(now, usegmt=True)}
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            self._bytes = f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + self._content
        return self._bytes

    def response(self) -> web.Response:
        """Return it as a response of one request."""
        return web.Response(body=self._content, headers=self.headers)


def not_http(status: int = HTTPStatus.BAD_REQUEST) -> web.Response:
    """Return the response to data that is not valid HTTP, or is ambiguous. It closes the connection."""
    return last_answer(status, NOT_HTTP)


def last_answer(status: int, why: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an answer that ends the connection."""
    common = {"Content-Type": "application/json", "Server": "spanscore"}
    answer = web.Response(status=status, body=_status_body(why), headers=common | dict(headers or {}))
    answer.force_close()
    return answer


def raw_answer(status: HTTPStatus, why: str, headers: str = "") -> bytes:
    """Return the bytes of a response, with extra headers, to a request that aiohttp has not parsed."""
    body = _status_body(why)
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


def _status_body(message: str) -> bytes:
    return json.dumps({"message": message}).encode()
