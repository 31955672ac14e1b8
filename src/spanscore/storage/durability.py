"""Stores received requests until they are scored, as `storage.durability` asks, and replays them after a restart."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from spanscore.messages.faults import reason_of
from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.slices import in_thread
from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.consumers import Take
from spanscore.receivers.intake.inflate import TooLarge
from spanscore.receivers.intake.intake import Intake
from spanscore.receivers.intake.requests import Busy
from spanscore.scoring.live_engine import LiveEngine
from spanscore.storage.directory import Directory
from spanscore.storage.replay import KINDS, Replay
from spanscore.storage.request_log import RequestLocation, Segment
from spanscore.storage.settings import StorageSettings
from spanscore.storage.storage import NeverKept, NotKept, Storage
from spanscore.storage.syncer import Synced
from spanscore.storage.turn_log import ids_of
from spanscore.storage.upkeep import Upkeep

_END_S: Final = 5.0
_NOT_SYNCED: Final = "the request could not be stored"
_REPLAYING: Final = "replaying stored requests"

_log = logging.getLogger(__name__)


class Durability:
    """The storage between the receivers and the engine: a request is stored before its spans are taken.

    Made in the event loop that serves, if the durability is not `none`. A request is acknowledged after it is written,
    or, with `power`, after it is synced to the disk. The data of a trace is deleted after its reports are sent.
    """

    keeps_pauses: Final = True

    def __init__(
        self,
        settings: StorageSettings,
        live: LiveEngine,
        admission: Admission,
        open_directory: Callable[[Path], Directory] = Directory,
    ) -> None:
        self._open_directory: Final = open_directory
        self._path: Final = settings.directory or default_directory(os.environ)
        interval_s = 0.0 if settings.durability == "power" else settings.sync_interval_s
        self._settings: Final = replace(settings, directory=self._path, sync_interval_s=interval_s)
        self._live: Final = live
        self._admission: Final = admission
        self._loop: Final = asyncio.get_running_loop()
        # Guards the storage: at the end, traces are scored on another thread than before.
        self._lock: Final = threading.Lock()
        self._directory: Directory | None = None
        self.storage: Storage | None = None
        """The storage on disk; None before the start."""
        self._segment: Segment | None = None
        self._written = self._durable = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._upkeep: Upkeep | None = None
        self.is_replaying = True
        """Whether stored requests of an earlier process are still being replayed."""
        live.ledger.subscribe(self)

    @property
    def trouble(self) -> str | None:
        """Why nothing can be kept, if there is a reason."""
        return _REPLAYING if self.is_replaying else self._opened.trouble

    def open(self) -> None:
        """Open the directory, so that no other process can. Nothing may be received before `replay` has returned.

        Raises:
            StorageError: the directory cannot be used.
        """
        self._directory = self._open_directory(self._path)
        self.storage = Storage(self._directory, self._settings, self._tell)
        self._upkeep = Upkeep(self.storage, self._lock, self._live)
        self._live.rest()

    async def replay(self, intake: Intake) -> None:
        """Replay the unfinished requests of an earlier process, in slices, so that other tasks run between them.

        If it is cancelled, the remaining requests stay stored for the next start.
        """
        await in_thread(self._restore_conversations)
        await Replay(self._opened.earlier, self._live, intake, lambda *request: partial(self._hold, *request)).run()
        self.is_replaying = False
        self._live.wake()
        self._care.start()

    def put(self, body: bytes, encoding: Encoding) -> Take:
        """Store a request unchanged, and return the function that takes its spans.

        Raises:
            Unavailable: it cannot be written now.
            TooLarge: it can never be written.
        """
        with self._lock:
            try:
                place = self._opened.append(KINDS[encoding], body)
            except NeverKept as error:
                raise TooLarge(str(error)) from error
            except NotKept as error:
                self._care.compact()
                raise self._admission.refusal(Busy.STORAGE, str(error)) from error
        self._written = place.write
        if place.segment is not self._segment or self._opened.is_short:
            self._segment = place.segment
            self._care.compact()
        return lambda spans, sizes: self._live.take(spans, sizes, partial(self._hold, place, sum(sizes)))

    async def stored(self) -> None:
        """Return when all that was written before is safe enough to be acknowledged.

        Raises:
            Unavailable: the disk did not take it.
        """
        if self._settings.sync_interval_s or self._written <= self._durable:
            return
        synced: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((self._written, synced))
        await synced

    def turn(self, record: bytes, needed: Callable[[], Iterable[bytes]], needed_size: int) -> None:
        """Store a turn of a conversation; see `TurnLog.add`."""
        with self._lock:
            if self._directory is not None:
                self._opened.turns.add(record, needed, needed_size)

    def finished(self, key: bytes, trace_ids: Collection[bytes]) -> None:
        """Store that a conversation is finished, before its report goes out: it is never reported twice."""
        with self._lock:
            if self._directory is not None:
                try:
                    self._opened.turns.finish(key, trace_ids)
                except OSError as error:
                    _log.error(
                        "storage: a finished conversation may be counted again after a restart: %s", error.strerror
                    )

    def monitors(self) -> bytes | None:
        """Return the stored state of monitors; None if there is none."""
        return self._opened.monitors.read()

    def keep_monitors(self, state: bytes) -> None:
        """Store the state of monitors, in place of the last one."""
        with self._lock:
            if self._directory is None:
                return
            try:
                self._opened.monitors.write(state)
            except OSError as error:
                _log.warning("storage: the state of monitors cannot be written: %s", reason_of(error))

    def scored(self, trace_id: bytes) -> None:
        """Note that a trace is scored; it is kept. Of a run from Kafka that pauses nothing is stored: it is closed."""
        with self._lock:
            if self._directory is not None:  # else it took too long: the trace is scored again after the next start
                is_paused = self._live.engine.table.past.is_paused(trace_id)
                is_needed = self._live.ledger.is_needed(trace_id) and not is_paused
                is_kept = is_needed or self._opened.requests.has(trace_id)
                (self._opened.score_trace if is_kept else self._opened.close_trace)(trace_id)

    def done(self, trace_id: bytes) -> None:
        """Keep nothing of a trace any more."""
        with self._lock:
            if self._directory is not None:
                self._opened.close_trace(trace_id)

    def only_in_memory(self) -> frozenset[bytes]:
        """Return the open traces that the next start could not restore completely, as stored files were removed."""
        with self._lock:
            found = frozenset() if self.storage is None else self.storage.only_in_memory()
        if found:
            _log.warning("storage: files were removed, so traces are scored as they are: %d", len(found))
        return found

    def can_restore(self, trace_id: bytes) -> bool:
        """Return whether the next start could restore an open trace that was scored before."""
        with self._lock:
            return self.storage is not None and trace_id in self.storage.requests.kept

    def rest(self) -> None:
        """Close no more traces until `stop`."""
        if self._upkeep is not None:
            self._upkeep.rest()

    async def stop(self) -> None:
        """Write no more, and let another process have the directory. What is not scored or not sent is kept for it."""
        if self._upkeep is not None:
            await self._upkeep.stop()
            self._live.ledger.settle()
        with self._lock:
            storage, directory, self._directory = self.storage, self._directory, None
        if storage is not None:
            in_time = await asyncio.to_thread(storage.end, _END_S)
            if not in_time:
                _log.warning("storage: the disk took longer than %g s", _END_S)
        if directory is not None:
            directory.unlock()

    @property
    def _opened(self) -> Storage:
        assert self.storage is not None  # noqa: S101 - nothing is received before the start
        return self.storage

    @property
    def _care(self) -> Upkeep:
        assert self._upkeep is not None  # noqa: S101 - as above
        return self._upkeep

    def _hold(
        self,
        place: RequestLocation,
        all_sizes: int,
        spans: Sequence[Span],
        sizes: Sequence[int],
        *,
        is_last: bool,
    ) -> None:
        """Keep a request for the traces of spans of it that were just taken."""
        found: defaultdict[bytes, int] = defaultdict(int)
        for span, size in zip(spans, sizes, strict=True):
            found[span.trace_id] += size
        needed = {trace_id: size for trace_id, size in found.items() if self._live.ledger.is_needed(trace_id)}
        with self._lock:
            for trace_id in found.keys() - needed.keys():  # late: they must not begin it anew after a restart
                if not self._live.ledger.is_kept(trace_id):
                    self._opened.close_trace(trace_id, place.sequence)
            self._opened.requests.hold(place, needed, all_sizes, is_last=is_last)

    def _restore_conversations(self) -> None:
        conversations, earlier = self._live.engine.conversations, self._opened.earlier
        if conversations is not None:
            conversations.journal = self
        for note in earlier.finished_conversations():
            if conversations is not None:
                conversations.restore_finished(*ids_of(note))
        for record in earlier.turns():
            if conversations is not None:
                try:
                    conversations.restore_turn(record, time.monotonic())
                except (ValueError, KeyError, TypeError):
                    earlier.lost += 1
                    _log.error("storage: a turn of a conversation cannot be read any more")
        if conversations is None:
            self._opened.turns.clear()
        elif number := conversations.counts().open:
            _log.info("conversations of an earlier process that go on: %d", number)

    def _tell(self, result: Synced) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._synced, result)

    def _synced(self, result: Synced) -> None:
        with self._lock:
            self._opened.synced(result)
        self._durable = result.writes
        waiting, self._waiting = self._waiting, []
        for write, synced in waiting:
            if write > result.writes:
                self._waiting.append((write, synced))
            elif synced.done():
                continue
            elif result.failed or result.names_failed:
                synced.set_exception(self._admission.refusal(Busy.STORAGE, _NOT_SYNCED))
            else:
                synced.set_result(None)


def default_directory(environment: Mapping[str, str]) -> Path:
    """Return the default directory of the storage, by the XDG specification for state data."""
    home = environment.get("XDG_STATE_HOME", "")
    states = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    return states / "spanscore"
