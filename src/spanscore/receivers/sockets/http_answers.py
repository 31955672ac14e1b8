"""Answers to requests that are refused before anything reads them: each ends its connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from aiohttp import web

RETRY_AFTER_S: Final = "5"


def not_http(status: int = HTTPStatus.BAD_REQUEST) -> web.Response:
    """Return the response to data that is not valid HTTP, or is ambiguous. It closes the connection."""
    return last_answer(status, "not valid HTTP/1.1")


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
