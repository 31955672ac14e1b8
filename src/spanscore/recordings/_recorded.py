"""Files of recorded OTLP: opened, and their format recognised by the content, never by the name."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.errors import InputError
from spanscore.messages.printable import cannot_be_read, printable
from spanscore.otlp.findings import Decoded, MalformedRequest

Content: TypeAlias = io.BufferedReader | gzip.GzipFile
"""The content of a recording, decompressed."""

READ_ERRORS: Final = (OSError, EOFError, zlib.error)
"""The errors of reading in the middle of a file; EOFError is a truncated gzip stream."""

LENGTH_PREFIX: Final = 4
"""Bytes of the length, most significant first, that the Collector's file exporter writes before each request."""

REQUEST_TAG: Final = b"\n"
"""The first byte of a request in protobuf: field 1, length-delimited."""

ARROW_STREAM: Final = b"\xff\xff\xff\xff"
"""The first bytes of a stream of Arrow."""

PARQUET: Final = b"PAR1"
"""The first bytes of a Parquet file."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")

_READ_AT_ONCE: Final = 128 * 1024
_WHAT_SHOWN: Final = 200
_HEAD: Final = 256
_JSON: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*(?:"[^\x00-\x1f]|\}|\Z)|\[\s*(?:[\[{\]]|\Z))')
_TEXT: Final = re.compile(rb"[^\x00-\x08\x0e-\x1f]*")


class InputProblem(NamedTuple):
    """Something in a recording that cannot be used."""

    file: str
    line: int
    """Counted from 1; in protobuf with lengths the number of the request; 0 is the file as a whole."""
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


class RecordedDocument(NamedTuple):
    """One document of a recording: in most files one request, and in JSON Lines one line."""

    line: int
    """The line it starts in, counted from 1. In delimited protobuf its number; 0 when it is the whole file."""
    end: int
    """The number of bytes of the decompressed recording up to the end of the document."""
    requests: Sequence[Decoded] = ()
    problems: Sequence[MalformedRequest] = ()
    skipped: int = 0
    """Requests with neither spans nor logs, but another signal."""
    sources: Sequence[Any] = ()
    """The source of each request: JSON as text or parsed, bytes of protobuf, or `Logs`."""
    is_other: bool = False
    """Whether it is whole JSON that holds no telemetry of any known form, such as `package.json`."""
    is_flagless: bool = False
    """Whether spans have no flags, as in tables."""
    is_cut_off: bool = False
    """Whether it is broken and the file ends within it."""


def open_file(path: Path) -> io.BufferedReader:
    """Open a file to read its bytes.

    Raises:
        InputError: it cannot be opened.
    """
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(cannot_be_read(path, error.strerror)) from error


class _Begin(io.RawIOBase):
    """The first bytes of a file, to which others may append."""

    def __init__(self, file: io.BufferedReader, size: int) -> None:
        self._file: Final = file
        self._size: Final = size

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(memoryview(buffer)[: max(0, self._size - self._file.tell())])


@contextmanager
def opened(path: Path, size: int | None = None) -> Iterator[tuple[io.BufferedReader, Content]]:
    """Open a recording: the file itself, whose position is the progress, and its decompressed content.

    Args:
        path: the file.
        size: how many of its bytes are read; None for all.
    """
    with open_file(path) as whole:
        begin: Any = whole if size is None else io.BufferedReader(_Begin(whole, size), _READ_AT_ONCE)
        file: io.BufferedReader = begin
        if file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
            # Not zlib-ng's, as for requests: where a file breaks off, it gives up lines that were whole before.
            with gzip.GzipFile(fileobj=file) as content:
                yield file, content
        else:
            yield file, file


class WrongColumns(MalformedRequest):
    """A table cannot be read: it lacks columns, or their types or units are others."""


def is_json(path: Path, max_request_size: int) -> bool:
    """Return whether a recording is JSON, documents of one line or several; else it is protobuf, with lengths or bare.

    Raises:
        MalformedRequest: it is neither.
    """
    head = b""
    with opened(path) as (file, content), suppress(*READ_ERRORS):  # reading the documents comes to them as well
        while len(head) < _HEAD and (more := content.read1(_HEAD - len(head))):
            head += more
    if head.startswith(_ZSTD_MAGIC) or head.startswith(_ZSTD_MAGIC, LENGTH_PREFIX):
        raise MalformedRequest("zstd is not supported: decompress the file first")
    if head.startswith((ARROW_STREAM, PARQUET)) and content is not file:
        raise MalformedRequest("a table in gzip: decompress it first")
    if head.startswith(PARQUET):
        raise MalformedRequest("a Parquet file")
    if head.startswith(ARROW_STREAM):
        raise MalformedRequest("a stream of Arrow: name it alone, without other files")
    if head.startswith(_UTF16_MARKS):
        raise MalformedRequest("the text is in UTF-16: OTLP/JSON is in UTF-8")
    if _JSON.match(head) or _TEXT.fullmatch(head):
        return True
    length = int.from_bytes(head[:LENGTH_PREFIX], "big")
    starts_with_length = length <= max_request_size and (length == 0 or head.startswith(REQUEST_TAG, LENGTH_PREFIX))
    if starts_with_length or head.startswith(REQUEST_TAG):
        return False
    raise MalformedRequest("neither OTLP/JSON nor OTLP in protobuf")


class CutOff(MalformedRequest):
    """The file ends within a request."""


def unreadable(error: Exception) -> MalformedRequest:
    """Return the problem of a file that breaks off: reading it raised one of `READ_ERRORS`."""
    what = f"the rest of the file cannot be read: {error}"
    return CutOff(what) if isinstance(error, EOFError) else MalformedRequest(what)


def broken(error: Exception) -> MalformedRequest:
    """Return the problem of a document that cannot be read, for a reason that no rule of its format has."""
    if isinstance(error, MalformedRequest):
        return error
    if isinstance(error, RecursionError):
        return MalformedRequest("it is nested too deeply")
    if isinstance(error, MemoryError):
        return MalformedRequest("there is not enough memory to read it")
    return MalformedRequest(f"it cannot be read: {type(error).__name__}: {printable(str(error), _WHAT_SHOWN)}")
