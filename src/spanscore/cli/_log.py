"""Messages to standard error: one line each, whatever they are about."""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType
from typing import Final, TextIO, TypeAlias

LOGGER: Final = "spanscore"

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_MOST_CAUSES: Final = 8

_ErrorInfo: TypeAlias = "tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]"


class OneLine(logging.Formatter):
    """Writes a record, its traceback too, as one line in which nothing moves the cursor.

    Args:
        tool_content: whether to write the texts of errors, which may quote received data; without it only their types
            and locations are written.
    """

    def __init__(self, *, tool_content: bool = False) -> None:
        super().__init__(_FORMAT)
        self._tool_content = tool_content

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler may have put the error's text there
        text = super().format(record)
        if text.isprintable():
            return text
        return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)

    def formatException(self, ei: _ErrorInfo) -> str:  # noqa: N802 - the name is of the standard library
        """Return the traceback of an error, with the error's text only if that may be shown."""
        if self._tool_content or ei[1] is None:
            return super().formatException(ei)
        error: BaseException | None = ei[1]
        lines: list[str] = []
        while error is not None and len(lines) < _MOST_CAUSES:
            where = "".join(traceback.format_tb(error.__traceback__))
            # Texts of the operating system may be shown: they contain no received data.
            words = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
            lines.insert(0, f"{where}{type(error).__name__}{words}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n".join(lines)


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to standard error as it is by then: a live table takes it over, so that lines come above the table."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def log_to_standard_error(level: str, *, tool_content: bool = False) -> None:
    """Log from this level on; of other libraries warnings only."""
    handler = _StandardError()
    handler.setFormatter(OneLine(tool_content=tool_content))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(LOGGER).setLevel(level.upper())
    # With a traceback for each client that went away before its answer; our own faults are logged by us.
    logging.getLogger("grpc").setLevel(logging.CRITICAL)
