"""The requests that are kept, in segments: a segment goes when every trace with spans in it is scored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from spanscore.storage.log_file import Disk, LogFile
from spanscore.storage.records import FILE_HEADER_SIZE
from spanscore.storage.syncer import Synced

REQUESTS: Final = ".requests"

_GARBAGE: Final = 2**20
"""A segment in which nothing is needed goes at this size, and not only when it is full."""


@dataclass(slots=True, eq=False)
class _TraceShare:
    """The part of a segment that belongs to one trace."""

    offsets: list[int] = field(default_factory=list)
    """The offsets of its requests."""
    size: int = 0
    """The bytes of these requests that count for the trace: of each request, the share of the trace's spans."""


@dataclass(slots=True, eq=False)
class Segment:
    """A file of requests, and the open traces that have spans in it."""

    name: str
    number: int
    """Of its first request."""
    began_at: float
    size: int = 0
    held: dict[bytes, _TraceShare] = field(default_factory=dict)
    """The parts of open traces, by trace id."""
    needed: int = 0
    """The bytes of these parts."""
    written: int = 0
    """The bytes that were needed when its last compaction began."""
    suspect: bool = False
    """Whether a sync of it failed: its requests must be copied to another file."""
    file: LogFile | None = None
    """None for a file of an earlier process, and for one that is synced and will not grow."""
    full: bool = True
    """Whether nothing is appended any more."""
    removed: bool = False
    """Whether the file was removed from outside."""
    arriving: int = 0
    """The number of its requests without a `hold` yet; for a file of an earlier process 1 until `read_through`."""


class RequestLocation(NamedTuple):
    """The place of a request."""

    segment: Segment
    offset: int
    size: int
    write: int = 0
    """The number of the write, in the count of the syncer."""
    sequence: int = 0
    """The number of the request."""


class RequestLog:
    """Appends requests, and knows which of them are still needed. Segments grow up to a size."""

    def __init__(self, disk: Disk, segment_size: int) -> None:
        self.segments: Final[list[Segment]] = []
        """From old to new."""
        self.sequence = 0
        """The number of the last request."""
        self.size = 0
        self.open: Final[dict[bytes, int]] = {}
        """The stored bytes of each trace that is not scored yet, in the order of the first request of each."""
        self.open_size = 0
        """The sum of it."""
        self.kept: Final[set[bytes]] = set()
        """The traces that were scored and are still needed, and are open again perhaps."""
        self.forgotten: Final[set[bytes]] = set()
        """The traces that are not scored yet and lost a part in removed files."""
        self.disk: Final = disk
        self._segment_size: Final = segment_size
        self._current: tuple[Segment, LogFile] | None = None
        self.replayed: int | None = None
        """The number of the last request that was replayed, as long as there are others; else None."""
        self._arriving: Final[dict[int, RequestLocation]] = {}
        """The requests without a complete `hold` yet, by their number."""

    @property
    def last_held(self) -> int:
        """The number of the last request that, like all before it, has a complete `hold`."""
        return next(iter(self._arriving), self.sequence + 1) - 1 if self.replayed is None else self.replayed

    def append(self, kind: int, body: bytes) -> RequestLocation:
        """Write a request.

        Raises:
            OSError: it is not written, and the next one will go to a new file.
        """
        if self._current is not None:
            size = self._current[0].size
            if size + len(body) > self._segment_size and size > FILE_HEADER_SIZE:
                self._retire(self._current[0])
        segment, file = self._current or self._begin()
        self.sequence += 1
        try:
            offset = file.append(kind, self.sequence, body)
        except OSError:
            self._retire(segment)
            raise
        place = RequestLocation(segment, offset, file.size - offset, file.writes, self.sequence)
        self.size += file.size - segment.size
        segment.size = file.size
        segment.arriving += 1
        self._arriving[self.sequence] = place
        if segment.size >= self._segment_size:  # also where nothing follows, it may have to be written anew
            self._retire(segment)
        return place

    def adopt(self, segment: Segment) -> None:
        """Take over a file of an earlier process; it stays at least until `read_through`."""
        segment.arriving = 1
        self.segments.append(segment)
        self.size += segment.size

    def read_through(self, segment: Segment) -> None:
        """Let a file of an earlier process go, if nothing in it is needed."""
        segment.arriving = 0
        self._let_go(segment)

    def hold(self, place: RequestLocation, sizes: Mapping[bytes, int], all_sizes: int, *, is_last: bool = True) -> None:
        """Keep a request until the given traces are released; if there are none, it is no longer needed.

        Args:
            place: its place.
            sizes: the size of its spans by open trace, in any unit.
            all_sizes: the size of all of its spans, in that unit.
            is_last: whether these are the last of its spans; until then it is kept in any case, and a trace that is
                closed is closed without them.
        """
        segment = place.segment
        if segment.removed:
            self.forgotten.update(sizes)
            sizes = {}
        for trace_id, part in sizes.items():
            held = segment.held.get(trace_id)
            if held is None:
                held = segment.held[trace_id] = _TraceShare()
            size = place.size * part // max(1, all_sizes)
            if place.offset not in held.offsets[-1:]:
                held.offsets.append(place.offset)
            held.size += size
            segment.needed += size
            self.open[trace_id] = self.open.get(trace_id, 0) + size
            self.open_size += size
        if is_last:
            if self._arriving.pop(place.sequence, None) is not None:
                segment.arriving -= 1
            self._let_go(segment)

    def has(self, trace_id: bytes) -> bool:
        """Return whether requests of a trace are needed."""
        return trace_id in self.open or trace_id in self.kept

    def scored(self, trace_id: bytes) -> None:
        """Note that a trace is no longer open; its requests are still needed."""
        if trace_id in self.open:
            self.open_size -= self.open.pop(trace_id)
            self.kept.add(trace_id)
        self.forgotten.discard(trace_id)

    def release(self, trace_id: bytes) -> None:
        """Keep nothing for this trace any more."""
        self.scored(trace_id)
        self.kept.discard(trace_id)
        for segment in tuple(self.segments):
            held = segment.held.pop(trace_id, None)
            if held is not None:
                segment.needed -= held.size
                self._let_go(segment)

    def synced(self, result: Synced) -> None:
        """Retire files whose sync failed, and mark their requests to be copied to other files."""
        for segment in tuple(self.segments):
            file = segment.file
            if file is None:
                continue
            if file.file in result.failed:
                segment.suspect = True
                self._retire(segment)
            if segment.full and file.writes <= result.writes:
                segment.file = None

    def worth_compacting(self, began_before: float, most_needed: float) -> Segment | None:
        """Return the segment with the most unneeded bytes among partly needed ones; None if none is worth it.

        It was begun before that time, and at most that share of it is needed; or a sync of it failed.
        """
        full = [segment for segment in self.segments if segment.full and segment.held and not segment.arriving]
        suspect = next((segment for segment in full if segment.suspect), None)
        if suspect is not None:
            return suspect
        worth = [
            segment
            for segment in full
            if segment.began_at <= began_before
            and segment.size > FILE_HEADER_SIZE
            and segment.needed <= segment.size * most_needed
        ]
        return max(worth, key=lambda segment: segment.size - segment.needed, default=None)

    def moved(self, segment: Segment, size: int, places: Mapping[int, int]) -> None:
        """Learn that a segment was written anew: its size now, and where its requests lie now."""
        segment.needed = 0
        for trace_id, held in segment.held.items():
            held.offsets = [places[offset] for offset in held.offsets if offset in places]
            now = held.size * size // max(1, segment.written)
            if trace_id in self.open:
                self.open[trace_id] += now - held.size
                self.open_size += now - held.size
            held.size = now
            segment.needed += now
        segment.suspect = False
        self.size += size - segment.size
        segment.size = size

    def forget_missing(self, there: Collection[str]) -> int:
        """Forget the segments that are not in `there`, and return how many of their requests were needed."""
        lost = 0
        for segment in [segment for segment in self.segments if segment.name not in there]:
            arriving = [place for place in self._arriving.values() if place.segment is segment]
            needed = {offset for held in segment.held.values() for offset in held.offsets}
            lost += len(needed.union(place.offset for place in arriving))
            for place in arriving:
                del self._arriving[place.sequence]
            for trace_id, held in segment.held.items():
                if trace_id in self.open:
                    self.open[trace_id] -= held.size
                    self.open_size -= held.size
                    self.forgotten.add(trace_id)
            segment.held.clear()
            segment.arriving = 0
            segment.removed = True
            self._retire(segment)
        return lost

    def end(self) -> None:
        """Stop writing, and delete files that are not needed."""
        for segment in tuple(self.segments):
            self._retire(segment)

    def _begin(self) -> tuple[Segment, LogFile]:
        number = self.sequence + 1
        try:
            file = LogFile(self.disk, f"{number:016x}{REQUESTS}", has_gaps=False)
        except OSError:
            self.sequence = number  # the name may be taken
            raise
        began_at = self.disk.monotonic_ns() / 1e9
        segment = Segment(file.name, number, began_at, file.size, file=file, full=False)
        self.segments.append(segment)
        self.size += segment.size
        self._current = segment, file
        return self._current

    def _let_go(self, segment: Segment) -> None:
        """Delete a segment, if nothing in it is needed and it is worth it."""
        if segment.held or segment.arriving:
            return
        if segment.full or segment.size >= min(_GARBAGE, self._segment_size):
            self._retire(segment)

    def _retire(self, segment: Segment) -> None:
        """Let a segment grow no more, and delete it if nothing in it is needed."""
        if segment.file is not None and not segment.full:
            segment.file.close()
        segment.full = True
        if self._current is not None and segment is self._current[0]:
            self._current = None
        if not segment.held and not segment.arriving and segment in self.segments:
            self.segments.remove(segment)
            self.size -= segment.size
            self.disk.syncer.delete(segment.name)
