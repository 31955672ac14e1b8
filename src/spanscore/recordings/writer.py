"""Writes recordings: requests as they come, in the format that the file's name says."""

from __future__ import annotations

import gzip
import io
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spanscore.errors import InputError
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.to_json import to_json
from spanscore.recordings._recorded import LENGTH_PREFIX, READ_ERRORS, REQUEST_TAG, Content, is_json, opened, unreadable
from spanscore.recordings.file_lock import lock
from spanscore.recordings.replaced_files import CAN_MOVE_OPEN, is_written_in_place, replace

if TYPE_CHECKING:
    from spanscore.recordings.masked_requests import MaskedRequests

JSON_SUFFIXES: Final = (".json", ".jsonl", ".ndjson")
_OWNER_ONLY: Final = 0o600  # arguments and results of tools are in the requests
PROTOBUF_SUFFIXES: Final = (".pb", ".binpb", ".bin", ".otlp")
_GZIP: Final = ".gz"
_PART: Final = ".part"
_LONGEST: Final = 2 ** (8 * LENGTH_PREFIX) - 1
_READ_AT_ONCE: Final = 2**20
_MESSAGES: Final[Mapping[str, type[Message]]] = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}


class ProtobufRequest(NamedTuple):
    """A request in protobuf, as it came."""

    signal: Literal["traces", "logs"]
    body: bytes


class RecordingWriter:
    """Writes what `Recording` reads: OTLP/JSON Lines, or protobuf with each request behind its length; gzip by `.gz`.

    The requests go to a file beside the one at the path, with `.part` behind its name. It is itself a recording, which
    has each request when `write` returns. `close` has it take the place of the one at the path. If there was no
    request, the one at the path stays; if a request could not be written, or a mask matched no key, it stays, too, and
    so does the `.part`.
    Devices and pipes are written in place.

    Args:
        path: ends in one of `JSON_SUFFIXES` or `PROTOBUF_SUFFIXES`, and maybe `.gz`.
        append: keep what is there, and write behind it, in place.
        masked: masks each request before it is written.

    Raises:
        InputError: the path has another ending, or cannot be written to, or another writer replaces it; or the file to
            append to has another form than its name says, or is broken.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, append: bool = False, masked: MaskedRequests | None = None
    ) -> None:
        self.path: Final = Path(path)
        self._masked: Final = masked
        name = self.path.name.lower().removesuffix(_GZIP)
        self._is_json = name.endswith(JSON_SUFFIXES)
        self._is_gzip = name != self.path.name.lower()
        if not self._is_json and not name.endswith(PROTOBUF_SUFFIXES):
            endings = ", ".join((*JSON_SUFFIXES, *PROTOBUF_SUFFIXES))
            message = f"cannot record to {str(path)!r}: its name must end in {endings}, or one of these and {_GZIP}"
            raise InputError(message)
        self.left_behind: Path | None = None
        """An earlier recording that did not end, which was found in the place of the `.part` and now has this name."""
        self._has_failed = False
        try:
            self._is_new = not self.path.exists()
            target = self.path.resolve()
            self._target = None if is_written_in_place(target) or append else target
            if append and target.is_file():
                self._check_form(target)
            self._file = _opened(target) if self._target is None else self._begin(Path(f"{target}{_PART}"))
        except OSError as error:
            raise InputError(f"cannot record to {str(path)!r}: {error.strerror}") from error
        self._is_file = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        self._begun = self._size()
        self.written: int = 0
        """Requests."""

    @property
    def part(self) -> Path:
        """The file that requests are written to until the end: the `.part`, or in place the one at the path."""
        if self._target is None:
            return self.path
        beside = self.path.with_name(f"{self.path.name}{_PART}")  # as the user wrote it, where no link leads elsewhere
        return beside if beside.absolute() == Path(self._file.name) else Path(self._file.name)

    @property
    def kept(self) -> Path | None:
        """The file with the requests so far, if a later one could not be written and no file was replaced."""
        return self.part if self._has_failed and self._target is not None and self.written else None

    def write(self, signal: Literal["traces", "logs"], request: bytes) -> None:
        """Write a request, which is OTLP in protobuf.

        Raises:
            OSError: it cannot be written as a whole; of a file, no part of it is.
        """
        if self._masked is not None:
            request = self._masked.masked(signal, request)
        if self._is_json:
            content = to_json(_MESSAGES[signal].FromString(request)).encode() + b"\n"
        else:
            content = len(request).to_bytes(LENGTH_PREFIX, "big") + request
        if not self.written and self._is_json and self._is_file and self._size():
            content = b"\n" + content  # what is there may end without one
        if self._is_gzip:
            content = gzip.compress(content, mtime=0)  # members behind each other are one file
        before = self._size()
        try:
            left = memoryview(content)
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._has_failed = True
            if self._is_file:
                with suppress(OSError):
                    self._file.truncate(before)
            raise
        self.written += 1

    def close(self) -> None:
        """Move the written file to its path if all requests were written. A file without requests is removed.

        If a mask matched no key, the file stays at the `.part`, and what was appended is removed again.

        Raises:
            OSError: it cannot be synced or moved.
        """
        if self._file.closed:
            return
        is_unmasked = self.written > 0 and self._masked is not None and self._masked.masks.has_unmatched
        is_taken_back = is_unmasked and self._is_file and self._target is None
        self._has_failed = self._has_failed or is_unmasked
        with self._file:
            if is_taken_back:
                self._file.truncate(self._begun)
            if (is_taken_back or not self.written) and (self._is_new or self._target is not None):
                if not CAN_MOVE_OPEN:
                    self._file.close()
                Path(self._file.name).unlink(missing_ok=True)
            elif self._target is not None and not self._has_failed:
                self._has_failed = True
                replace(self._target, self._file)
                self._has_failed = False

    def __enter__(self) -> Self:
        """Return the writer, which is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; after an error it takes no place."""
        self._has_failed = self._has_failed or error is not None
        self.close()

    def _check_form(self, path: Path) -> None:
        """Check that requests can be read if they are appended to a file.

        Raises:
            InputError: they cannot, or would make unreadable what is there.
        """
        try:
            with opened(path) as (file, content):
                if file.peek(1):
                    _check_content(path, content, in_json=self._is_json, in_gzip=self._is_gzip)
        except MalformedRequest as error:
            form = "OTLP/JSON Lines" if self._is_json else "OTLP in protobuf, each request behind its length"
            form += " in gzip" if self._is_gzip else ""
            message = f"cannot append to {str(self.path)!r}, which must be {form}, by its name: {error.what}"
            raise InputError(message) from error

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _begin(self, part: Path) -> io.FileIO:
        """Open the file for new requests, for this process alone, and move a file left by another process away.

        Raises:
            OSError: it cannot be opened, or a process that runs writes to it.
        """
        while True:
            file = _opened(part)
            try:
                lock(file.fileno())
            except BlockingIOError as error:
                file.close()
                raise OSError(error.errno, f"another process is recording to it, in {part}") from None
            if _is_at(part, file) and not os.fstat(file.fileno()).st_size:
                return file
            if _is_at(part, file):
                numbered = (Path(f"{part}.{number}") for number in count(1))
                self.left_behind = next(each for each in numbered if not each.exists())
                if not CAN_MOVE_OPEN:
                    file.close()
                part.rename(self.left_behind)
            file.close()


def _check_content(path: Path, content: Content, *, in_json: bool, in_gzip: bool) -> None:
    if isinstance(content, gzip.GzipFile) != in_gzip:
        raise MalformedRequest("it is not gzip" if in_gzip else "it is gzip")
    try:
        if not content.peek(1):
            return
        if is_json(path, _LONGEST) != in_json:
            raise MalformedRequest("it has protobuf" if in_json else "it has JSON or text")
        if not in_json:
            _check_lengths(content)
        while in_gzip and content.read1(_READ_AT_ONCE):  # it may break off
            pass
    except READ_ERRORS as error:
        raise unreadable(error) from error


def _check_lengths(content: Content) -> None:
    if content.peek(1).startswith(REQUEST_TAG):
        raise MalformedRequest("it has one request, without its length")
    while prefix := content.read(LENGTH_PREFIX):
        left = int.from_bytes(prefix, "big")
        while left and (part := content.read1(min(left, _READ_AT_ONCE))):
            left -= len(part)
        if left or len(prefix) < LENGTH_PREFIX:
            raise MalformedRequest("its last request is cut off")


def _opened(path: Path) -> io.FileIO:
    if not path.exists():
        path.touch(_OWNER_ONLY)
    return path.open("ab", buffering=0)


def _is_at(path: Path, file: io.FileIO) -> bool:
    """Return whether a path still leads to a file that was opened there: its writer may have put it into its place."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
