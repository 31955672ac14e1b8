"""The maintenance of the storage: deletes unneeded files, compacts partly needed ones, and makes room."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from threading import Lock
from typing import Final

from spanscore.messages.faults import reason_of
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.forwardable import narrowed
from spanscore.otlp.slices import Steps, in_slices
from spanscore.scoring.live_engine import LiveEngine
from spanscore.storage.records import Kind
from spanscore.storage.replay import ENCODINGS
from spanscore.storage.storage import Storage

_EVERY_S: Final = 1.0
_COMPACT_AGAIN_S: Final = 10.0
"""A disk that did not take a segment written anew is left alone for so long."""

_log = logging.getLogger(__name__)


class Upkeep:
    """Looks after a storage, which a lock guards, in the event loop that made it."""

    def __init__(self, storage: Storage, lock: Lock, live: LiveEngine) -> None:
        self._storage: Final = storage
        self._lock: Final = lock
        self._live: Final = live
        self._loop: Final = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_resting = False
        self._compacting: asyncio.Task[None] | None = None
        self._compact_again_at = 0.0

    def start(self) -> None:
        """Look after it from now on."""
        self._timer = self._loop.call_later(_EVERY_S, self._look_after)

    def compact(self) -> None:
        """Compact segments if worth it, and close traces if room is short, unless a compaction is running."""
        if self._compacting is None and time.monotonic() >= self._compact_again_at:
            self._compacting = self._loop.create_task(self._compact_all())

    def rest(self) -> None:
        """Begin nothing more."""
        self._is_resting = True
        if self._timer is not None:
            self._timer.cancel()

    async def stop(self) -> None:
        """Start no more work, and wait for the running compaction."""
        self.rest()
        if self._compacting is not None:
            with suppress(Exception):
                await self._compacting

    def _look_after(self) -> None:
        self._live.ledger.settle()
        with self._lock:
            self._storage.look_after()
        self.compact()
        self.start()

    async def _compact_all(self) -> None:
        try:
            while not self._is_resting and await self._free():
                pass
        except OSError as error:
            self._compact_again_at = time.monotonic() + _COMPACT_AGAIN_S
            _log.warning("storage: a file could not be compacted: %s", reason_of(error))
        finally:
            self._compacting = None

    async def _free(self) -> bool:
        """Compact a segment, or else release pauses, or else close traces; return whether there was any of it to do."""
        with self._lock:
            job = self._storage.compaction(self._live.ledger.is_kept)
        if job is not None:
            result = await asyncio.to_thread(job.run, _narrow)
            with self._lock:
                self._storage.compacted(job.segment, result)
            return True
        with self._lock:
            if self._storage.let_go_of_pauses(self._live.ledger.is_paused):
                return True
            chosen = self._storage.make_room()
        await in_slices(self._evicting(chosen))
        return bool(chosen)

    def _evicting(self, trace_ids: Iterable[bytes]) -> Steps[None]:
        for trace_id in trace_ids:
            if self._is_resting:  # another thread has the engine now
                return
            self._live.evict(trace_id)
            yield


def _narrow(kind: int, body: bytes, trace_ids: Collection[bytes]) -> bytes:
    try:
        return narrowed(body, ENCODINGS[Kind(kind)], trace_ids)
    except MalformedRequest:  # it was decoded before: kept whole, it is not lost
        return body
