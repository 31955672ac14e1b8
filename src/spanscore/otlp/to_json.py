"""Requests in protobuf as OTLP/JSON: protobuf's own JSON with other ids and enumerations."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

_IDS: Final = ("traceId", "spanId", "parentSpanId")


def to_json(request: Message) -> str:
    """Return a request with spans or logs as OTLP/JSON in one line: ids in hexadecimal, enumerations as numbers."""
    message = MessageToDict(request, use_integers_for_enums=True)
    for holder in _with_ids(message):
        for key in _IDS:
            if key in holder:
                holder[key] = base64.b64decode(holder[key]).hex()
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def _with_ids(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the spans, their links, and the log records."""
    for resource in message.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                yield span
                yield from span.get("links", ())
    for resource in message.get("resourceLogs", ()):
        for scope in resource.get("scopeLogs", ()):
            yield from scope.get("logRecords", ())
