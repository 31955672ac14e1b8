"""Files that are read again when they have changed: certificates and tokens are replaced while we run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

from spanscore.errors import ConfigError

_LOOK_AGAIN_S: Final = 1.0

_log = logging.getLogger(__name__)
_Content = TypeVar("_Content")


class WatchedFiles(Generic[_Content]):
    """The content of files. Checks them at most once a second, and reads them again when they have changed.

    Files that cannot be used then are logged and ignored: while they are replaced one by one, they do not fit briefly.

    Args:
        paths: the files.
        read: reads them.
        name: the name of their content in the log.
        told: returns the log message after they were read again.
        clock: monotonic seconds.

    Raises:
        ConfigError: a file cannot be used.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        read: Callable[[], _Content],
        name: str,
        told: Callable[[_Content], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = tuple(paths)
        self._read = read
        self._name = name
        self._told = told
        self._clock = clock
        self._versions = self._look()  # before they are read for the first time, so that no change is missed
        self._looked_at = clock()
        self.content = read()
        """As it was read last."""

    def look_again(self) -> bool:
        """Read files that have changed, and return whether there is something new."""
        now = self._clock()
        if now - self._looked_at < _LOOK_AGAIN_S:
            return False
        self._looked_at = now
        before, self._versions = self._versions, self._look()
        if self._versions == before:
            return False
        try:
            self.content = self._read()
        except (ConfigError, OSError) as error:
            _log.warning("%s stay as they were: %s", self._name, error)
            return False
        _log.info("read %s", self._told(self.content))
        return True

    def _look(self) -> tuple[object, ...]:
        return tuple(map(_version, self._paths))


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
