"""Requests of HTTP/1.1 written by hand, to send what no client sends."""

from __future__ import annotations

from receivers.receiving import PROTOBUF


def head(length: int | None, content_type: str = PROTOBUF, *more: str) -> bytes:
    """Return the head of a request with a body of that length, and these further headers."""
    lines = ["POST /v1/traces HTTP/1.1", "Host: x", f"Content-Type: {content_type}", *more]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()
