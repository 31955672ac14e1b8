"""What is stored, how much, and how surely: the section `storage`, its defaults, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from annotated_types import Gt

from spanscore.settings import ByPlace, Example, FilePath, Internal, Size

_SEGMENT_SIZE: Final = 64 * 2**20
_SEGMENTS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSettings:
    """What survives an end of the process."""

    durability: Annotated[Literal["none", "crash", "power"], ByPlace()] = "crash"
    """What accepted spans survive: nothing (default inside a process), the death of the process (default of the
    receivers), or the loss of power too."""
    directory: Annotated[FilePath | None, Example("/var/lib/spanscore")] = None
    """Where spans are kept until they are scored; the XDG state directory by default."""
    max_size: Annotated[Size, Gt(0)] = 2**30
    """Refuse spans, with a request to retry, when this much is kept."""
    remember: Annotated[int, Internal()] = 1_000_000
    """So many closed traces are still known after a restart."""
    sync_interval_s: Annotated[float, Internal()] = 0.1
    """How long what is written may wait until it is made to survive a loss of power; 0: it does not wait."""
    compact_after_s: Annotated[float, Internal()] = 300.0
    """From this age on, a segment is written anew when most of it is not needed; earlier where room gets short."""

    @property
    def segment_size(self) -> int:
        """The size of a segment."""
        return min(_SEGMENT_SIZE, self.max_size // _SEGMENTS)
