"""How OTLP may be written."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Encoding(Enum):
    """How a request is written: one with spans, but for `LOGS`."""

    PROTOBUF = "protobuf"
    JSON = "json"
    LOGS = "logs"
    """An ExportLogsServiceRequest in protobuf; those in JSON are written anew before they are kept."""


class Logs(NamedTuple):
    """A request with logs, where requests with spans may stand as well: in protobuf they look alike."""

    body: bytes
    """An ExportLogsServiceRequest in protobuf."""
