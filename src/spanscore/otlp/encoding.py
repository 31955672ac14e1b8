"""How OTLP may be written."""

from __future__ import annotations

from enum import Enum


class Encoding(Enum):
    """How a request is written: one with spans, but for `LOGS`."""

    PROTOBUF = "protobuf"
    JSON = "json"
    LOGS = "logs"
    """An ExportLogsServiceRequest in protobuf; those in JSON are written anew before they are kept."""
