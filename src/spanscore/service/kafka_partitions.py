"""The state of the Kafka partitions of this process: their open traces, and the offsets that may be committed."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from binascii import hexlify
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spanscore.model import Span, reported_trace_id
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.json_names import names_of
from spanscore.otlp.json_shape import LOGS, SPANS
from spanscore.otlp.signals import begins_with_logs
from spanscore.receivers.intake.consumers import Take
from spanscore.receivers.intake.door import what_is_wrong
from spanscore.receivers.intake.intake import DecodedRequest, Intake, NoRoom
from spanscore.receivers.intake.requests import Wrong
from spanscore.receivers.kafka import TakenRecords
from spanscore.receivers.kafka.kafka_records import MAX_RECORD_SIZE, Commit, KafkaRecord, PoisonRecord
from spanscore.receivers.kafka.offsets import HeldOffsets, ScoredTraces
from spanscore.scoring.live_engine import LiveEngine

EMPTY: Final = "empty"
FAULT: Final = "internal_error"

NO_KEY: Final = "no_key"
FOREIGN_KEY: Final = "foreign_key"

_LET_OTHERS_RUN: Final = 16
_NO_ROOM_S: Final = 0.2
_LOOK_AGAIN_S: Final = (0.1, 1.0)
"""The shortest and the longest time until a trace that waits is looked at again."""
_AWAY_S: Final = 5.0
"""If no record comes for so long, a broker may be away, and no trace waits for records."""

_REMEDY: Final = (
    "its traces may be spread over partitions, and several consumers then score parts of them. In the Collector's "
    "Kafka exporter set 'partition_traces_by_id: true'; further ones are only counted"
)
_WRONG_KEYS: Final[Mapping[str, str]] = {
    NO_KEY: "a record has no key",
    FOREIGN_KEY: "a record's key is not the trace id of its spans, in 32 hex digits",
}


_log = logging.getLogger(__name__)


class KafkaPartitions:
    """Hands the records of partitions to the engine, and knows the offsets that may be committed.

    A record is finished after every trace in it is scored and its reports are sent. A released trace is not finished,
    so the next owner reads it from its first record on. The commit also names the traces scored last, which the next
    owner does not score again.

    Belongs to one event loop.

    Args:
        live: the engine.
        intake: makes an intake with its consumer of spans.
        encoding: the encoding of the records.
        clock: the engine's clock.
    """

    keeps_pauses: Final = False

    def __init__(
        self,
        live: LiveEngine,
        intake: Callable[[Take], Intake],
        encoding: Encoding,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.wrong_keys: Final[Counter[str]] = Counter(dict.fromkeys(_WRONG_KEYS, 0))
        """The number of records whose key is not their trace id, by the problem."""
        self.intake: Final = intake(self._take_spans)
        """Decodes the records."""
        self._live: Final = live
        self._engine: Final = live.engine
        self._encoding: Final = encoding
        self._clock: Final = clock
        self._offered_at = -math.inf
        """When a record of any partition was offered last."""
        self._partitions: Final[dict[int, _Partition]] = {}
        self._ledger: Final = live.ledger
        self._taken: Final = asyncio.Event()
        self._engine.table.put_off = self._unread_s
        live.ledger.subscribe(self)

    async def take(self, records: Sequence[KafkaRecord]) -> TakenRecords:
        """Take records, in their order, as many as there is room for."""
        poison: list[PoisonRecord] = []
        for record in records:
            if not record.is_passed and (partition := self._partitions.get(record.partition)) is not None:
                partition.end = record.end
        for number, record in enumerate(records):
            self._offered_at = self._clock()
            if number % _LET_OTHERS_RUN == 0:
                await asyncio.sleep(0)
            if self._live.is_behind:
                await asyncio.sleep(_NO_ROOM_S)
                return TakenRecords(number, tuple(poison))
            partition = self._partitions.get(record.partition)
            if partition is None:  # it was handed over meanwhile
                continue
            if record.is_passed:
                partition.held.read(record.offset, ())
                continue
            try:
                reason = await self._take(record, partition)
            except NoRoom:
                await asyncio.sleep(_NO_ROOM_S)
                return TakenRecords(number, tuple(poison))
            if reason is not None:
                poison.append(PoisonRecord(record, reason))
        return TakenRecords(len(records), tuple(poison))

    def assigned(self, texts: Mapping[int, str]) -> None:
        """Begin with partitions, beside which the owners before committed these texts."""
        for number, text in texts.items():
            self._partitions[number] = _Partition(scored=ScoredTraces(text), before=ScoredTraces(text))

    def give_up(self, partitions: Sequence[int]) -> None:
        """Release open traces, unscored.

        Traces that are also in another partition of ours are scored here, and so are traces that were scored before.
        """
        gone = [self._partitions[number].held for number in partitions if number in self._partitions]
        kept = [each.held for number, each in self._partitions.items() if number not in partitions]
        reopened = frozenset(self._engine.table.open.reopened())
        trace_ids = [
            trace_id
            for held in gone
            for trace_id in held.trace_ids
            if trace_id not in reopened and not any(trace_id in other for other in kept)
        ]
        self._engine.table.give_up(trace_ids)
        self._engine.let_go(trace_ids)

    def forget(self, partitions: Sequence[int]) -> None:
        """Forget partitions that another member owns now."""
        for number in partitions:
            self._partitions.pop(number, None)

    def committable(self) -> Mapping[int, Commit]:
        """Return up to where each partition is finished with."""
        self._ledger.settle()
        return {
            number: Commit(offset, each.scored.text)
            for number, each in self._partitions.items()
            if (offset := each.held.committable) is not None
        }

    def scored(self, trace_id: bytes) -> None:
        """Do nothing: the trace is still needed."""

    def done(self, trace_id: bytes) -> None:
        """Release a trace, and mark it as scored for the next owner."""
        for partition in self._partitions.values():
            if partition.held.release(trace_id):
                partition.scored.add(trace_id)

    async def _take(self, record: KafkaRecord, partition: _Partition) -> str | None:
        """Take a record, and return the problem if it cannot be used at all; else None."""
        value = record.value or b""
        reason = Wrong.TOO_LARGE.value if len(value) > MAX_RECORD_SIZE else None if value else EMPTY
        trace_ids: Collection[bytes] = frozenset()
        try:
            request = await self._decoded(value) if reason is None else None
            if self._partitions.get(record.partition) is not partition:  # it was handed over meanwhile
                return None
            if request is not None:
                trace_ids = {span.trace_id for span in request.decoded.taken[0]}
                self._remember(trace_ids, partition.before)
                self._taken.set()
                self.intake.accept(request)  # with `_take_spans`, which clears the event until all spans are taken
                await self._taken.wait()
        except NoRoom:
            raise
        except MalformedRequest as error:
            reason = what_is_wrong(error).value
        except Exception:  # noqa: BLE001 - one record must not stop all others, again and again
            _log.exception("kafka: a record could not be taken")
            reason = FAULT
        if self._partitions.get(record.partition) is not partition:
            return None
        self._check_key(record, trace_ids)
        needed = {trace_id for trace_id in trace_ids if self._ledger.is_needed(trace_id)}
        partition.held.read(record.offset, needed, record.written_at)
        if reason is None:
            for trace_id in trace_ids:
                if trace_id not in needed:
                    partition.scored.add(trace_id)
        return reason

    def _unread_s(self, trace_id: bytes, waited_s: float) -> float:
        """Return how long to wait for records of a trace: those not read yet may be of the seconds that it waited.

        As the reader does not keep up, that is by the times at which records were written. A second at most: by then
        the partition may be read.
        """
        left_s = 0.0
        if self._clock() - self._offered_at >= _AWAY_S:
            return left_s
        for each in self._partitions.values():
            if (each.held.position or 0) < each.end:
                left_s = max(left_s, waited_s - each.held.read_since(trace_id))
        shortest, longest = _LOOK_AGAIN_S
        return left_s and min(max(left_s, shortest), longest)

    async def _decoded(self, value: bytes) -> DecodedRequest:
        """Decode a record. A topic may have spans and logs; only the content of a record shows its signal."""
        if self._encoding is Encoding.JSON:
            are_logs = _names(LOGS, value) and not _names(SPANS, value)
        else:
            are_logs = begins_with_logs(value)
        return await self.intake.decode(value, self._encoding, "logs" if are_logs else None)

    def _remember(self, trace_ids: Collection[bytes], before: ScoredTraces) -> None:
        """Remember the traces that an earlier owner has scored: their spans are late."""
        for trace_id in trace_ids:
            if trace_id in before and not self._ledger.is_needed(trace_id):
                before.forget(trace_id)
                self._engine.table.remember(trace_id)

    def _take_spans(self, spans: Sequence[Span], sizes: Sequence[int]) -> None:
        if self._live.rests:  # it would not take the rest of a large record
            self._live.take_whole(spans, sizes)
        else:
            self._taken.clear()
            self._live.take(spans, sizes, self._note_taken)

    def _note_taken(self, spans: Sequence[Span], sizes: Sequence[int], *, is_last: bool) -> None:  # noqa: ARG002
        if is_last:
            self._taken.set()

    def _check_key(self, record: KafkaRecord, trace_ids: Collection[bytes]) -> None:
        key = (record.key or b"").lower()
        if all(hexlify(reported_trace_id(trace_id)) == key for trace_id in trace_ids):
            return
        wrong = FOREIGN_KEY if key else NO_KEY
        self.wrong_keys[wrong] += 1
        if self.wrong_keys[wrong] == 1:
            _log.warning("kafka: %s: %s", _WRONG_KEYS[wrong], _REMEDY)


def _names(field: str, value: bytes) -> bool:
    return any(f'"{name}"'.encode() in value for name in names_of(field))


@dataclass(slots=True)
class _Partition:
    held: HeldOffsets = field(default_factory=HeldOffsets)
    scored: ScoredTraces = field(default_factory=ScoredTraces)
    """The scored traces, for the next owner."""
    before: ScoredTraces = field(default_factory=ScoredTraces)
    """The traces that earlier owners have scored and that were not read again yet."""
    end: int = 0
    """The offset after the last record that it is known to have."""
