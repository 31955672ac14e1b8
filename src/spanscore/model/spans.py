"""The input: spans, and traces of spans."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
MAX_DIGITS: Final = 4_300
"""Python writes no integer of more digits, and reads none."""
_FIRST_TOO_LONG: Final = 10**MAX_DIGITS


def is_too_long(number: int) -> bool:
    """Return whether an integer has too many digits to be written."""
    return abs(number) >= _FIRST_TOO_LONG


AttributeValue: TypeAlias = "bool | int | float | str | bytes | list[AttributeValue] | dict[str, AttributeValue] | None"
Attributes: TypeAlias = Mapping[str, AttributeValue]


class NotRecorded(enum.Enum):
    """The type of `NOT_RECORDED`: a value that the spans do not record, which differs from null and empty."""

    NOT_RECORDED = "not recorded"

    def __repr__(self) -> str:
        return "NOT_RECORDED"


NOT_RECORDED: Final = NotRecorded.NOT_RECORDED

Recorded: TypeAlias = "JSON | NotRecorded"

LOG_RECORD: Final = 2**32
"""The kind of a span that is a log record: log records are read like spans.

OTLP's kinds have 32 bits, so no sender's span can have this one."""

REFUSED: Final = 2**32 + 1
"""The kind of a stand-in for a span that was refused, or lost on the way: only its trace is known."""

DROPPED: Final = "dropped"
"""The name of such a stand-in whose span was dropped, as the queue of the agent's process was full."""

NO_SPAN: Final = bytes(8)
"""The parent id of a log record outside of any span; it keeps the record from being a root."""

_TRACE_ID_LENGTH: Final = 16
_SESSION: Final = b"s"
"""Behind the trace id of a session."""

PARENT_IS_REMOTE: Final = 0x300
"""The bits of a span's flags that are both set if the parent is remote: one marks the other as valid."""

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class SharedAttributes(dict[str, AttributeValue]):
    """Attributes that many spans share, such as the attributes of a resource, with their size in memory.

    Args:
        attributes: the attributes.
        size: about how many bytes they take.
    """

    __slots__ = ("size",)

    def __init__(self, attributes: Attributes = EMPTY, size: int = 0) -> None:
        super().__init__(attributes)
        self.size = size


class StatusCode(enum.IntEnum):
    """The status codes of an OTLP span."""

    UNSET = 0
    OK = 1
    ERROR = 2


class SpanEvent(NamedTuple):
    """One event of a span."""

    name: str
    time_ns: int
    attributes: Attributes


class Span(NamedTuple):
    """One finished OpenTelemetry span, or one log record, as far as scoring needs it.

    A log record has the kind `LOG_RECORD`, its event's name, its time as start and end, and the span that it was
    written in as its parent. Its id is made of what it says, so that one that is sent again is recognised.

    A named tuple and not a dataclass: spans are made on the hot path, and a frozen dataclass costs five times as much.
    """

    trace_id: bytes
    """16 bytes; of a log record without a trace id, the `session_key` of its session."""
    span_id: bytes
    parent_span_id: bytes
    """Empty for a root span."""
    name: str
    start_ns: int
    end_ns: int
    """0 when the span was exported before it ended."""
    kind: int = 0
    status_code: int = StatusCode.UNSET
    status_message: str = ""
    attributes: Attributes = EMPTY
    events: tuple[SpanEvent, ...] = ()
    scope: str = ""
    """The name of the instrumentation scope."""
    resource: Attributes = EMPTY
    flags: int = 0
    """The W3C trace flags, and in bits 8 and 9 whether the parent is remote (OTLP)."""
    dropped_attributes: int = 0

    @property
    def is_log(self) -> bool:
        """Whether it is a log record."""
        return self.kind == LOG_RECORD

    @property
    def parent_is_remote(self) -> bool:
        """Whether the sender recorded that the parent span is in another process."""
        return self.flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE


def session_key(trace_id: bytes) -> bytes:
    """Return the key under which the log records of a session are one trace: longer than the trace id of any span.

    Who sends spans can compute the trace id of a session, but name no trace of 17 bytes.

    Args:
        trace_id: 16 bytes, by which the session is reported.
    """
    return trace_id + _SESSION


def reported_trace_id(key: bytes) -> bytes:
    """Return the trace id, of 16 bytes, under which a trace is reported that has this key."""
    return key[:_TRACE_ID_LENGTH]


def refused_span(trace_id: bytes, identity: bytes, name: str = "") -> Span:
    """Return a stand-in for a span or log record that was refused, so that its trace counts as incomplete.

    Args:
        trace_id: 16 bytes, or the `session_key` of a session.
        identity: distinguishes it from other refused ones of its trace; the same when it is sent again.
        name: `DROPPED`, the reason of its refusal, or empty.
    """
    return Span(trace_id, blake2b(trace_id + identity, digest_size=8).digest(), b"", name, 0, 0, REFUSED)


class CloseReason(enum.StrEnum):
    """Why a trace was closed."""

    ROOT_ENDED = "root_ended"
    TIMED_OUT = "timed_out"
    SPAN_LIMIT = "span_limit"
    SIZE_LIMIT = "size_limit"
    EVICTED = "evicted"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A closed trace: the spans received for one trace id, in the order of their arrival.

    It has none where all that is known of it is that spans were refused.
    """

    trace_id: bytes
    """The trace id of its spans; `reported_trace_id` returns the one to show."""
    spans: tuple[Span, ...]
    close_reason: CloseReason
    revision: int = 0
    """Counts the re-scores that late spans caused; 0 is the first closing."""
    refused: int = 0
    """Spans and log records of this trace that were refused: they were sent, and are not among the spans."""
    dropped: int = 0
    """The number of refused spans that were dropped because the queue in the agent's process was full."""
    beyond: Span | None = field(default=None, compare=False)
    """The span that found no room in it, so that a limit closed it. It is not scored, but it may name the agent."""
    cut_short: bool = False
    """Whether the process ended before the trace was due, so that further spans may have been on their way."""
    root_received_at: float | None = field(default=None, compare=False)
    """When the root's end arrived, on the table's clock; None when it never did."""
    verdicts: dict[bytes, str] = field(default_factory=dict, compare=False, repr=False)
    """The last reported verdict of each of its runs; reporting a later revision updates it."""
