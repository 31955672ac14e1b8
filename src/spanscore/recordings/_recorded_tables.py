"""Tables of spans or log records as recordings: files of Parquet, and streams of Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from spanscore.messages.printable import printable
from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import MalformedRequest
from spanscore.recordings._recorded import ARROW_STREAM, PARQUET, RecordedDocument, broken, open_file

_WHOLE_FILE: Final = 0
_TRACE_ID: Final = "TraceId"
_TRACE_ID_LENGTH: Final = 16
_WHAT_SHOWN: Final = 200
_NO_PYARROW: Final = "tables need pyarrow, of the extra 'tables': pip install pyarrow"


def is_arrow_stream(stream: Any) -> bool:
    """Return whether a stream is one of Arrow, by its first bytes, which can be read again."""
    return bool(stream.peek(len(ARROW_STREAM)).startswith(ARROW_STREAM))


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet, by its first bytes."""
    with open_file(path) as file:
        return file.peek(len(PARQUET)).startswith(PARQUET)


def parquet_documents(path: Path, log_names: Sequence[str]) -> Iterator[RecordedDocument]:
    """Decode the rows of a Parquet file in their order. The end of a document is the number of rows up to its end."""
    end = 0
    try:
        _check_pyarrow()
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - of an extra, and slow to load

        from spanscore.recordings import arrow_columns, stored_rows  # noqa: PLC0415 - as above

        with ParquetFile(path) as file:
            source = Logs(b"") if arrow_columns.has_logs(file.schema_arrow) else b""
            rows = stored_rows.reader(file.schema_arrow, log_names)
            for batch in file.iter_batches(stored_rows.ROWS_AT_ONCE, columns=[*rows.names.values()]):
                end += batch.num_rows
                yield RecordedDocument(_WHOLE_FILE, end, [rows.decoded(batch)], sources=[source], is_flagless=True)
    except Exception as error:  # noqa: BLE001 - a file may hold anything
        yield RecordedDocument(_WHOLE_FILE, end, problems=[broken(error)])


def parquet_mentions(path: Path) -> Iterator[tuple[int, bytes | None]]:
    """Yield the trace ids in a Parquet file, each with the number of rows before one of its rows, or of one later.

    Last comes the number of all rows, with None.
    """
    end = 0
    with suppress(Exception):  # reading the documents comes to it as well
        _check_pyarrow()
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - of an extra, and slow to load

        from spanscore.recordings import arrow_values, stored_rows  # noqa: PLC0415 - as above

        with ParquetFile(path) as file:
            for batch in file.iter_batches(stored_rows.ROWS_AT_ONCE, columns=[_TRACE_ID]):
                end += batch.num_rows
                for trace_id in arrow_values.ids(batch.column(0).unique(), _TRACE_ID_LENGTH)[0]:
                    if isinstance(trace_id, bytes) and len(trace_id) == _TRACE_ID_LENGTH:
                        yield end - 1, trace_id
    yield end, None


def arrow_rows(stream: BinaryIO, log_names: Sequence[str]) -> Iterator[RecordedDocument]:
    """Decode the rows of streams of Arrow, one behind the other, which are read once. Last comes a problem, if any."""
    try:
        _check_pyarrow()
        from pyarrow.ipc import open_stream  # noqa: PLC0415 - of an extra, and slow to load

        from spanscore.recordings import arrow_columns, stored_rows  # noqa: PLC0415 - as above

        reading = _ArrowStreams(stream)
        while reading.has_next():
            with open_stream(reading) as batches:
                source = Logs(b"") if arrow_columns.has_logs(batches.schema) else b""
                for decoded in stored_rows.decoded_rows(batches, log_names):
                    yield RecordedDocument(_WHOLE_FILE, 0, [decoded], sources=[source], is_flagless=True)
    except (OSError, ValueError) as error:  # pyarrow raises either where a stream breaks off
        what = f"the stream of Arrow cannot be read: {printable(str(error), _WHAT_SHOWN)}"
        yield RecordedDocument(_WHOLE_FILE, 0, problems=[MalformedRequest(what)])
    except Exception as error:  # noqa: BLE001 - a stream may hold anything
        yield RecordedDocument(_WHOLE_FILE, 0, problems=[broken(error)])


class _ArrowStreams:
    """Streams of Arrow, one behind the other, as a file that pyarrow reads.

    pyarrow reads no byte behind the end mark of a stream, and takes the end of the file for one.
    """

    closed: Final = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream: Final = stream
        self._ahead = b""
        self._is_cut_off = False

    def read(self, size: int) -> bytes:
        """Read so many bytes, or up to the end of the file."""
        ahead, self._ahead = self._ahead[:size], self._ahead[size:]
        found = ahead + self._stream.read(size - len(ahead))
        self._is_cut_off = len(found) < size
        return found

    def has_next(self) -> bool:
        """Return whether a stream begins here: the first one, or one behind the end mark of another.

        Raises:
            MalformedRequest: the stream before has no end mark, or something else is behind it.
        """
        if self._is_cut_off:
            raise MalformedRequest("the stream of Arrow ends without its end mark: rows may be missing")
        self._ahead = self._stream.read(len(ARROW_STREAM))
        if self._ahead not in (b"", ARROW_STREAM):
            raise MalformedRequest("what is behind the end of the stream of Arrow is no other stream, and is not read")
        return bool(self._ahead)


def _check_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401, ICN001, PLC0415 - of an extra, and slow to load
    except ModuleNotFoundError as error:
        raise MalformedRequest(_NO_PYARROW) from error
