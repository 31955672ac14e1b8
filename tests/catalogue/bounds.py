"""What bad input may cost: processor time, and memory at its peak."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_FORGET_PEAK = Path("/proc/self/clear_refs")
_WATCHED = 5  # how much longer everything takes when coverage looks at every line


@contextmanager
def costs_at_most(*, cpu_s: float, mib: float | None = None) -> Iterator[None]:
    """Fail when what is done takes more processor time of this process, or more memory beyond what it has now.

    Time spent waiting for a processor does not count, so that a busy machine fails nothing. Memory is what the system
    has given to the process, that of libraries in C too.
    """
    gc.collect()
    before_kib = _kib("VmRSS")
    _FORGET_PEAK.write_text("5")
    began = time.process_time()
    yield
    spent_s = time.process_time() - began
    taken_mib = (_kib("VmHWM") - before_kib) / 1024
    assert spent_s <= cpu_s * (_WATCHED if sys.gettrace() else 1)
    assert mib is None or taken_mib <= mib


def resident_mib() -> float:
    """Return how much memory the process has."""
    gc.collect()
    return _kib("VmRSS") / 1024


def _kib(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(name)
