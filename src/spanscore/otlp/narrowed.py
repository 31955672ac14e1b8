"""A request with the spans of some traces only, for as long as no others in it are needed."""

from __future__ import annotations

import json
from binascii import hexlify
from collections.abc import Collection
from typing import Any

from spanscore.otlp.encoding import Encoding
from spanscore.otlp.forwardable import accepted_only
from spanscore.otlp.from_logs import narrowed_logs
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.strict_json import parse


def narrowed(body: bytes, encoding: Encoding, trace_ids: Collection[bytes]) -> bytes:
    """Return a request, written as it was, with the spans of these traces only.

    Raises:
        MalformedRequest: it cannot be decoded.
    """
    if encoding is Encoding.LOGS:
        return narrowed_logs(body, trace_ids)
    if encoding is Encoding.JSON:
        document = parse(body)
        _narrow(document, {hexlify(trace_id).decode() for trace_id in trace_ids})
        return json.dumps(document, separators=(",", ":")).encode()
    return accepted_only(body, [span for span in decode_protobuf(body).spans if span.trace_id in trace_ids])


def _narrow(document: dict[str, Any], trace_ids: Collection[str]) -> None:
    """Remove spans from a request that was decoded before, so that its form is right."""
    for resource_spans in document.get("resourceSpans") or ():
        for scope_spans in resource_spans.get("scopeSpans") or ():
            scope_spans["spans"] = [
                span
                for span in scope_spans.get("spans") or ()
                if isinstance(span, dict) and str(span.get("traceId")).lower() in trace_ids
            ]
