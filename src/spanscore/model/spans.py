"""What comes in: spans, and the traces that they make up."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
AttributeValue: TypeAlias = "bool | int | float | str | bytes | list[AttributeValue] | dict[str, AttributeValue] | None"
Attributes: TypeAlias = Mapping[str, AttributeValue]


class NotRecorded(enum.Enum):
    """The type of `NOT_RECORDED`: the spans do not say, which is not the same as null or empty."""

    NOT_RECORDED = "not recorded"

    def __repr__(self) -> str:
        return "NOT_RECORDED"


NOT_RECORDED: Final = NotRecorded.NOT_RECORDED

Recorded: TypeAlias = "JSON | NotRecorded"

LOG_RECORD: Final = 2**32
"""The kind of a span that is a log record: what emitters tell in logs is read as what they tell in spans.

None that OTLP has room for, where kinds are numbers of 32 bits: no sender's span passes for one."""

REFUSED: Final = 2**32 + 1
"""The kind of a span that stands for one that was refused, or lost on the way: all that is known of it is its trace."""

NO_SPAN: Final = bytes(8)
"""What stands for the parent of a log record that was written in no span: it is no root."""

PARENT_IS_REMOTE: Final = 0x300
"""The bits of a span's flags that are both set where the parent is remote: one says that the other is meant."""

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class SharedAttributes(dict[str, AttributeValue]):
    """Attributes that many spans have in common, such as those of their resource, and what they take in memory.

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
        """True when the sender said that the parent span lives in another process."""
        return self.flags & PARENT_IS_REMOTE == PARENT_IS_REMOTE


def refused_span(trace_id: bytes, identity: bytes) -> Span:
    """Return what stands for a span or log record that was refused, so that its trace is known to lack it.

    Args:
        trace_id: 16 bytes.
        identity: tells it apart from others of its trace that were refused; the same when it is sent again.
    """
    return Span(trace_id, blake2b(trace_id + identity, digest_size=8).digest(), b"", "", 0, 0, REFUSED)


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
    spans: tuple[Span, ...]
    close_reason: CloseReason
    revision: int = 0
    """Counts the re-scores that late spans caused; 0 is the first closing."""
    refused: int = 0
    """Spans and log records of this trace that were refused: they were sent, and are not among the spans."""
    root_received_at: float | None = field(default=None, compare=False)
    """When the root's end arrived, on the table's clock; None when it never did."""
    verdicts: dict[bytes, str] = field(default_factory=dict, compare=False, repr=False)
    """The last verdict of each of its runs that was reported; who reports one of a later revision puts it there."""
