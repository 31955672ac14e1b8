"""Writes recordings: requests as they come, in the format that the file's name says."""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Literal, NamedTuple, Self

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spanscore.errors import InputError
from spanscore.otlp.to_json import to_json
from spanscore.recordings._recorded import LENGTH_PREFIX

JSON_SUFFIXES: Final = (".jsonl", ".ndjson", ".json")
PROTOBUF_SUFFIXES: Final = (".pb", ".binpb", ".bin", ".otlp")
_GZIP: Final = ".gz"
_MESSAGES: Final[Mapping[str, type[Message]]] = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}


class Request(NamedTuple):
    """A request in protobuf, as it came."""

    signal: Literal["traces", "logs"]
    body: bytes


class RecordingWriter:
    """Writes what `Recording` reads: OTLP/JSON Lines, or protobuf with each request behind its length; gzip by `.gz`.

    What is at the path is replaced when the first request is written, and not before: a run that records nothing costs
    no earlier recording. Each request is in the file when `write` returns.

    Args:
        path: ends in one of `JSON_SUFFIXES` or `PROTOBUF_SUFFIXES`, and maybe `.gz`.
        append: keep what is there, and write behind it.

    Raises:
        InputError: the path has another ending, or cannot be written to.
    """

    def __init__(self, path: str | os.PathLike[str], *, append: bool = False) -> None:
        self.path: Final = Path(path)
        name = self.path.name.lower().removesuffix(_GZIP)
        self._is_json = name.endswith(JSON_SUFFIXES)
        if not self._is_json and not name.endswith(PROTOBUF_SUFFIXES):
            endings = ", ".join((*JSON_SUFFIXES, *PROTOBUF_SUFFIXES))
            message = f"cannot record to {str(path)!r}: its name must end in {endings}, or one of these and {_GZIP}"
            raise InputError(message)
        self._is_new = not self.path.exists()
        self._appends = append
        try:
            self._file: IO[bytes] = self.path.open("ab")
        except OSError as error:
            message = f"cannot record to {str(path)!r}: {error.strerror}"
            raise InputError(message) from error
        self.written: int = 0
        """Requests."""

    def write(self, signal: Literal["traces", "logs"], request: bytes) -> None:
        """Write a request, which is OTLP in protobuf.

        Raises:
            OSError: it cannot be written.
        """
        if self._is_json:
            content = to_json(_MESSAGES[signal].FromString(request)).encode() + b"\n"
        else:
            content = len(request).to_bytes(LENGTH_PREFIX, "big") + request
        if self.path.name.lower().endswith(_GZIP):
            content = gzip.compress(content, mtime=0)  # members behind each other are one file
        if not self.written and not self._appends and self.path.is_file():
            self._file.truncate(0)
        self._file.write(content)
        self._file.flush()
        self.written += 1

    def close(self) -> None:
        """Close the file; one that was not there before, and got nothing, is removed."""
        self._file.close()
        if self._is_new and not self.written:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Return the writer, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()
