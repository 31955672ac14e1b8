"""The memory for requests that are being received."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_SHARE: Final = 8
_LEAST: Final = 128 * 2**20
_MOST: Final = 2**30
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def request_memory(limits: tuple[Path, ...] = _LIMITS) -> int:
    """Return how many bytes of memory all requests may take while they are read: an eighth of our memory.

    If the system does not say how much there is, the least that is useful: 128 MiB. The limits are files with limits of
    the system on the memory of this process, such as those of cgroups.
    """
    if not hasattr(os, "sysconf"):  # Windows
        return _LEAST
    there_is: int = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = min([there_is, *(limit for path in limits if (limit := _number(path)) is not None)])
    return min(_MOST, max(_LEAST, allowed // _SHARE))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such limit, or `max`
        return None
