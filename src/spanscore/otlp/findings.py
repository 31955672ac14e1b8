"""What decoding an OTLP trace request gives, in whichever encoding it came, and the rules both encodings obey.

`from_json` and `from_protobuf` decode; they answer with the same `Decoded` for the same request. One bad span costs
itself only: it is refused with a reason, the rest of the request is kept.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from spanscore.errors import RefusedError
from spanscore.model import Span, refused_span
from spanscore.otlp.kept_size import SPAN_SIZE, VALUE_SIZE
from spanscore.reading.log_records import SESSIONS
from spanscore.wording.plural import plural
from spanscore.wording.printable import printable

SPANS_PER_REQUEST: Final = 65_536
"""A span takes two bytes on the wire but hundreds in memory: a small request must not become gigabytes of spans."""
ATTRIBUTES_PER_SPAN: Final = 1_024
"""Eight times the limit of the SDKs. The rest is left out, and the span says how many attributes it misses."""
EVENTS_PER_SPAN: Final = 128
"""The limit of the SDKs."""
LINKS_PER_SPAN: Final = 1_024
"""Eight times the limit of the SDKs. Scoring reads nothing of links; what they are is checked of the first ones."""
VALUES_PER_SPAN: Final = 16_384
"""Attributes, items of arrays and entries of mappings, those of events and of arrays in arrays too.

One value may be two bytes on the wire, and takes a microsecond: one span is read in some 20 ms, during which everybody
else waits. It is enough for conversations of a thousand messages, or a handful of embeddings.
"""
VALUES_PER_REQUEST: Final = 1_048_576
"""One for 64 bytes of the largest request. The spans behind them are refused, so that their sender hears of it.

The largest batch that the Collector makes by itself, of 8,192 spans, may have 128 values in each span.
"""
VALUE_LENGTH: Final = 1024 * 1024
"""Longer strings and bytes are left out, not cut: half an argument would be scored as a wrong argument."""
VALUE_DEPTH: Final = 64
"""The nesting of attribute values that OpenTelemetry asks for; in JSON, deeper values are replaced by an empty one.

In protobuf the parser itself refuses spans with values that nest deeper than some 30 to 50.
"""

UNNAMED: Final = "unknown"
"""The name given to a span without one."""


class Refusal(enum.StrEnum):
    """Why a span was refused."""

    INVALID_TRACE_ID = "invalid_trace_id"
    INVALID_SPAN_ID = "invalid_span_id"
    INVALID_PARENT_SPAN_ID = "invalid_parent_span_id"
    INVALID_LINK = "invalid_link"
    INVALID_TIME = "invalid_time"
    INVALID_ENUM = "invalid_enum"
    INVALID_VALUE = "invalid_value"
    INVALID_UTF8 = "invalid_utf8"
    TOO_DEEP = "too_deep"
    TOO_MANY_FIELDS = "too_many_fields"
    TOO_MANY_VALUES = "too_many_values"
    MALFORMED = "malformed"


class Caveat(enum.StrEnum):
    """What was wrong with a request without costing a span."""

    ZERO_PARENT_SPAN_ID = "zero_parent_span_id"
    """A parent span id of zeros: the span is taken for a root."""
    ATTRIBUTE_LIMIT = "attribute_limit"
    """An attribute was left out: one too many, or its value too long."""
    VALUE_LIMIT = "value_limit"
    """An attribute was left out: with it, its span would have too many values."""
    EVENT_LIMIT = "event_limit"
    """An event was left out."""
    DEPTH_LIMIT = "depth_limit"
    """A value nested too deeply was replaced by an empty one."""
    INVALID_SCHEMA_URL = "invalid_schema_url"
    """A schema URL that is not UTF-8, which nobody could read the request with, was left out."""
    NO_RUN = "no_run"
    """A log record that may tell of calls was left out: it has no trace id, and names no session."""
    PROFILING_FIELD = "profiling_field"
    """A field that belongs to the profiling signal was taken as absent."""


class Unread(enum.StrEnum):
    """Why a log record was passed over."""

    OTHER_EVENT = "other_event"
    NO_RUN = "no_run"


def told_of_no_run(count: int) -> str:
    """Return what to do about log records that belong to no run, in words."""
    return (
        f"{plural(count, 'log record')} that may tell of calls left out, as nothing says which run they belong to: "
        f"they have neither a trace id nor {', '.join(SESSIONS[:-1])} or {SESSIONS[-1]}; let the agent write its logs "
        "inside of its spans, with traces switched on, or name its session in them"
    )


class Refused(NamedTuple):
    """The spans of one request that were refused for one reason."""

    reason: Refusal
    spans: int
    example: str
    """Which span, and what is wrong with it. Holds ids and keys, never the value of an attribute."""

    def told(self, noun: str) -> str:
        """Return how many were refused, and why, in words; the noun is that of one of them."""
        return f"{plural(self.spans, noun)} refused ({self.reason}): {self.example}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One OTLP trace request: the spans that can be used, and what had to be refused."""

    spans: list[Span]
    sizes: list[int] = field(default_factory=list, compare=False)
    """About how many bytes of memory each span keeps to itself; what it shares says its size itself."""
    refused: tuple[Refused, ...] = ()
    lost: Sequence[Span] = field(default=(), compare=False)
    """Stand-ins for the refused ones whose trace id could be read, of kind `REFUSED`."""
    caveats: Mapping[Caveat, int] = field(default_factory=dict)
    unread: int = field(default=0, compare=False)
    """How many log records are of events that nobody reads."""
    decoder: Literal["fast", "python"] = field(default="python", compare=False)
    """Which decoder has read it: the compiled one, or the one that is always there."""

    @property
    def refused_spans(self) -> int:
        """How many spans were refused: `rejected_spans` of the partial success."""
        return sum(refused.spans for refused in self.refused)

    @property
    def taken(self) -> tuple[list[Span], list[int]]:
        """The spans, and behind them what stands for refused ones; and the size of each."""
        if not self.lost:
            return self.spans, self.sizes
        return [*self.spans, *self.lost], [*self.sizes, *repeat(SPAN_SIZE, len(self.lost))]

    def refusing(self, refused: Sequence[Refused], lost: Sequence[Span] = ()) -> Decoded:
        """Return the same with more that was refused."""
        by_reason = {each.reason: each for each in refused}
        for each in self.refused:
            more = by_reason.get(each.reason)
            by_reason[each.reason] = more._replace(spans=more.spans + each.spans) if more else each
        return replace(self, refused=tuple(by_reason.values()), lost=(*self.lost, *lost))

    @property
    def unread_records(self) -> Mapping[Unread, int]:
        """How many log records were passed over, by why."""
        counts = {Unread.OTHER_EVENT: self.unread, Unread.NO_RUN: self.caveats.get(Caveat.NO_RUN, 0)}
        return {reason: count for reason, count in counts.items() if count}


class MalformedRequest(RefusedError):  # noqa: N818 - it is the request that is malformed, as OTLP says
    """A request cannot be decoded at all.

    Args:
        what: what is wrong, without the line.
        line: where, counted from 1, in a request that has lines.
    """

    def __init__(self, what: str, *, line: int = 1) -> None:
        super().__init__(what if line == 1 else f"line {line}: {what}")
        self.what = what
        self.line = line


def too_many_spans(limit: int) -> MalformedRequest:
    """Return what is wrong with a request that has more spans than that."""
    return MalformedRequest(f"the request has more than {limit} spans")


class SpanRefused(Exception):  # noqa: N818 - ends the decoding of one span, and is not an error of ours
    """Ends the decoding of one span; never leaves the decoders."""

    trace_id = span_id = b""
    """The ids of a span that could not be decoded, as far as they can be read."""

    def __init__(self, reason: Refusal, what: str) -> None:
        super().__init__(what)
        self.reason = reason


class ValueLeftOut(Exception):  # noqa: N818 - ends the decoding of one attribute, and is not an error of ours
    """Ends the decoding of one attribute; never leaves the decoders."""

    def __init__(self, caveat: Caveat) -> None:
        super().__init__(caveat)
        self.caveat = caveat


_Pair = TypeVar("_Pair")
_Mark: TypeAlias = tuple[int, int, Counter[Caveat]]
_NO_CAVEATS: Final[Counter[Caveat]] = Counter()


@dataclass(slots=True, eq=False, kw_only=True)
class Findings:
    """Collects what is wrong with one request while it is decoded, and how much of it is read and kept.

    Values are counted before they are read, in their order, whether they are kept or not. So both encodings, and every
    run, leave out the same.
    """

    is_bounded: bool = True
    """Whether the request has a limit, beside those of its spans."""
    most_in_request: int = VALUES_PER_REQUEST
    """How many values it may have, then."""
    refused: dict[Refusal, Refused] = field(default_factory=dict)
    lost: list[Span] = field(default_factory=list)
    """As in `Decoded`."""
    caveats: Counter[Caveat] = field(default_factory=Counter)
    ids: dict[bytes, bytes] = field(default_factory=dict)
    """One object of each id that repeats: they are a tenth of what an open span takes."""
    long_texts: dict[int, str] = field(default_factory=dict)
    """The last long text of each length."""
    attributes_left_out: int = 0
    """Goes up only; a span's share is the difference between its end and its start."""
    values: int = 0
    """How many values were read; goes up only."""
    most_values: int = VALUES_PER_SPAN
    """Up to where `values` may go in this span."""
    size: int = 0
    """What this span, or resource, keeps in memory, in bytes."""

    def begin(self) -> bool:
        """Begin with the next resource, and return whether it and its spans may have values."""
        self.size = 0
        self.most_values = self.values + VALUES_PER_SPAN
        return self.values < self.most_in_request or not self.is_bounded

    def begin_span(self) -> None:
        """Begin with the next span, or refuse it where those before it had all values that a request may have."""
        self.size = SPAN_SIZE
        values = self.values
        self.most_values = values + VALUES_PER_SPAN
        if values >= self.most_in_request and self.is_bounded:
            message = f"the spans before it have the {self.most_in_request} values that a request may have"
            raise SpanRefused(Refusal.TOO_MANY_VALUES, message)

    def count_values(self, count: int) -> None:
        """Count the items of an array or a mapping, before they are read.

        Raises:
            ValueLeftOut: the span has too many.
        """
        if self.values + count > self.most_values:
            raise ValueLeftOut(Caveat.VALUE_LIMIT)
        self.values += count
        self.size += count * VALUE_SIZE

    def first(self, pairs: Sequence[_Pair]) -> Sequence[_Pair]:
        """Count attributes before they are read, and return those for which there is room."""
        count = min(len(pairs), ATTRIBUTES_PER_SPAN)
        self.leave_out_attributes(len(pairs) - count, Caveat.ATTRIBUTE_LIMIT)
        fitting = min(count, self.most_values - self.values)
        self.leave_out_attributes(count - fitting, Caveat.VALUE_LIMIT)
        self.values += fitting
        return pairs[:fitting]

    def long_text(self, text: str) -> str:
        """Return a text as the object that it was before: what a span says, its parent often says again."""
        # By its length: a hash of the whole takes three times as long.
        known = self.long_texts.setdefault(len(text), text)
        if known == text:
            return known
        self.long_texts[len(text)] = text
        return text

    def refuse(self, reason: Refusal, example: str, spans: int = 1) -> None:
        """Count refused spans, and keep the first example."""
        if spans:
            before = self.refused.get(reason, Refused(reason, 0, example))
            self.refused[reason] = before._replace(spans=before.spans + spans)

    def lose(self, trace_id: bytes, span_id: bytes = b"") -> None:
        """Note a refused span by its ids as they were read, of which that of the trace has to be valid."""
        if is_trace_id(trace_id):
            self.lost.append(refused_span(trace_id, b"%s %d" % (span_id, len(self.lost))))

    def leave_out_attributes(self, count: int, caveat: Caveat) -> None:
        """Count attributes that the spans will not have."""
        if count:
            self.attributes_left_out += count
            self.caveats[caveat] += count

    def mark(self) -> _Mark:
        """Return what there is by now, for `back_to`."""
        return self.values, self.attributes_left_out, self.caveats.copy() if self.caveats else _NO_CAVEATS

    def back_to(self, mark: _Mark) -> None:
        """Forget what was read since then; no span was refused since."""
        self.values, self.attributes_left_out, caveats = mark
        self.caveats = caveats.copy()

    def decoded(self, spans: list[Span], sizes: list[int]) -> Decoded:
        """Return the request as decoded."""
        return Decoded(
            spans=spans,
            sizes=sizes,
            refused=tuple(self.refused.values()),
            lost=tuple(self.lost),
            caveats=dict(self.caveats),
        )


_ID_SHOWN: Final = 40
_TRACE_ID_LENGTH: Final = 16
_SPAN_ID_LENGTH: Final = 8
_ZERO_TRACE_ID: Final = bytes(_TRACE_ID_LENGTH)
_ZERO_SPAN_ID: Final = bytes(_SPAN_ID_LENGTH)


def is_trace_id(trace_id: bytes) -> bool:
    """Return whether bytes are a valid trace id."""
    return len(trace_id) == _TRACE_ID_LENGTH and trace_id != _ZERO_TRACE_ID


def check_ids(
    trace_id: bytes, span_id: bytes, parent_span_id: bytes, findings: Findings, written: Sequence[object] = ()
) -> bytes:
    """Return the parent's id, empty for a root, or refuse the span.

    Args:
        trace_id: of the span, like those behind it.
        span_id: its own.
        parent_span_id: its parent's, or empty.
        findings: of the request.
        written: the three ids as they came, where they came as something else than bytes.
    """
    ids = written or (trace_id, span_id, parent_span_id)
    if not is_trace_id(trace_id):
        raise SpanRefused(Refusal.INVALID_TRACE_ID, told_of_id("trace_id", ids[0], _TRACE_ID_LENGTH))
    if len(span_id) != _SPAN_ID_LENGTH or span_id == _ZERO_SPAN_ID:
        raise SpanRefused(Refusal.INVALID_SPAN_ID, told_of_id("span_id", ids[1], _SPAN_ID_LENGTH))
    if not parent_span_id:
        return b""
    if len(parent_span_id) != _SPAN_ID_LENGTH:
        raise SpanRefused(Refusal.INVALID_PARENT_SPAN_ID, told_of_id("parent_span_id", ids[2], _SPAN_ID_LENGTH))
    if parent_span_id == _ZERO_SPAN_ID:
        findings.caveats[Caveat.ZERO_PARENT_SPAN_ID] += 1
        return b""
    return parent_span_id


def check_link_ids(trace_id: bytes, span_id: bytes, written: Sequence[object] = ()) -> None:
    """Refuse a span whose link leads to something that is no id; scoring reads no more of links.

    Args:
        trace_id: of the link.
        span_id: of the link.
        written: both as they came, where they came as something else than bytes.
    """
    ids = written or (trace_id, span_id)
    if len(trace_id) not in {0, _TRACE_ID_LENGTH}:
        raise SpanRefused(Refusal.INVALID_LINK, told_of_id("trace_id of a link", ids[0], _TRACE_ID_LENGTH))
    if len(span_id) not in {0, _SPAN_ID_LENGTH}:
        raise SpanRefused(Refusal.INVALID_LINK, told_of_id("span_id of a link", ids[1], _SPAN_ID_LENGTH))


def told_of_id(name: str, raw: object, length: int) -> str:
    """Return what is wrong with an id of so many bytes, which came as bytes or as a value of JSON, in words."""
    match raw:
        case bytes():
            text = raw[:_ID_SHOWN].hex()
        case str() | int() | float():
            text = str(raw)
        case _:  # a list or an object may be large, and nest too deeply to be written
            text = "" if raw is None else "[...]" if isinstance(raw, list) else "{...}"
    shown = f"{name} '{printable(text, _ID_SHOWN)}'"
    if len(text) == 2 * length and not text.strip("0"):
        return f"{shown} is all zeros"
    return f"{shown} is not {length} bytes (in JSON {2 * length} hex digits)"
