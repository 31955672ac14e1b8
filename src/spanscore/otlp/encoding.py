"""How OTLP may be written."""

from __future__ import annotations

from enum import Enum


class Encoding(Enum):
    """How a request is written."""

    PROTOBUF = "protobuf"
    JSON = "json"
