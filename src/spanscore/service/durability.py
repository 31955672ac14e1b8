"""Keeps what is received until it is scored, as `storage.durability` asks, and takes it in again after a restart."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from spanscore.config import Config
from spanscore.contracts import KnowsWhatItWrote
from spanscore.intake.admission import Admission
from spanscore.intake.inflate import TooLarge
from spanscore.intake.intake import Intake
from spanscore.intake.requests import Busy
from spanscore.model import Span, Trace
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.narrowed import narrowed
from spanscore.otlp.slices import Steps, in_slices, in_thread
from spanscore.service.live_engine import LiveEngine, Taken
from spanscore.service.pages import OK
from spanscore.service.unsent import Unsent
from spanscore.storage.files import Directory
from spanscore.storage.records import Kind
from spanscore.storage.request_log import Place, Segment
from spanscore.storage.settings import StorageSettings
from spanscore.storage.storage import Compaction, NeverKept, NotKept, Storage, StoredRequest
from spanscore.storage.syncer import Synced

_SYNC_INTERVAL_S: Final = 0.1
_LOOK_AFTER_S: Final = 1.0
_END_S: Final = 5.0
_COMPACT_AGAIN_S: Final = 10.0
"""A disk that did not take a segment written anew is left alone for so long."""
_NOT_SYNCED: Final = "what was sent could not be stored"
_REPLAYING: Final = "replaying what an earlier process kept"

_KINDS: Final[Mapping[Encoding, Kind]] = {Encoding.PROTOBUF: Kind.PROTOBUF, Encoding.JSON: Kind.JSON}
_ENCODINGS: Final = {kind: encoding for encoding, kind in _KINDS.items()}

_log = logging.getLogger(__name__)


class Durability:
    """Stands between the receivers and the engine: a request is written down before its spans are taken.

    Made in the event loop that serves. What is received is acknowledged when it is written down, or, with `power`, when
    the disk has it. What a trace left behind is deleted when all of its reports were emitted.

    Args:
        config: what `Config.for_serve` completed, with a durability that is not `none`.
        live: what spans go to.
        admission: makes the answers to senders that are sent away.
        open_directory: opens the directory, and locks it.
    """

    def __init__(
        self,
        config: Config,
        live: LiveEngine,
        admission: Admission,
        open_directory: Callable[[Path], Directory] = Directory,
    ) -> None:
        self._open_directory: Final = open_directory
        self._path: Final = config.storage.directory or default_directory(os.environ)
        self._settings: Final = StorageSettings(
            max_size=config.storage.max_size,
            remember=config.traces.remember_traces,
            sync_interval_s=0.0 if config.storage.durability == "power" else _SYNC_INTERVAL_S,
        )
        self._live: Final = live
        self._admission: Final = admission
        self._loop: Final = asyncio.get_running_loop()
        # Guards the storage: at the end, traces are scored on another thread than before.
        self._lock: Final = threading.Lock()
        self._directory: Directory | None = None
        self._storage: Storage | None = None
        self._place: Place | None = None
        self._segment: Segment | None = None
        self._written = self._durable = 0
        self._unsent: Final = Unsent(live.engine.emitters.values())
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_replaying = True
        self._resting = False
        self._compacting: asyncio.Task[None] | None = None
        self._compact_again_at = 0.0

    @property
    def storage(self) -> Storage | None:
        """What is on disk; None before the start."""
        return self._storage

    @property
    def is_replaying(self) -> bool:
        """Whether what an earlier process kept is not all taken in again yet."""
        return self._is_replaying

    @property
    def readiness(self) -> str:
        """`ok`, or why nothing can be kept."""
        return _REPLAYING if self._is_replaying else (self._opened.trouble or OK)

    def open(self) -> None:
        """Open the directory, so that no other process can. Nothing may be received before `replay` has returned.

        Raises:
            StorageError: the directory cannot be used.
        """
        self._directory = self._open_directory(self._path)
        self._storage = Storage(self._directory, self._settings, self._tell)
        self._live.engine.on_scored = self._scored
        self._live.rest()

    async def replay(self, intake: Intake) -> None:
        """Take in again what an earlier process did not finish, in slices, so that others in the loop have their turns.

        When it is cancelled, what was not taken in is left for the next start.
        """
        closed = await in_thread(lambda: self._closed_before(self._opened))
        now = time.monotonic()
        restored = 0
        requests = self._opened.requests()
        while (request := await in_thread(lambda: next(requests, None))) is not None:
            restored += await self._restore(request, intake, now, closed)
            # As before the restart: what was complete then is scored before the next request comes.
            await self._live.catch_up(now - request.age_s)
        if restored:
            _log.info("took %d spans of an earlier process in again", restored)
        self._is_replaying = False
        self._live.wake()
        self._timer = self._loop.call_later(_LOOK_AFTER_S, self._look_after)

    def put(self, body: bytes, encoding: Encoding) -> None:
        """Write a request down, as it came.

        Raises:
            Unavailable: it is not written.
            TooLarge: it never will be.
        """
        self._let_go_untaken()
        with self._lock:
            try:
                self._place = self._opened.append(_KINDS[encoding], body)
            except NeverKept as error:
                raise TooLarge(str(error)) from error
            except NotKept as error:
                self._compact()
                raise self._admission.refusal(Busy.STORAGE, str(error)) from error
        self._written = self._place.write
        if self._place.segment is not self._segment or self._opened.is_short:
            self._segment = self._place.segment
            self._compact()

    def take(self, spans: Sequence[Span], sizes: Sequence[int]) -> None:
        """Hand on the spans of the request written last."""
        place, self._place = self._place, None
        assert place is not None  # noqa: S101 - it was put before
        self._live.take(spans, sizes, self._holding(place, sum(sizes)))

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

    def only_in_memory(self) -> frozenset[bytes]:
        """Return the open traces that the next start would not find whole, as somebody removed what was stored."""
        with self._lock:
            found = frozenset() if self._storage is None else self._storage.only_in_memory()
        if found:
            _log.warning("storage: files were removed, so traces are scored as they are: %d", len(found))
        return found

    def rest(self) -> None:
        """Close no more traces until `stop` tells whether everything was sent."""
        self._resting = True
        if self._timer is not None:
            self._timer.cancel()

    async def stop(self, *, all_sent: bool) -> None:
        """Write no more, and let another process have the directory. What is not scored or not sent is kept for it."""
        self.rest()
        if self._compacting is not None:
            with suppress(Exception):
                await self._compacting
        with self._lock:
            if all_sent and self._storage is not None:
                self._close_sent()
            storage, directory, self._directory = self._storage, self._directory, None
        if storage is not None:
            in_time = await asyncio.to_thread(storage.end, _END_S, is_complete=not self._is_replaying)
            if not in_time:
                _log.warning("storage: the disk took longer than %g s", _END_S)
        if directory is not None:
            directory.unlock()

    @property
    def _opened(self) -> Storage:
        assert self._storage is not None  # noqa: S101 - nothing is received before the start
        return self._storage

    async def _restore(self, request: StoredRequest, intake: Intake, now: float, closed: Mapping[bytes, int]) -> int:
        def is_wanted(trace_id: bytes) -> bool:
            return closed.get(trace_id, 0) < request.sequence

        spans: Sequence[Span] = ()
        try:
            spans, sizes, all_sizes = await intake.take_again(request.body, _ENCODINGS[Kind(request.kind)], is_wanted)
            if spans:
                self._expect_repeats({span.trace_id for span in spans})
                await self._live.restore(spans, sizes, now - request.age_s, self._holding(request.place, all_sizes))
        except MalformedRequest:
            _log.error("storage: a request cannot be read any more")
        except Exception:  # noqa: BLE001 - one request must not keep the process from starting, again and again
            _log.exception("a request that was stored could not be taken in again")
        return len(spans)

    def _closed_before(self, storage: Storage) -> dict[bytes, int]:
        """Return the traces that are closed, and the number of the last request that this concerns."""
        closed: dict[bytes, int] = {}
        engine = self._live.engine
        for trace_id, sequence, is_sent, may_come_again in storage.closed_traces():
            if not is_sent:
                engine.counted.add(trace_id)
                continue
            engine.counted.discard(trace_id)
            if sequence >= storage.first_request:
                closed[trace_id] = sequence
            if may_come_again:
                engine.table.remember(trace_id)
        return closed

    def _expect_repeats(self, trace_ids: Collection[bytes]) -> None:
        for emitter in self._live.engine.emitters.values():
            if isinstance(emitter, KnowsWhatItWrote):
                emitter.expect_repeats(trace_ids)

    def _holding(self, place: Place, all_sizes: int) -> Taken:
        """Return what is to be told of a request's spans as they are taken: it is kept for their traces."""

        def hold(spans: Sequence[Span], sizes: Sequence[int], is_last: bool) -> None:  # noqa: FBT001 - it is a callback
            found: Counter[bytes] = Counter()
            for span, size in zip(spans, sizes, strict=True):
                found[span.trace_id] += size
            needed = {trace_id: size for trace_id, size in found.items() if self._is_needed(trace_id)}
            with self._lock:
                for trace_id in found.keys() - needed.keys():  # late: they must not begin it anew after a restart
                    self._opened.close_trace(trace_id, place.sequence)
                self._opened.hold(place, needed, all_sizes, is_last=is_last)

        return hold

    def _let_go_untaken(self) -> None:
        """Keep no request that was written and then not taken."""
        if self._place is not None:
            with self._lock:
                self._opened.hold(self._place, {}, 0)
            self._place = None

    def _scored(self, trace: Trace) -> None:
        with self._lock:
            if self._directory is None:  # it took too long: the trace is scored again after the next start
                return
            # A span that came since then is not part of what is scored: its request must not be taken for done.
            if self._unsent.add(trace.trace_id) or self._live.engine.is_open(trace.trace_id):
                self._opened.score_trace(trace.trace_id)
            else:
                self._opened.close_trace(trace.trace_id)

    def _close_sent(self) -> None:
        for trace_id in self._unsent.sent():
            if not self._live.engine.is_open(trace_id):
                self._opened.close_trace(trace_id)

    def _is_needed(self, trace_id: bytes) -> bool:
        return trace_id in self._unsent or self._live.engine.is_open(trace_id)

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

    def _look_after(self) -> None:
        with self._lock:
            self._close_sent()
            self._opened.look_after()
        self._compact()
        self._timer = self._loop.call_later(_LOOK_AFTER_S, self._look_after)

    def _compact(self) -> None:
        if self._compacting is None and time.monotonic() >= self._compact_again_at:
            self._compacting = self._loop.create_task(self._compact_all())

    async def _compact_all(self) -> None:
        try:
            while (job := self._next_compaction()) is not None or await self._make_room():
                if job is None:
                    continue
                result = await asyncio.to_thread(job.run, _narrow)
                with self._lock:
                    self._opened.compacted(job.segment, result)
        except OSError as error:
            self._compact_again_at = time.monotonic() + _COMPACT_AGAIN_S
            _log.warning("storage: a segment could not be written anew: %s", (error.strerror or str(error)).lower())
        finally:
            self._compacting = None

    async def _make_room(self) -> bool:
        """Close the traces that keep the most where room is short, a few at a time; return whether there were any."""
        with self._lock:
            giving_way = [] if self._resting else self._opened.giving_way()
        await in_slices(self._evicting(giving_way))
        return bool(giving_way)

    def _evicting(self, trace_ids: Iterable[bytes]) -> Steps[None]:
        for trace_id in trace_ids:
            if self._resting:  # another thread has the engine now
                return
            self._live.evict(trace_id)
            yield

    def _next_compaction(self) -> Compaction | None:
        with self._lock:
            return None if self._resting else self._opened.compaction(self._is_needed)


def default_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory that holds where none is configured: the one of the XDG specification for states."""
    home = environment.get("XDG_STATE_HOME", "")
    states = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    return states / "spanscore"


def _narrow(kind: int, body: bytes, trace_ids: frozenset[bytes]) -> bytes:
    try:
        return narrowed(body, _ENCODINGS[Kind(kind)], trace_ids)
    except MalformedRequest:  # it was decoded before: kept whole, it is not lost
        return body
