"""Takes in again what an earlier process kept and did not finish."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from spanscore.contracts import KnowsWhatItWrote
from spanscore.intake.intake import Intake
from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.slices import in_thread
from spanscore.service.live_engine import LiveEngine, Taken
from spanscore.storage.earlier import Earlier, StoredRequest
from spanscore.storage.records import Kind
from spanscore.storage.request_log import Place
from spanscore.wording.faults import contained

KINDS: Final[Mapping[Encoding, Kind]] = {
    Encoding.PROTOBUF: Kind.PROTOBUF,
    Encoding.JSON: Kind.JSON,
    Encoding.LOGS: Kind.LOGS,
}
ENCODINGS: Final = {kind: encoding for encoding, kind in KINDS.items()}

Hold: TypeAlias = Callable[[Place, int], Taken]
"""Returns who is told of the spans of the request that lies there, all of which are so large."""

_log = logging.getLogger(__name__)


class Replay:
    """One replay, in slices, so that others in the loop have their turns.

    Args:
        earlier: what was kept. Nothing is written to the storage meanwhile.
        live: what spans go to.
        intake: decodes requests, and sends spans on.
        hold: has a request kept for the spans of it that are taken.
    """

    def __init__(self, earlier: Earlier, live: LiveEngine, intake: Intake, hold: Hold) -> None:
        self._earlier: Final = earlier
        self._live: Final = live
        self._intake: Final = intake
        self._hold: Final = hold
        self._knowing: Final = [each for each in live.engine.emitters.values() if isinstance(each, KnowsWhatItWrote)]
        self._closed: Mapping[bytes, int] = {}
        """The traces that are closed, and the number of the last request that this concerns."""

    async def run(self) -> None:
        """Take everything in. When it is cancelled, what was not taken in is left for the next start."""
        self._closed = await in_thread(self._closed_before)
        now = time.monotonic()
        restored = 0
        requests = self._earlier.requests()
        while (request := await in_thread(lambda: next(requests, None))) is not None:
            restored += await self._restore(request, now - request.age_s)
            # As before the restart: what was complete then is scored before the next request comes.
            await self._live.catch_up(now - request.age_s)
        if restored:
            _log.info("took %d spans of an earlier process in again", restored)

    def _closed_before(self) -> dict[bytes, int]:
        closed: dict[bytes, int] = {}
        counted: set[bytes] = set()
        engine, first_request = self._live.engine, self._earlier.first_request
        for trace_id, sequence, is_sent, may_come_again in self._earlier.closed_traces():
            if not is_sent:
                counted.add(trace_id)
                continue
            counted.discard(trace_id)
            if sequence >= first_request:
                closed[trace_id] = sequence
            if may_come_again:
                engine.table.remember(trace_id)
        engine.note_counted(counted)
        return closed

    async def _restore(self, request: StoredRequest, received_at: float) -> int:
        def is_wanted(trace_id: bytes) -> bool:
            return self._closed.get(trace_id, 0) < request.sequence

        spans: Sequence[Span] = ()
        try:
            encoding = ENCODINGS[Kind(request.kind)]
            spans, sizes, all_sizes = await self._intake.take_again(request.body, encoding, is_wanted)
            if spans:
                for emitter in self._knowing:
                    contained(emitter, partial(emitter.expect_repeats, {span.trace_id for span in spans}))
                await self._live.restore(spans, sizes, received_at, self._hold(request.place, all_sizes))
        except MalformedRequest:
            _log.error("storage: a request cannot be read any more")
        except Exception:  # noqa: BLE001 - one request must not keep the process from starting, again and again
            _log.exception("a request that was stored could not be taken in again")
        return len(spans)
