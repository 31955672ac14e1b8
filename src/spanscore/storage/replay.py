"""Replays the requests that an earlier process stored and did not finish."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from spanscore.contracts import KnowsWhatItWrote
from spanscore.messages.faults import contained
from spanscore.model import Span, reported_trace_id
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.slices import in_thread
from spanscore.receivers.intake.intake import Intake
from spanscore.scoring.live_engine import LiveEngine, TakenCallback
from spanscore.storage.earlier import Earlier, StoredRequest
from spanscore.storage.records import Kind
from spanscore.storage.request_log import RequestLocation

KINDS: Final[Mapping[Encoding, Kind]] = {
    Encoding.PROTOBUF: Kind.PROTOBUF,
    Encoding.JSON: Kind.JSON,
    Encoding.LOGS: Kind.LOGS,
}
ENCODINGS: Final = {kind: encoding for encoding, kind in KINDS.items()}

Hold: TypeAlias = Callable[[RequestLocation, int], TakenCallback]
"""Returns the callback for the spans of the request at that place; takes the size of all of its spans."""

_SLICE_S: Final = 0.02
"""The time of replaying before other tasks in the loop run: however many senders are refused, it has its share."""

_log = logging.getLogger(__name__)


class Replay:
    """One replay, in slices, so that other tasks in the loop run between them.

    Args:
        earlier: the stored data. Nothing is written to the storage meanwhile.
        live: takes the spans.
        intake: decodes requests, and sends spans on.
        hold: returns the callback that keeps a request for its spans that are taken.
    """

    def __init__(self, earlier: Earlier, live: LiveEngine, intake: Intake, hold: Hold) -> None:
        self._earlier: Final = earlier
        self._live: Final = live
        self._intake: Final = intake
        self._hold: Final = hold
        self._knowing: Final = [each for each in live.engine.emitters.values() if isinstance(each, KnowsWhatItWrote)]
        self._scored: Final[deque[tuple[int, bytes]]] = deque()
        """The traces that are scored and kept, after the request with that number."""
        self._times_scored: Final[Counter[bytes]] = Counter()
        self._run: int | None = None
        """The process that received the last request."""
        self._closed: Mapping[bytes, int] = {}
        """The traces that are closed, and the number of the last request that this concerns."""

    async def run(self) -> None:
        """Replay everything. If it is cancelled, the remaining requests stay stored for the next start."""
        self._closed = await in_thread(self._closed_before)
        now = time.monotonic()
        restored = 0
        requests = self._earlier.requests()
        self._earlier.note_replayed(0)
        until = now + _SLICE_S
        while (some := await in_thread(lambda: next(requests, None))) is not None:
            for request in some:
                restored += await self._replay(request, now - request.age_s)
                if time.monotonic() >= until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + _SLICE_S
        await self._repeat_closings(None)
        self._earlier.note_replayed(None)
        self._live.engine.table.resumed(time.monotonic())  # senders could send nothing meanwhile
        if restored:
            _log.info("replayed %d stored spans", restored)

    async def _replay(self, request: StoredRequest, received_at: float) -> int:
        """Replay one request, and return the number of its spans that are taken."""
        await self._repeat_closings(request.sequence)
        if request.run != self._run:
            self._run = request.run
            self._live.engine.table.resumed(received_at)
        restored = await self._restore(request, received_at)
        self._earlier.note_replayed(request.sequence)
        # As before the restart: traces that were complete by then are scored before the next request is taken.
        await self._live.catch_up(received_at)
        return restored

    def _closed_before(self) -> dict[bytes, int]:
        closed: dict[bytes, int] = {}
        scored: dict[bytes, list[int]] = {}
        engine, first_request = self._live.engine, self._earlier.first_request
        for trace_id, sequence, is_sent in self._earlier.closed_traces():
            if not is_sent:
                scored.setdefault(trace_id, []).append(sequence)
                continue
            scored.pop(trace_id, None)
            if sequence >= first_request:
                closed[trace_id] = sequence
            engine.table.remember(trace_id)
        engine.note_counted(scored)
        self._scored.extend(
            sorted((sequence, trace_id) for trace_id, sequences in scored.items() for sequence in sequences)
        )
        self._times_scored.update({trace_id: len(sequences) for trace_id, sequences in scored.items()})
        return closed

    async def _repeat_closings(self, before: int | None) -> None:
        """Close again the traces that were scored, and are kept, before a request: what follows is their next revision.

        Without a request, all of them.
        """
        is_any = False
        while self._scored and (before is None or self._scored[0][0] < before):
            _, trace_id = self._scored.popleft()
            self._times_scored[trace_id] -= 1
            self._live.engine.repeat_closing(trace_id, is_last=not self._times_scored[trace_id])
            is_any = True
        if is_any:
            await self._live.catch_up(-math.inf)  # closes no others

    async def _restore(self, request: StoredRequest, received_at: float) -> int:
        def is_wanted(trace_id: bytes) -> bool:
            return self._closed.get(trace_id, 0) < request.sequence

        spans: Sequence[Span] = ()
        try:
            encoding = ENCODINGS[Kind(request.kind)]
            spans, sizes, all_sizes = await self._intake.take_again(request.body, encoding, is_wanted)
            if spans:
                for emitter in self._knowing:
                    contained(
                        emitter, partial(emitter.expect_repeats, {reported_trace_id(span.trace_id) for span in spans})
                    )
                await self._live.restore(spans, sizes, received_at, self._hold(request.place, all_sizes))
        except MalformedRequest:
            self._earlier.lost += 1
            _log.error("storage: a stored request cannot be read; its spans are lost")
        except Exception:  # noqa: BLE001 - one request must not keep the process from starting, again and again
            self._earlier.lost += 1
            _log.exception("storage: a stored request could not be replayed")
        return len(spans)
