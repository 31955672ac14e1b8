"""Requests in protobuf with masked values: in attributes, bodies, and messages of a status; names stay as they are."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, Final, Literal

import re2  # type: ignore[import-untyped]  # has no type information
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from spanscore.trajectories.mask_paths import Keys
from spanscore.trajectories.masked import RESOURCE_KEY
from spanscore.trajectories.masks import Masks, is_unnamed

_MOST_MEMORY: Final = 1 << 26
"""Bytes of the automaton that looks for masked values."""


class MaskedRequests:
    """Masks requests with spans or logs."""

    def __init__(self, masks: Masks) -> None:
        self.masks: Final = masks

    def repeats(self, path: Path) -> int:
        """Return how often masked values stand in a recording all the same, as whole words: some in other forms more.

        Raises:
            OSError: it cannot be read.
        """
        if not self.masks.replaced:
            return 0
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _MOST_MEMORY
        texts = b"|".join(re2.escape(text.encode(errors="replace")) for text in self.masks.replaced)
        sought = re2.compile(rb"[^0-9A-Za-z_](?:" + texts + rb")[^0-9A-Za-z_]", options)
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return sum(1 for line in file for _ in sought.finditer(line))

    def masked(self, signal: Literal["traces", "logs"], body: bytes) -> bytes:
        """Return a request without masked values, and without fields that are not known.

        Raises:
            DecodeError: it is no request.
        """
        request: Any
        if signal == "traces":
            request = ExportTraceServiceRequest.FromString(body)
            resources = [each.resource for each in request.resource_spans]
        else:
            request = ExportLogsServiceRequest.FromString(body)
            resources = [each.resource for each in request.resource_logs]
        request.DiscardUnknownFields()
        self._message(request)
        for resource in resources:
            if all(attribute.key != RESOURCE_KEY for attribute in resource.attributes):
                resource.attributes.add(key=RESOURCE_KEY).value.bool_value = True
        return bytes(request.SerializeToString())

    def _message(self, message: Message) -> None:
        if isinstance(message, KeyValue):
            self._attribute(message, ())
            return
        if isinstance(message, AnyValue):
            self._value(message, ())
            return
        if isinstance(message, Status):
            message.message = self.masks.text(message.message, ())
        for field, content in message.ListFields():
            if field.message_type is not None:
                for each in [content] if isinstance(content, Message) else content:
                    self._message(each)

    def _attribute(self, attribute: KeyValue, path: Keys) -> None:
        inner, is_masked = self.masks.below(path, attribute.key)
        if is_masked:
            self.masks.look(_plain(attribute.value), inner)
            self._replace(attribute.value)
        else:
            self._value(attribute.value, inner)

    def _replace(self, value: AnyValue) -> None:
        mark = self.masks.mark(_plain(value))
        value.Clear()
        if isinstance(mark, str):
            value.string_value = mark
        else:
            value.kvlist_value.values.add(key=next(iter(mark))).value.bool_value = True

    def _value(self, value: AnyValue, path: Keys) -> None:
        match value.WhichOneof("value"):
            case "string_value":
                value.string_value = self.masks.text(value.string_value, path)
            case "bytes_value":
                try:
                    text = value.bytes_value.decode()
                    value.bytes_value = self.masks.text(text, path).encode()
                except UnicodeDecodeError:
                    value.string_value = self.masks.mark(value.bytes_value.hex())
            case "array_value":
                for item in value.array_value.values:
                    if is_unnamed(_plain(item), path):
                        self._replace(item)
                    else:
                        self._value(item, path)
            case "kvlist_value":
                for attribute in value.kvlist_value.values:
                    self._attribute(attribute, path)


def _plain(value: AnyValue) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "bytes_value":
            return value.bytes_value.hex()
        case "array_value":
            return [_plain(item) for item in value.array_value.values]
        case "kvlist_value":
            return {each.key: _plain(each.value) for each in value.kvlist_value.values}
        case kind:
            return getattr(value, kind)
