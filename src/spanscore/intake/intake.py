"""What becomes of an OTLP request, whichever protocol brought it: decoded, handed on, and only then answered."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from spanscore.intake.requests import Busy
from spanscore.model import REFUSED, Span
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import Caveat, Decoded, MalformedRequest, Refusal, Refused, told_of_no_run
from spanscore.otlp.forwardable import accepted_only, accepted_only_from_json, metrics_from_json
from spanscore.otlp.from_json import decoding_json
from spanscore.otlp.from_logs import decoding_logs, with_refused
from spanscore.otlp.from_protobuf import decoding_protobuf
from spanscore.otlp.json_names import parse_request
from spanscore.otlp.logs_from_json import logs_to_protobuf
from spanscore.otlp.protobuf_check import checking
from spanscore.otlp.slices import Steps, in_slices, in_thread
from spanscore.reading.wanted import Wanted

OtherSignal: TypeAlias = Literal["metrics", "logs"]

_Result = TypeVar("_Result")

Take: TypeAlias = Callable[[Sequence[Span], Sequence[int]], None]
"""Takes the spans of one request, what stands for refused ones too, and how many bytes of memory each keeps; all of
them, or raises."""

EVERYTHING: Final = Wanted()
"""All attributes, but no logs."""

_LARGE: Final = 2**20
"""Bytes. Larger requests are decoded one at a time: each takes many times its size while that is under way."""
_SMALL_AT_ONCE: Final = 4
_IN_THREAD: Final = 256 * 1024
"""Bytes. To write JSON as protobuf takes many times as long as to decode it, and has no steps."""
_USUAL_SPAN: Final = 256
"""Bytes. What a span takes about, as senders write it."""
_MESSAGE_CHARS: Final = 2_000
_EXAMPLE_CHARS: Final = 300

_log = logging.getLogger(__name__)


class NoValidSpan(MalformedRequest):
    """Every span of a request was refused."""


class Answer(NamedTuple):
    """What became of an accepted request; there is a message where its sender is to be told something."""

    rejected_spans: int = 0
    message: str = ""
    is_empty: bool = False
    """The request had neither a span nor a log record."""
    of_logs: bool = False
    """The request had log records; `rejected_spans` are such, then."""


class NoRoom(Exception):  # noqa: N818 - what the sender is told, and not an error of ours
    """A request cannot be taken now: the sender should send it again later."""

    def __init__(self, why: Busy = Busy.DOWNSTREAM) -> None:
        super().__init__(why.told)
        self.why = why


class Request(NamedTuple):
    """A decoded request with spans or logs, of which nothing is taken yet."""

    body: bytes
    encoding: Encoding
    decoded: Decoded
    onward: bytes
    """What is to be sent on; empty where nothing is."""

    @property
    def decoder(self) -> str | None:
        """Which decoder has read it, where there may be two."""
        return self.decoded.decoder if self.encoding is Encoding.PROTOBUF else None


class Onward(Protocol):
    """Sends on what is received, as it was received. Takes it all or raises; does not wait."""

    def has_room(self, size: int) -> bool:
        """Return whether a request of that many bytes could be taken now."""
        ...

    def take(self, request: bytes) -> None:
        """Take an ExportTraceServiceRequest in protobuf: the spans that were accepted of one request."""
        ...

    def take_other(self, signal: OtherSignal, request: bytes) -> None:
        """Take a request with metrics or logs, in protobuf."""
        ...


class Keep(Protocol):
    """Keeps requests until what they hold is scored, so that they outlive the process."""

    def put(self, body: bytes, encoding: Encoding) -> None:
        """Write a request down, as it came. Raises Unavailable where that cannot be, TooLarge where it never can."""
        ...

    async def stored(self) -> None:
        """Return when all that was put before is safe enough to be acknowledged; raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What is behind an intake."""

    take: Take
    has_room: Callable[[int], bool] | None = None
    """Says whether a request with so many spans can be taken now; without it, one always can."""
    keep: Keep | None = None
    """Keeps requests with spans; without it nothing outlives the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What an intake counts, by reason."""

    refused: Counter[str] = field(default_factory=Counter)
    """Spans."""
    unread: Counter[str] = field(default_factory=Counter)
    """Log records that were taken and passed over."""


class Intake:
    """Decodes requests and hands on what they hold. A request is taken as a whole, or not at all.

    Belongs to one event loop. Decoding gives way to others in it, so that requests overtake each other.

    Args:
        behind: takes the spans.
        counted: where is counted what is not taken, or not read.
        wanted: what to keep of what is received.
        spans_onward: sends the received spans on.
        others_onward: sends received metrics and logs on; without it metrics are not taken, and logs only read.
    """

    def __init__(
        self,
        behind: Behind,
        counted: Counted | None = None,
        *,
        wanted: Wanted = EVERYTHING,
        spans_onward: Onward | None = None,
        others_onward: Onward | None = None,
    ) -> None:
        self._wanted = wanted
        self.keep: Final = behind.keep
        """Keeps requests with spans, where something does."""
        self._has_room: Final = behind.has_room
        self._take: Final = behind.take
        counted = counted or Counted()
        self._refused: Final = counted.refused
        self._unread: Final = counted.unread
        self._spans_onward = spans_onward
        self._others_onward = others_onward
        self._logged: set[Refusal | Caveat] = set()
        # A small request never waits for a large one.
        self._large: Final = asyncio.Semaphore(1)
        self._small: Final = asyncio.Semaphore(_SMALL_AT_ONCE)

    @property
    def others(self) -> Sequence[OtherSignal]:
        """What is taken besides spans."""
        return ("logs",) if self._others_onward is None else ("metrics", "logs")

    def reload(self, wanted: Wanted) -> None:
        """Keep something else from now on; what was decoded stays as it is."""
        self._wanted = wanted

    async def decode(self, body: bytes, encoding: Encoding) -> Request:
        """Decode a trace request, and take nothing of it yet.

        Raises:
            MalformedRequest: it cannot be decoded.
            NoRoom: it cannot be taken, or sent on, now.
        """
        if self._has_room is not None and not self._has_room(len(body) // _USUAL_SPAN):
            raise NoRoom(Busy.REQUESTS)  # before what may take long, and for nothing
        async with self._large if len(body) > _LARGE else self._small:
            decoded = await in_slices(self._decoding(body, encoding))
            onward = b""
            if decoded.spans and self._spans_onward is not None:
                if not self._spans_onward.has_room(len(body)):  # as above
                    raise NoRoom
                onward = await _written(lambda: _forwardable(body, encoding, decoded), body)
        return Request(body, encoding, decoded, onward)

    async def decode_logs(self, body: bytes, encoding: Encoding) -> Request:
        """Decode a request with logs, and take nothing of it yet.

        Those that tell of an agent's work are read as spans are, and all are sent on.

        Raises:
            As `decode`.
        """
        onward = self._others_onward
        if onward is not None and not onward.has_room(len(body)):
            raise NoRoom
        async with self._large if len(body) > _LARGE else self._small:
            refused: Sequence[Refused] = ()
            lost: Sequence[Span] = ()
            if encoding is Encoding.JSON:
                body, refused, lost = await _written(
                    lambda: logs_to_protobuf(parse_request(body) if body else {}), body
                )
            else:
                await in_slices(checking(body, ExportLogsServiceRequest))
            decoded = (await in_slices(self._decoding(body, Encoding.LOGS))).refusing(refused, lost)
        names = self._wanted.log_names
        kept = with_refused(body, lost, names[0]) if lost and names else body
        return Request(kept, Encoding.LOGS, decoded, b"" if onward is None else body)

    def accept(self, request: Request) -> Answer:
        """Take a decoded request, in one step; it may be acknowledged when it is stored.

        Raises:
            MalformedRequest: every span in it was refused.
            NoRoom: it cannot be taken, or sent on, now.
            Unavailable: it cannot be kept now.
            TooLarge: it can never be kept.
        """
        body, encoding, decoded, onward = request
        are_logs = encoding is Encoding.LOGS
        to = self._others_onward if are_logs else self._spans_onward
        spans, sizes = decoded.taken
        if spans and self._has_room is not None and not self._has_room(len(spans)):
            raise NoRoom(Busy.REQUESTS)
        if onward and to is not None and not to.has_room(len(body)):
            raise NoRoom
        if spans and self.keep is not None:
            self.keep.put(body, encoding)
        if onward and to is not None:
            if are_logs:
                to.take_other("logs", onward)
            else:
                to.take(onward)
        if spans:
            self._take(spans, sizes)
        for reason, count in decoded.unread_records.items():
            self._unread[reason.value] += count
        is_empty = not decoded.spans and not decoded.unread_records
        if not decoded.refused and not decoded.caveats:
            return Answer(is_empty=is_empty)
        message = self._tell(decoded, "log records" if are_logs else "spans")
        if decoded.refused and is_empty:
            raise NoValidSpan(message)
        return Answer(decoded.refused_spans, message, is_empty, are_logs)

    async def take_again(
        self, body: bytes, encoding: Encoding, is_wanted: Callable[[bytes], bool]
    ) -> tuple[list[Span], list[int], int]:
        """Return the spans, wanted by their trace ids, of a request taken before a restart, and send them on again.

        Logs are not sent on again: of those that nobody reads, which are not kept, that could not be done either.

        Raises:
            MalformedRequest: it cannot be decoded.

        Returns:
            These spans and what stands for refused ones, how much each of them keeps, and how much all of the request
            do.
        """
        decoded = await in_slices(self._decoding(body, encoding))
        taken, sizes = decoded.taken
        wanted = [each for each in zip(taken, sizes, strict=True) if is_wanted(each[0].trace_id)]
        spans = [span for span, _ in wanted]
        accepted = [span for span in spans if span.kind != REFUSED]
        if accepted and self._spans_onward is not None and encoding is not Encoding.LOGS:
            only = accepted_only_from_json if encoding is Encoding.JSON else accepted_only
            self._spans_onward.take(await _written(lambda: only(body, accepted), body))
        return spans, [size for _, size in wanted], sum(sizes)

    async def metrics(self, body: bytes, encoding: Encoding) -> None:
        """Send a request with metrics on; only where they are taken.

        Raises:
            MalformedRequest: it cannot be decoded.
            NoRoom: it cannot be sent on now.
        """
        onward = self._others_onward
        if not body or onward is None:
            return
        if not onward.has_room(len(body)):  # before what may take long, and for nothing
            raise NoRoom
        async with self._large if len(body) > _LARGE else self._small:
            written = body
            if encoding is Encoding.JSON:
                written = await _written(lambda: metrics_from_json(parse_request(body)), body)
            else:
                await in_slices(checking(body, ExportMetricsServiceRequest))
        if not written:
            return
        if not onward.has_room(len(written)):
            raise NoRoom
        onward.take_other("metrics", written)

    def _decoding(self, body: bytes, encoding: Encoding) -> Steps[Decoded]:
        if encoding is Encoding.LOGS:
            return decoding_logs(body, self._wanted.log_names)
        decoding = decoding_json if encoding is Encoding.JSON else decoding_protobuf
        return decoding(body, wanted=self._wanted.attributes)

    def _tell(self, decoded: Decoded, items: str) -> str:
        """Count what is wrong with a request and return it; log it where it is something new."""
        for refused in decoded.refused:
            self._refused[refused.reason.value] += refused.spans
        message = _told(decoded, items)
        kinds: set[Refusal | Caveat] = {*(refused.reason for refused in decoded.refused), *decoded.caveats}
        _log.log(logging.DEBUG if kinds <= self._logged else logging.WARNING, "%s", message)
        self._logged |= kinds
        return message


async def _written(write: Callable[[], _Result], body: bytes) -> _Result:
    """Write a request anew, on another thread where that may take long."""
    return write() if len(body) <= _IN_THREAD else await in_thread(write)


def _forwardable(body: bytes, encoding: Encoding, decoded: Decoded) -> bytes:
    if encoding is Encoding.JSON:
        return accepted_only_from_json(body, decoded.spans)
    is_broken = decoded.refused or Caveat.INVALID_SCHEMA_URL in decoded.caveats
    return accepted_only(body, decoded.spans) if is_broken else body


def _told(decoded: Decoded, items: str) -> str:
    if not decoded.refused:
        odd = [f"{caveat} ({count})" for caveat, count in decoded.caveats.items() if caveat is not Caveat.NO_RUN]
        told = [f"all {items} accepted, but not as they were sent: {', '.join(odd)}"] if odd else []
        lost = decoded.caveats.get(Caveat.NO_RUN)
        return "; ".join([*told, f"{Caveat.NO_RUN}: {told_of_no_run(lost)}"] if lost else told)
    reasons = "; ".join(
        f"{refused.spans} for {refused.reason} ({_shortened(refused.example, _EXAMPLE_CHARS)})"
        for refused in decoded.refused
    )
    total = decoded.refused_spans + len(decoded.spans) + sum(decoded.unread_records.values())
    return _shortened(f"{decoded.refused_spans} of {total} {items} refused: {reasons}", _MESSAGE_CHARS)


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 3]}..."
