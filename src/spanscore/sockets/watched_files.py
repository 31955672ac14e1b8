"""Files that are read again when they have changed: certificates and tokens are replaced while we run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

_LOOK_AGAIN_S: Final = 1.0


class WatchedFiles:
    """Knows whether files have changed since they were last asked about; looks at them once a second at most.

    Made before the files are read for the first time, so that no change is missed.

    Args:
        paths: the files.
        clock: seconds that never run backwards.
    """

    def __init__(self, paths: Iterable[Path], clock: Callable[[], float] = time.monotonic) -> None:
        self._paths = tuple(paths)
        self._clock = clock
        self._versions = self._look()
        self._looked_at = clock()

    def changed(self) -> bool:
        """Return whether one of the files is another one than at the last look; each change is told once."""
        now = self._clock()
        if now - self._looked_at < _LOOK_AGAIN_S:
            return False
        self._looked_at = now
        before, self._versions = self._versions, self._look()
        return self._versions != before

    def _look(self) -> tuple[object, ...]:
        return tuple(map(_version, self._paths))


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
