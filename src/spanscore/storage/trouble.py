"""The reason for which requests are refused, and the check whether it is over."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from spanscore.storage.compaction import UNFINISHED
from spanscore.storage.directory import Files
from spanscore.storage.request_log import REQUESTS

_PROBE: Final = f"{0:016x}{REQUESTS}{UNFINISHED}"
_LARGEST_PROBE: Final = 2**20

_log = logging.getLogger(__name__)


class Trouble:
    """The problem that keeps the storage from taking requests. Its beginning and its end are logged."""

    def __init__(self, files: Files) -> None:
        self.why = ""
        """The reason; empty if there is no problem."""
        self.missing_size = 0
        """The number of bytes that could not be written."""
        self._files: Final = files

    def begin(self, why: str) -> None:
        """Note that requests are refused."""
        if self.why != why:
            self.why = why
            _log.error("storage: %s: spans are refused until that is over", why)

    def end(self) -> None:
        """Note that they are taken again."""
        if self.why:
            self.why = ""
            _log.info("storage: spans are taken again")

    def probe(self) -> None:
        """Check whether as many bytes as failed before can be written now."""
        try:
            file = self._files.create(_PROBE)
            try:
                self._files.append(file, [bytes(min(self.missing_size, _LARGEST_PROBE))])
            finally:
                self._files.close(file)
        except OSError:
            pass
        else:
            self.end()
        with suppress(OSError):
            self._files.delete(_PROBE)
