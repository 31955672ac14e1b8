"""What this process owes to the Kafka partitions it reads: which traces are open, and up to where all are scored."""

from __future__ import annotations

import asyncio
import logging
from binascii import hexlify
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from spanscore.contracts import HoldsSpansBack
from spanscore.intake.door import what_is_wrong
from spanscore.intake.intake import Behind, Intake, NoRoom, Request
from spanscore.kafka.offsets import HeldOffsets, ScoredTraces
from spanscore.kafka.records import Commit, PoisonRecord, Record
from spanscore.model import Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.json_names import names_of
from spanscore.otlp.json_shape import LOGS, SPANS
from spanscore.otlp.signals import apart
from spanscore.receivers.kafka import Taken
from spanscore.service.live_engine import LiveEngine
from spanscore.wording.faults import contained

EMPTY: Final = "empty"
FAULT: Final = "internal_error"

NO_KEY: Final = "no_key"
FOREIGN_KEY: Final = "foreign_key"

_LET_OTHERS_RUN: Final = 16
_NO_ROOM_S: Final = 0.2

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
    """Hands the records of partitions to the engine, and knows what may be committed.

    A record is finished with when every trace in it is scored, and its reports are sent. A trace that is given up is
    not, so that the next owner reads it from its first record on. Beside the offset go the traces scored last, which
    the next owner does not score again.

    Belongs to one event loop.

    Args:
        live: what spans go to.
        intake: makes what decodes records and hands on their spans.
        encoding: how records are written.
    """

    def __init__(self, live: LiveEngine, intake: Callable[[Behind], Intake], encoding: Encoding) -> None:
        self.wrong_keys: Final[Counter[str]] = Counter(dict.fromkeys(_WRONG_KEYS, 0))
        """Records whose key is not their trace id, by what is wrong with it."""
        self._intake: Final = intake(Behind(take=self._take_spans))
        self._live: Final = live
        self._engine: Final = live.engine
        self._encoding: Final = encoding
        self._partitions: Final[dict[int, _Partition]] = {}
        self._ledger: Final = live.ledger
        self._reading = _Partition()
        self._trace_ids: Collection[bytes] = frozenset()
        live.ledger.tell(self)

    async def take(self, records: Sequence[Record]) -> Taken:
        """Take records, in their order, as many as there is room for."""
        poison: list[PoisonRecord] = []
        for number, record in enumerate(records):
            if number % _LET_OTHERS_RUN == 0:
                await asyncio.sleep(0)
            if self._live.is_behind:
                await asyncio.sleep(_NO_ROOM_S)
                return Taken(number, tuple(poison))
            partition = self._partitions.get(record.partition)
            if partition is None:  # it was handed over meanwhile
                continue
            try:
                reason = await self._take(record, partition)
            except NoRoom:
                await asyncio.sleep(_NO_ROOM_S)
                return Taken(number, tuple(poison))
            if reason is not None:
                poison.append(PoisonRecord(record, reason))
        return Taken(len(records), tuple(poison))

    def assigned(self, texts: Mapping[int, str]) -> None:
        """Begin with partitions, beside which the owners before committed these texts."""
        for number, text in texts.items():
            self._partitions[number] = _Partition(scored=ScoredTraces(text), before=ScoredTraces(text))

    def give_up(self, partitions: Sequence[int]) -> None:
        """Let go of open traces, unscored; those that are in another partition of ours too are scored here."""
        gone = [self._partitions[number].held for number in partitions if number in self._partitions]
        kept = [each.held for number, each in self._partitions.items() if number not in partitions]
        trace_ids = [
            trace_id for held in gone for trace_id in held.trace_ids if not any(trace_id in other for other in kept)
        ]
        self._engine.table.give_up(trace_ids)
        for emitter in self._engine.emitters.values():
            if isinstance(emitter, HoldsSpansBack):
                contained(emitter, partial(emitter.give_up, trace_ids))

    def forget(self, partitions: Sequence[int]) -> None:
        """Know nothing more of partitions: they are somebody else's."""
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
        """Hold a trace further on."""

    def done(self, trace_id: bytes) -> None:
        """Hold a trace no longer, and tell the next owner that it is scored."""
        for partition in self._partitions.values():
            if partition.held.release(trace_id):
                partition.scored.add(trace_id)

    async def _take(self, record: Record, partition: _Partition) -> str | None:
        """Take a record, and return what is wrong with it where it cannot be used at all."""
        reason = None if record.value else EMPTY
        self._trace_ids = frozenset()
        try:
            request = await self._decoded(record.value) if record.value else None
            if self._partitions.get(record.partition) is not partition:  # it was handed over meanwhile
                return None
            self._reading = partition
            if request is not None:
                self._intake.accept(request)
        except NoRoom:
            raise
        except MalformedRequest as error:
            reason = what_is_wrong(error).value
        except Exception:  # noqa: BLE001 - one record must not stop all others, again and again
            _log.exception("kafka: a record could not be taken")
            reason = FAULT
        if self._partitions.get(record.partition) is not partition:
            return None
        self._check_key(record)
        needed = {trace_id for trace_id in self._trace_ids if self._ledger.is_needed(trace_id)}
        partition.held.read(record.offset, needed)
        if reason is None:
            for trace_id in self._trace_ids:
                if trace_id not in needed:
                    partition.scored.add(trace_id)
        return reason

    async def _decoded(self, value: bytes) -> Request:
        """Decode a record: logs may stand in the same topic, and nothing beside a record says what it holds."""
        if self._encoding is Encoding.JSON:
            are_logs = _names(LOGS, value) and not _names(SPANS, value)
        else:
            are_logs = bool(value) and not apart(value).spans
        return await (self._intake.decode_logs if are_logs else self._intake.decode)(value, self._encoding)

    def _take_spans(self, spans: Sequence[Span], sizes: Sequence[int]) -> None:
        self._trace_ids = {span.trace_id for span in spans}
        before = self._reading.before
        for trace_id in self._trace_ids:  # what comes of a trace that an owner before has scored is late
            if trace_id in before and not self._ledger.is_needed(trace_id):
                before.forget(trace_id)
                self._engine.table.remember(trace_id)
        self._live.take_whole(spans, sizes)

    def _check_key(self, record: Record) -> None:
        if not self._trace_ids:
            return
        key = (record.key or b"").lower()
        if all(hexlify(trace_id) == key for trace_id in self._trace_ids):
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
    """What the next owner is told."""
    before: ScoredTraces = field(default_factory=ScoredTraces)
    """What the owners before have told and was not met yet."""
