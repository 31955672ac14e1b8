"""Works a storage as a receiver does, with requests that are a few trace ids each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Final

from deadline import DEADLINE_S
from spanscore.storage.directory import Files
from spanscore.storage.records import Kind
from spanscore.storage.settings import StorageSettings
from spanscore.storage.storage import NotKept, Storage
from spanscore.storage.syncer import Synced

POWER: Final = StorageSettings(sync_interval_s=0)
PADDING: Final = 1_000


def trace_id(number: int) -> bytes:
    """Return the trace id that is this number."""
    return number.to_bytes(16, "big")


def request(*traces: int) -> bytes:
    """Return a request with spans of these traces."""
    return b"".join(trace_id(number) + bytes(PADDING) for number in traces)


def traces_of(body: bytes) -> list[int]:
    """Return the traces of a request."""
    return [int.from_bytes(body[start : start + 16], "big") for start in range(0, len(body), 16 + PADDING)]


def kind_of(traces: Sequence[int]) -> Kind:
    """Return what a request of these traces is: requests of logs stand among those of spans."""
    return Kind.PROTOBUF if traces[0] % 3 else Kind.LOGS


def narrow(kind: int, body: bytes, trace_ids: Collection[bytes]) -> bytes:
    """Return a request with the spans of these traces only."""
    return request(*(number for number in traces_of(body) if trace_id(number) in trace_ids))


class Kept:
    """A storage, and what is expected of it."""

    def __init__(self, files: Files, settings: StorageSettings = POWER) -> None:
        self.rounds: list[Synced] = []
        self._changed = threading.Condition()
        self.storage = Storage(files, settings, self._tell)
        self.restored: list[tuple[int, ...]] = []
        """The open traces of each request that an earlier process kept, in order."""
        self.ages_s: list[float] = []
        self.open: set[int] = set()
        self._writes: dict[int, int] = {}
        closed = {
            found.trace_id: found.sequence
            for found in self.storage.earlier.closed_traces()
            if found.sequence >= self.storage.earlier.first_request
        }
        for found in chain.from_iterable(self.storage.earlier.requests()):
            traces = [number for number in traces_of(found.body) if closed.get(trace_id(number), 0) < found.sequence]
            self.storage.requests.hold(found.place, _spans(traces), len(traces_of(found.body)))
            self.open.update(traces)
            if traces:
                self.restored.append(tuple(traces))
                self.ages_s.append(found.age_s)

    def put(self, *traces: int) -> bool:
        """Keep a request, and return whether it is written."""
        try:
            place = self.storage.append(kind_of(traces), request(*traces))
        except NotKept:
            return False
        self.storage.requests.hold(place, _spans(traces), len(traces))
        self.open.update(traces)
        self._writes[traces[0]] = place.write
        return True

    def put_safely(self, *traces: int) -> bool:
        """Keep a request, wait until it is synced, and return whether it may be acknowledged."""
        if not self.put(*traces):
            return False
        result = self.wait_for(self._writes[traces[0]])
        return not result.failed and not result.names_failed

    def synced_traces(self) -> set[int]:
        """Return the traces whose last request that names them first is synced."""
        with self._changed:
            writes = self.rounds[-1].writes if self.rounds else 0
        return {trace for trace, write in self._writes.items() if write <= writes}

    def close(self, *traces: int) -> None:
        """Have traces scored."""
        for number in traces:
            self.open.discard(number)
            self.storage.close_trace(trace_id(number))

    def compact(self) -> bool:
        """Write a segment anew, if one is worth it."""
        job = self.storage.compaction(lambda found: int.from_bytes(found, "big") in self.open)
        if job is None:
            return False
        self.storage.compacted(job.segment, job.run(narrow))
        return True

    def compact_if_possible(self) -> bool:
        """Do the same on a disk that may fail."""
        try:
            return self.compact()
        except OSError:
            return False

    def wait_for(self, write: int) -> Synced:
        """Return the round of syncing that this write was in."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.rounds and self.rounds[-1].writes >= write, DEADLINE_S)
            result = next(each for each in self.rounds if each.writes >= write)
        self.storage.synced(result)
        return result

    def _tell(self, result: Synced) -> None:
        with self._changed:
            self.rounds.append(result)
            self._changed.notify_all()


@contextmanager
def kept(files: Files, settings: StorageSettings = POWER) -> Iterator[Kept]:
    """Give a storage that ends as it should."""
    found = Kept(files, settings)
    try:
        yield found
    finally:
        assert found.storage.end(DEADLINE_S)


def sizes(files: Files) -> Mapping[str, int]:
    """Return the sizes of all files."""
    return {name: files.size(name) for name in files.names()}


def names(files: Files, end: str) -> Collection[str]:
    """Return the files whose names end so."""
    return sorted(name for name in files.names() if name.endswith(end))


def _spans(traces: Iterable[int]) -> dict[bytes, int]:
    return Counter(map(trace_id, traces))
