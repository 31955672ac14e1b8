"""The section `storage` of the configuration, its defaults, and internal settings."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from annotated_types import Gt

from spanscore.contracts.settings import ByPlace, Example, FilePath, Internal, Size

CAN_STORE: Final = hasattr(os, "O_DIRECTORY")
"""Whether this system can keep a directory open, and name files by it. Windows cannot."""
_SEGMENT_SIZE: Final = 64 * 2**20
_SEGMENTS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """The storage of accepted spans across restarts."""

    durability: Annotated[Literal["none", "crash", "power"], ByPlace()] = "crash"
    """The events that accepted spans survive: `none` (default inside a process and on Windows), `crash` of the
    process (default of the receivers), or loss of `power`, too. On Windows there is only `none`."""
    directory: Annotated[FilePath | None, Example("/var/lib/spanscore")] = None
    """The directory for spans until they are scored; the XDG state directory by default."""
    max_size: Annotated[Size, Gt(0)] = 2**30
    """Refuse spans, with a request to retry, when this much is kept."""
    remember: Annotated[int, Internal()] = 1_000_000
    """So many closed traces are still known after a restart."""
    sync_interval_s: Annotated[float, Internal()] = 0.1
    """The longest time in seconds until written data is synced; 0: synced at once."""
    compact_after_s: Annotated[float, Internal()] = 300.0
    """From this age on, a segment is written anew when most of it is not needed; earlier where room gets short."""

    @property
    def segment_size(self) -> int:
        """The size of a segment."""
        return min(_SEGMENT_SIZE, self.max_size // _SEGMENTS)
