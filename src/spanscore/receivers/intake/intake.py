"""The handling of an OTLP request of any protocol: it is decoded, handed on, and only then answered."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from spanscore.model import REFUSED, Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import Caveat, Decoded, MalformedRequest
from spanscore.otlp.forwardable import accepting_only
from spanscore.otlp.from_json import decoding_json
from spanscore.otlp.from_logs import decoding_logs, with_refused
from spanscore.otlp.from_protobuf import decoding_protobuf
from spanscore.otlp.json_writing import EncodedSpans, accepting_only_from_json, writing_logs, writing_metrics
from spanscore.otlp.readable_records import readable_logs, readable_metrics
from spanscore.otlp.signals import check_signal
from spanscore.otlp.slices import Steps, in_slices
from spanscore.receivers.intake.admission import SmallestFirst
from spanscore.receivers.intake.consumers import Onward, OtherSignal, RequestStore, Take
from spanscore.receivers.intake.flaws import Flaws
from spanscore.receivers.intake.requests import Busy, Sender
from spanscore.trajectories.wanted import Wanted

EVERYTHING: Final = Wanted()
"""All attributes, but no logs."""

_AT_ONCE: Final = ((2**14, 4), (2**17, 2), (2**20, 1), (math.inf, 1))
"""Up to so many bytes: so many requests are decoded at a time. A large one takes many times its size meanwhile."""
_LARGEST: Final = [largest for largest, _ in _AT_ONCE]
_NO_ROOM_S: Final = 0.2
_USUAL_SPAN: Final = 256
"""Bytes: the usual size of a span as senders write it, about."""


class NoValidSpan(MalformedRequest):
    """Every span, log record or metric of a request was refused."""


class ExportResponse(NamedTuple):
    """The response to an accepted request; the message is empty if there is nothing to report."""

    rejected_spans: int = 0
    message: str = ""
    is_empty: bool = False
    """The request had neither a span nor a log record."""
    signal: OtherSignal | None = None
    """The signal if `rejected_spans` are log records, or data points of metrics."""


class NoRoom(Exception):  # noqa: N818 - what the sender is told, and not an error of ours
    """A request cannot be taken now: the sender should send it again later."""

    def __init__(self, why: Busy = Busy.DOWNSTREAM) -> None:
        super().__init__(why.told)
        self.why = why


class DecodedRequest(NamedTuple):
    """A decoded request, of which nothing is taken yet."""

    signal: OtherSignal | None
    """None for traces."""
    body: bytes
    encoding: Encoding
    decoded: Decoded
    """The spans, or the log records that are read like spans; of metrics nothing is read."""
    onward: bytes
    """The bytes to send on; empty if there is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeCounts:
    """The counts of an intake, by reason."""

    refused: Counter[str] = field(default_factory=Counter)
    """Spans, and log records."""
    refused_points: Counter[str] = field(default_factory=Counter)
    """Data points of metrics."""
    unread: Counter[str] = field(default_factory=Counter)
    """Log records that were taken and passed over."""


class Intake:
    """Decodes requests and hands their spans on. A request is taken as a whole, or not at all.

    Belongs to one event loop. Decoding yields to other tasks in it, so that small requests can overtake large ones.

    Args:
        take: takes the spans.
        counted: the counts of spans and records that are not taken, or not read.
        has_room: returns whether a request with so many spans can be taken now; without it, every request can.
        store: stores requests with spans; without it a restart loses them.
        wanted: the attributes to keep.
        spans_onward: sends the received spans on.
        needs_all_onward: whether a span that cannot be sent on is refused.
        others_onward: sends received metrics and logs on; without it metrics are not taken, and logs only read.
    """

    def __init__(  # noqa: PLR0913 - the consumers of its spans
        self,
        take: Take,
        counted: IntakeCounts | None = None,
        *,
        has_room: Callable[[int], bool] = lambda _spans: True,
        store: RequestStore | None = None,
        wanted: Wanted = EVERYTHING,
        spans_onward: Onward | None = None,
        needs_all_onward: bool = False,
        others_onward: Onward | None = None,
    ) -> None:
        self._wanted = wanted
        self.store: Final = store
        self._has_room: Final = has_room
        self._take: Final = take
        counted = counted or IntakeCounts()
        self._flaws: Final = Flaws(counted.refused, counted.refused_points)
        self._unread: Final = counted.unread
        self._spans_onward = spans_onward
        self._needs_all_onward: Final = needs_all_onward
        self._others_onward = others_onward
        # A small request never waits for a large one.
        self._turns: Final = [SmallestFirst(at_once) for _, at_once in _AT_ONCE]

    @property
    def others(self) -> Sequence[OtherSignal]:
        """The signals that are taken besides spans."""
        return ("logs",) if self._others_onward is None else ("metrics", "logs")

    def reload(self, wanted: Wanted) -> None:
        """Keep other attributes from now on; decoded spans stay unchanged."""
        self._wanted = wanted

    async def decode(self, body: bytes, encoding: Encoding, signal: OtherSignal | None = None) -> DecodedRequest:
        """Decode a request, and take nothing of it yet. Traces have None for a signal; metrics may not be taken.

        Raises:
            MalformedRequest: it cannot be decoded.
            NoRoom: it cannot be taken, or sent on, now.
        """
        # Room is checked before the request waits and is decoded, which could be for nothing.
        if signal is None:
            if not self._has_room(len(body) // _USUAL_SPAN):
                raise NoRoom(Busy.REQUESTS)
            decoding = self._traces(body, encoding)
        else:
            if body and self._others_onward is not None and not self._others_onward.has_room(len(body)):
                raise NoRoom
            decoding = self._logs(body, encoding) if signal == "logs" else self._metrics(body, encoding)
        turns = self._turns[bisect_left(_LARGEST, len(body))]
        await turns.take(len(body))
        try:
            return await in_slices(decoding)
        finally:
            turns.give_back()

    def _traces(self, body: bytes, encoding: Encoding) -> Steps[DecodedRequest]:
        decoded = yield from self._decoding(body, encoding)
        if decoded.refused and not decoded.spans and encoding is Encoding.PROTOBUF:
            check_signal(body, "traces")
        onward = b""
        if decoded.spans and self._spans_onward is not None:
            if not self._spans_onward.has_room(len(body), decoded.spans):  # before the work of encoding it
                raise NoRoom
            onward, left_out, lost = yield from _forwarding(body, encoding, decoded)
            if left_out and self._needs_all_onward:
                written = yield from self._decoding(onward, Encoding.PROTOBUF)
                decoded = written.refusing(decoded.refused, decoded.lost).refusing(left_out, lost)
            elif left_out:
                count = sum(each.spans for each in left_out)
                decoded = replace(decoded, caveats={**decoded.caveats, Caveat.NOT_FORWARDED: count})
        return DecodedRequest(None, body, encoding, decoded, onward)

    def _logs(self, body: bytes, encoding: Encoding) -> Steps[DecodedRequest]:
        """Decode records of an agent's work like spans; all records are sent on."""
        names = self._wanted.log_names
        is_json = encoding is Encoding.JSON
        try:
            body, refused, lost = yield from writing_logs(body) if is_json else readable_logs(body, names)
            decoded = (yield from self._decoding(body, Encoding.LOGS)).refusing(refused, lost)
        except MalformedRequest:
            if not is_json:
                check_signal(body, "logs")
            raise
        kept = with_refused(body, lost, names[0]) if lost and names else body
        return DecodedRequest("logs", kept, Encoding.LOGS, decoded, body)

    def _metrics(self, body: bytes, encoding: Encoding) -> Steps[DecodedRequest]:
        is_json = encoding is Encoding.JSON and body
        if not is_json:
            check_signal(body, "metrics")
        onward, refused, _ = yield from writing_metrics(body) if is_json else readable_metrics(body)
        return DecodedRequest("metrics", body, encoding, Decoded(spans=[], refused=refused), onward)

    def accept(self, request: DecodedRequest, sender: Callable[[], Sender] = Sender) -> ExportResponse:
        """Take a decoded request of a sender, in one step; it may be acknowledged when it is stored.

        Raises:
            NoValidSpan: every span, log record or metric in it was refused.
            NoRoom: it cannot be taken, or sent on, now.
            Unavailable: it cannot be kept now.
            TooLarge: it can never be kept.
        """
        signal, body, encoding, decoded, onward = request
        to = self._spans_onward if signal is None else self._others_onward
        spans, sizes = decoded.taken
        if spans and not self._has_room(len(spans)):
            raise NoRoom(Busy.REQUESTS)
        if onward and to is not None and not to.has_room(max(len(body), len(onward)), () if signal else spans):
            raise NoRoom
        take = self.store.put(body, encoding) if spans and self.store is not None else self._take
        if onward and to is not None:
            if signal is None:
                to.take(onward)
            else:
                to.take_other(signal, onward)
        if spans:
            take(spans, sizes)
        unread = decoded.unread_records if signal == "logs" else {}
        for reason, count in unread.items():
            self._unread[reason.value] += count
        is_empty = signal != "metrics" and not decoded.spans and not unread
        if not decoded.refused and not decoded.caveats:
            return ExportResponse(is_empty=is_empty)
        message = self._flaws.note(decoded, signal, body, encoding, sender())
        if decoded.refused and (is_empty or (signal == "metrics" and not onward)):
            raise NoValidSpan(message)
        return ExportResponse(decoded.refused_spans, message, is_empty, signal)

    async def take_again(
        self, body: bytes, encoding: Encoding, is_wanted: Callable[[bytes], bool]
    ) -> tuple[list[Span], list[int], int]:
        """Return the spans, wanted by their trace ids, of a request taken before a restart, and send them on again.

        Waits until they can be sent on: the storage may hold more than the queue to the next receiver.
        Logs are not sent on again, because records that no dialect reads are not stored.

        Raises:
            MalformedRequest: it cannot be decoded.

        Returns:
            These spans with stand-ins for refused ones, the bytes of memory of each, and the bytes of all spans of the
            request.
        """
        decoded = await in_slices(self._decoding(body, encoding))
        taken, sizes = decoded.taken
        wanted = [each for each in zip(taken, sizes, strict=True) if is_wanted(each[0].trace_id)]
        spans = [span for span, _ in wanted]
        accepted = [span for span in spans if span.kind != REFUSED]
        if accepted and self._spans_onward is not None and encoding is not Encoding.LOGS:
            # Spans that are held for open traces are sent only after the replay. So if no request waits to be sent, no
            # room comes by waiting here.
            onward = self._spans_onward
            while onward.is_waiting() and not onward.has_room(len(body), accepted):  # noqa: ASYNC110 - no event
                await asyncio.sleep(_NO_ROOM_S)
            if encoding is Encoding.JSON:
                onward.take((await in_slices(accepting_only_from_json(body, accepted))).body)
            else:
                onward.take(await in_slices(accepting_only(body, accepted)))
        return spans, [size for _, size in wanted], sum(sizes)

    def _decoding(self, body: bytes, encoding: Encoding) -> Steps[Decoded]:
        wanted, names = self._wanted
        if encoding is Encoding.LOGS:
            return (yield from decoding_logs(body, names))
        decoding = decoding_json if encoding is Encoding.JSON else decoding_protobuf
        decoded = yield from decoding(body, wanted=wanted)
        if wanted is not None and wanted.unused is not None and decoded.decoder != "fast":
            yield from wanted.unused.taking_out(decoded.spans, decoded.sizes)
        return decoded


def _forwarding(body: bytes, encoding: Encoding, decoded: Decoded) -> Steps[EncodedSpans]:
    if encoding is Encoding.JSON:
        return (yield from accepting_only_from_json(body, decoded.spans))
    is_broken = decoded.refused or Caveat.INVALID_SCHEMA_URL in decoded.caveats
    return EncodedSpans((yield from accepting_only(body, decoded.spans)) if is_broken else body)
