"""The encodings of OTLP."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Encoding(Enum):
    """The encoding of a request. It has spans, except for `LOGS`."""

    PROTOBUF = "protobuf"
    JSON = "json"
    LOGS = "logs"
    """An ExportLogsServiceRequest in protobuf; requests in JSON are converted before they are stored."""


class Logs(NamedTuple):
    """A request with logs, in places where requests with spans are allowed too; in protobuf they look alike."""

    body: bytes
    """An ExportLogsServiceRequest in protobuf."""
