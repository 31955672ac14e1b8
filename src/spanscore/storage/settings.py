"""How much is stored, and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_SEGMENT_SIZE: Final = 64 * 2**20
_SEGMENTS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """How much is kept, and how surely."""

    max_size: int = 2**30
    """In bytes; requests that would go beyond are refused."""
    remember: int = 1_000_000
    """So many closed traces are still known after a restart."""
    sync_interval_s: float = 0.1
    """How long what is written may wait until it is made to survive a loss of power; 0: it does not wait."""

    compact_after_s: float = 300.0
    """From this age on, a segment is written anew when most of it is not needed; earlier where room gets short."""

    @property
    def segment_size(self) -> int:
        """The size of a segment."""
        return min(_SEGMENT_SIZE, self.max_size // _SEGMENTS)
