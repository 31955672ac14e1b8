"""Messages to standard error: one line each, whatever they are about."""

from __future__ import annotations

import logging
import sys
from typing import Final

LOGGER: Final = "spanscore"

_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class OneLine(logging.Formatter):
    """Writes a record, its traceback too, as one line in which nothing moves the cursor."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        text = super().format(record)
        if text.isprintable():
            return text
        return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def log_to_standard_error(level: str) -> None:
    """Log from this level on; of other libraries warnings only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(_FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(LOGGER).setLevel(level.upper())
    # With a traceback for each client that went away before its answer; our own faults are logged by us.
    logging.getLogger("grpc").setLevel(logging.CRITICAL)
