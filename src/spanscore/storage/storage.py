"""The storage of requests until their traces are scored, as the receivers use it."""

from __future__ import annotations

import errno
import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from spanscore.messages.faults import reason_of
from spanscore.storage.compaction import UNFINISHED, Compacted, Compaction, compact
from spanscore.storage.directory import Files, StorageError
from spanscore.storage.earlier import Earlier
from spanscore.storage.id_log import CLOSED, IdLog
from spanscore.storage.log_file import Disk
from spanscore.storage.monitors_file import MonitorsFile
from spanscore.storage.records import RECORD_HEADER_SIZE, Kind
from spanscore.storage.recovery import find
from spanscore.storage.request_log import RequestLocation, RequestLog, Segment
from spanscore.storage.room import Room
from spanscore.storage.settings import StorageSettings
from spanscore.storage.syncer import Synced, Syncer, Tell
from spanscore.storage.trouble import Trouble
from spanscore.storage.turn_log import TurnLog

FULL: Final = "full"
TOO_LARGE: Final = "too_large"

_FULL: Final = "the storage is full"
_GONE: Final = "the directory was removed, or another one is in its place"
_TOO_LARGE: Final = "the storage has no room for so large a request now"

_CLOSED_SHARE: Final = 8
_TRACE_ID_SIZE: Final = 16

_log = logging.getLogger(__name__)


class NotKept(Exception):  # noqa: N818 - what the sender is told, and not an error of ours
    """A request could not be kept: it must not be acknowledged, and the sender should send it again."""


class NeverKept(NotKept):
    """A request could not be kept, and could not be later either: it is of no use to send it again."""


class Storage:
    """Keeps requests on disk until their traces are closed.

    Belongs to one thread. After a restart, read `earlier` to its end before the first `append`.

    Args:
        files: the directory, used by this object alone.
        settings: the limits and the durability.
        tell: called after each round of syncing, on the syncer's thread; pass its argument to `synced` on the owner's.

    Raises:
        StorageError: the directory cannot be read, or has files of another version.
    """

    def __init__(self, files: Files, settings: StorageSettings, tell: Tell) -> None:
        self.sync_failures = 0
        self.refused: Final[Counter[str]] = Counter()
        """The number of requests that could not be stored, by reason."""
        self._files: Final = files
        self._settings: Final = settings
        self._room: Final = Room(settings.max_size)
        found = find(files)
        self._syncer: Final = Syncer(files, settings.sync_interval_s, tell)
        self._disk: Final = Disk(files=files, syncer=self._syncer, run=secrets.randbits(63) + 1)
        self.requests: Final = RequestLog(self._disk, settings.segment_size)
        """The stored requests. Call its `hold` for each request, in the order in which they were appended."""
        most = max(1, settings.max_size // _CLOSED_SHARE // (RECORD_HEADER_SIZE + _TRACE_ID_SIZE))
        remember = min(settings.remember, most)
        self._closed: Final = IdLog(self._disk, CLOSED, remember, most)
        self.turns: Final = TurnLog(self._disk, remember, most)
        """The stored turns of conversations."""
        self.monitors: Final = MonitorsFile(self._disk)
        self.earlier: Final = Earlier(files, found, self.requests, self._closed, self.turns)
        """The data of earlier processes."""
        self.pauses_given_up = 0
        """The number of traces with a run that pauses that were released to make room."""
        self._trouble: Final = Trouble(files)
        self._lost = 0
        """The number of needed records whose files were removed, and of requests that were damaged meanwhile."""
        self._gone = False
        """The directory is not there, so that nothing can be kept."""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.requests.size + self._closed.size + self.turns.size

    @property
    def lost(self) -> int:
        """Records that were damaged when they were to be read again, or removed."""
        return self.earlier.lost + self.monitors.lost + self._lost

    @property
    def capacity(self) -> int:
        """Bytes that there may be."""
        return self._settings.max_size

    @property
    def is_short(self) -> bool:
        """Whether so little room is left that `make_room` is due, too."""
        return self._room.is_short(self.size)

    @property
    def trouble(self) -> str:
        """Why requests are refused; empty when they are not."""
        return self._trouble.why

    def append(self, kind: int, body: bytes) -> RequestLocation:
        """Store a request; call `requests.hold` with its needed traces next.

        Raises:
            NotKept: it is not stored.
        """
        size = RECORD_HEADER_SIZE + len(body)
        if not self._room.fits(self.size, size):
            if size > (largest := self._room.largest):
                self.refused[TOO_LARGE] += 1
                raise NeverKept(f"the request is larger than the {largest} bytes that the storage has room for")
            if self._room.is_left(self.size):  # others are still taken: this is no trouble
                self.refused[FULL] += 1
                raise NotKept(_TOO_LARGE)
            raise self._refusal(FULL, _FULL)
        if self._gone:
            raise self._refusal_as_gone()
        try:
            place = self.requests.append(kind, body)
        except OSError as error:
            self._trouble.missing_size = len(body)
            if not self._files.is_there():
                raise self._refusal_as_gone() from error
            name = errno.errorcode.get(error.errno or 0, "OSError")
            raise self._refusal(name, f"cannot write: {reason_of(error)}") from error
        if self._trouble.why and self._trouble.why != _FULL:  # small requests still fit then
            self._trouble.end()
        return place

    def score_trace(self, trace_id: bytes) -> None:
        """Write down that a trace is scored, but keep it: its reports are on their way."""
        with suppress(OSError):  # it is tried again
            self._closed.append(Kind.SCORED, trace_id, self.requests.last_held, new=0)
        self.requests.scored(trace_id)

    def close_trace(self, trace_id: bytes, sequence: int | None = None) -> None:
        """Record that a trace is scored and sent, and release the requests that only it needs.

        This covers the requests up to the number `sequence`, the last one when the trace was closed; without it, up to
        the last one with a complete `hold`.
        """
        upto = self.requests.last_held if sequence is None else sequence
        with suppress(OSError):  # it is tried again
            self._closed.append(Kind.CLOSED, trace_id, upto, new=sequence is None)
        self.requests.release(trace_id)

    def synced(self, result: Synced) -> None:
        """Take note of a round of syncing."""
        if result.failed or result.names_failed:
            self.sync_failures += 1
        self.requests.synced(result)
        if result.failed:
            self._closed.not_synced(result.failed)
            self.turns.not_synced(result.failed)

    def only_in_memory(self) -> frozenset[bytes]:
        """Look for the files, and return the traces not scored yet that the next start would not find whole."""
        self._look_for_files()
        return frozenset(self.requests.open if self._gone else self.requests.forgotten)

    def look_after(self) -> None:
        """Delete unneeded files, and check whether there is room again. Call it about every second."""
        self._look_for_files()
        with suppress(OSError):
            self._closed.catch_up()
        self.turns.catch_up()
        self._syncer.delete(*self._closed.forget(self._first_needed))
        if self._gone:
            return
        if self._trouble.why == _FULL:
            if self._room.is_left(self.size):
                self._trouble.end()
        elif self._trouble.why:
            self._trouble.probe()

    def let_go_of_pauses(self, is_paused: Callable[[bytes], bool]) -> bool:
        """Release the runs that pause in the oldest file with any, and return whether there were any.

        Nothing is done unless room is short, or old requests keep many more ids of closed traces than are remembered.
        """
        if not self.is_short and not self._closed.is_held_up(self._first_needed):
            return False
        for segment in self.requests.segments:
            paused = list(filter(is_paused, segment.held))
            if paused:
                self.pauses_given_up += len(paused)
                for trace_id in paused:
                    self.close_trace(trace_id)
                return True
        return False

    def make_room(self) -> list[bytes]:
        """Return the open traces to close so that others have room; they do not count as open any more."""
        chosen = self._room.make_room(self.requests) if self.is_short else []
        if chosen:
            _log.warning("storage: room is short: traces closed because they kept the most of it: %d", len(chosen))
        return chosen

    def compaction(self, is_open: Callable[[bytes], bool]) -> Compaction | None:
        """Return a compaction, for any thread, that removes closed traces from a segment; None if none is worth it."""
        age_s = 0.0 if self._room.is_crowded(self.size) else self._settings.compact_after_s
        before = self._disk.monotonic_ns() / 1e9 - age_s
        segment = self.requests.worth_compacting(before, self._room.most_needed(self.size))
        if segment is None:
            return None
        for trace_id in [trace_id for trace_id in segment.held if not is_open(trace_id)]:
            self.requests.release(trace_id)
        wanted: defaultdict[int, set[bytes]] = defaultdict(set)
        for trace_id, held in segment.held.items():
            for offset in held.offsets:
                wanted[offset].add(trace_id)
        segment.written = segment.needed
        return Compaction(segment, partial(compact, self._files, segment.name, wanted))

    def compacted(self, segment: Segment, result: Compacted) -> None:
        """Put a segment that was written anew in the place of the old one.

        Raises:
            OSError: it stays as it was.
        """
        new_name = segment.name + UNFINISHED
        if segment not in self.requests.segments:  # all of its traces were closed meanwhile
            self._syncer.delete(new_name)
            return
        self._files.rename(new_name, segment.name)
        self._syncer.names_changed()
        self.requests.moved(segment, result.size, result.places)
        if result.lost:
            self._lost += result.lost
            _log.error("storage: %s is damaged; requests that are now only in memory: %d", segment.name, result.lost)

    def end(self, timeout_s: float) -> bool:
        """Stop writing, and sync all written data; False if that took longer than the timeout."""
        self.requests.end()
        self.turns.end()
        with suppress(OSError):  # traces that could not be recorded as closed are scored again after the next start
            self._closed.end()
        return self._syncer.end(timeout_s)

    @property
    def _first_needed(self) -> int:
        return self.requests.segments[0].number if self.requests.segments else self.requests.sequence + 1

    def _look_for_files(self) -> None:
        """Detect removed files, create the directory again, and count the requests that were in them."""
        if not self._files.is_there():
            self._note_gone()
            try:
                self._files.come_back()
            except (OSError, StorageError) as error:
                self._trouble.begin(str(error))
                return
        try:
            there = frozenset(self._files.names())
        except OSError:
            return
        records = self._closed.forget_missing(there) + self.turns.forget_missing(there)
        requests = self.requests.forget_missing(there)
        self._lost += records + requests
        if requests:
            _log.error("storage: files were removed; requests that are now only in memory: %d", requests)
        if records:
            _log.error("storage: files were removed; other records in them: %d", records)
        if self._gone:
            self._gone = False
            self._trouble.end()

    def _note_gone(self) -> None:
        if not self._gone:
            self._gone = True
            self._trouble.begin(f"{_GONE}: '{self._settings.directory}'; it is being made again")

    def _refusal_as_gone(self) -> NotKept:
        self._note_gone()
        self.refused[errno.errorcode[errno.ENOENT]] += 1
        return NotKept(_GONE)  # senders do not learn its path

    def _refusal(self, reason: str, why: str) -> NotKept:
        self.refused[reason] += 1
        self._trouble.begin(why)
        return NotKept(why)
