"""The result of decoding an OTLP trace request in either encoding, and the rules that both encodings share.

`from_json` and `from_protobuf` return the same `Decoded` for the same request. One bad span costs only itself: it is
refused with a reason, and the rest of the request is kept.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from typing import Final, Literal, NamedTuple, TypeVar

from spanscore.errors import RefusedError
from spanscore.messages.plural import plural
from spanscore.model import Span, refused_span
from spanscore.otlp.kept_size import SPAN_SIZE, VALUE_SIZE
from spanscore.otlp.limits import ATTRIBUTES_PER_SPAN, VALUES_PER_REQUEST, VALUES_PER_SPAN
from spanscore.trajectories.log_records import SESSIONS

UNNAMED: Final = "unknown"
"""The name given to a span without one."""
STAND_IN: Final = "refused: "
"""How the name of a span begins that is written in place of a refused one; the reason follows. It has no span id."""


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
    UNKNOWN_FIELD = "unknown_field"
    """A resource or scope has fields, but none that leads to spans. How many they were to be is not known."""


class Caveat(enum.StrEnum):
    """A problem of a request that cost no span."""

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
    """A schema URL that is not UTF-8 was left out, as no receiver could parse the request with it."""
    NO_RUN = "no_run"
    """A log record that may describe calls was left out: it has neither a trace id nor a session."""
    NOT_FORWARDED = "not_forwarded"
    """A span in JSON is not sent on: protobuf cannot represent it, or a field that is not read is wrong."""
    PROFILING_FIELD = "profiling_field"
    """A field that belongs to the profiling signal was taken as absent."""


class Unread(enum.StrEnum):
    """Why a log record was passed over."""

    OTHER_EVENT = "other_event"
    NO_RUN = "no_run"


def told_of_no_run(count: int) -> str:
    """Return a message with the remedy for log records that belong to no run."""
    return (
        f"{plural(count, 'log record')} left out, because their run is not known; they may hold tool calls. They have "
        f"neither a trace id nor {', '.join(SESSIONS[:-1])} or {SESSIONS[-1]}; let the agent write its logs "
        "inside of its spans, with traces switched on, or name its session in them"
    )


class RefusedSpans(NamedTuple):
    """The spans of one request that were refused for one reason."""

    reason: Refusal
    spans: int
    """0 if it is not known."""
    example: str
    """The span and its problem. Contains ids and keys, never the value of an attribute."""

    def told(self, noun: str) -> str:
        """Return how many were refused, and why, in words; the noun is that of one of them."""
        if not self.spans:
            return self.example
        return f"{plural(self.spans, noun)} refused ({self.reason}): {self.example}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """One decoded OTLP request: the usable spans, and counts and examples of the refused ones."""

    spans: list[Span]
    sizes: list[int] = field(default_factory=list, compare=False)
    """The approximate bytes of memory of each span, without shared objects, which know their own size."""
    refused: tuple[RefusedSpans, ...] = ()
    lost: Sequence[Span] = field(default=(), compare=False)
    """Stand-ins for the refused ones whose trace id could be read, of kind `REFUSED`."""
    caveats: Mapping[Caveat, int] = field(default_factory=dict)
    unread: int = field(default=0, compare=False)
    """The number of log records of events that no dialect reads."""
    decoder: Literal["fast", "python"] = field(default="python", compare=False)
    """The decoder that has read it: the compiled one, or the one in Python."""

    @property
    def refused_spans(self) -> int:
        """The number of refused spans: `rejected_spans` of the partial success."""
        return sum(refused.spans for refused in self.refused)

    @property
    def taken(self) -> tuple[list[Span], list[int]]:
        """The spans, followed by stand-ins for refused ones; and the size of each in bytes."""
        if not self.lost:
            return self.spans, self.sizes
        return [*self.spans, *self.lost], [*self.sizes, *repeat(SPAN_SIZE, len(self.lost))]

    def refusing(self, refused: Sequence[RefusedSpans], lost: Sequence[Span] = ()) -> Decoded:
        """Return the same with more that was refused."""
        by_reason = {each.reason: each for each in refused}
        for each in self.refused:
            more = by_reason.get(each.reason)
            by_reason[each.reason] = more._replace(spans=more.spans + each.spans) if more else each
        return replace(self, refused=tuple(by_reason.values()), lost=(*self.lost, *lost))

    @property
    def unread_records(self) -> Mapping[Unread, int]:
        """The number of log records that were skipped, by reason."""
        counts = {Unread.OTHER_EVENT: self.unread, Unread.NO_RUN: self.caveats.get(Caveat.NO_RUN, 0)}
        return {reason: count for reason, count in counts.items() if count}


class MalformedRequest(RefusedError):  # noqa: N818 - it is the request that is malformed, as OTLP says
    """A request cannot be decoded at all.

    Args:
        what: the problem, without the line.
        line: its line, counted from 1, in a request that has lines.
    """

    def __init__(self, what: str, *, line: int = 1) -> None:
        super().__init__(what if line == 1 else f"line {line}: {what}")
        self.what = what
        self.line = line


def too_many_spans(limit: int) -> MalformedRequest:
    """Return the error of a request that has more spans than the limit."""
    return MalformedRequest(f"the request has more than {limit} spans")


class SpanRefused(Exception):  # noqa: N818 - ends the decoding of one span, and is not an error of ours
    """Ends the decoding of one span; never leaves the decoders."""

    trace_id = span_id = parent_span_id = b""
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


@dataclass(slots=True, eq=False, kw_only=True)
class Findings:
    """Collects the problems of one request while it is decoded, and counts the values read and the bytes kept.

    Values are counted before they are read, in their order, whether they are kept or not. So both encodings, and every
    run, leave out the same.
    """

    is_bounded: bool = True
    """Whether the request has a limit in addition to the limits of its spans."""
    most_in_request: int = VALUES_PER_REQUEST
    """The most values of a request with a limit."""
    refused: dict[Refusal, RefusedSpans] = field(default_factory=dict)
    lost: list[Span] = field(default_factory=list)
    """As in `Decoded`."""
    caveats: defaultdict[Caveat, int] = field(default_factory=partial(defaultdict, int))
    ids: dict[bytes, bytes] = field(default_factory=dict)
    """One object of each id that repeats: ids are a tenth of the memory of an open span."""
    long_texts: dict[int, str] = field(default_factory=dict)
    """The last long text of each length."""
    attributes_left_out: int = 0
    """Goes up only; a span's share is the difference between its end and its start."""
    values: int = 0
    """The number of values read; never decreases."""
    most_values: int = VALUES_PER_SPAN
    """Up to where `values` may go in this span."""
    size: int = 0
    """The memory that this span or resource takes, in bytes."""

    def begin(self) -> bool:
        """Begin with the next resource, and return whether it and its spans may have values."""
        self.size = 0
        self.most_values = self.values + VALUES_PER_SPAN
        return self.values < self.most_in_request or not self.is_bounded

    def begin_span(self) -> None:
        """Begin the next span, or refuse it if the spans before it used all values that a request may have."""
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
        """Count attributes before they are read, and return the first ones that the limits allow."""
        if len(pairs) <= ATTRIBUTES_PER_SPAN and self.values + len(pairs) <= self.most_values:
            self.values += len(pairs)
            return pairs
        count = min(len(pairs), ATTRIBUTES_PER_SPAN)
        self.leave_out_attributes(len(pairs) - count, Caveat.ATTRIBUTE_LIMIT)
        fitting = min(count, self.most_values - self.values)
        self.leave_out_attributes(count - fitting, Caveat.VALUE_LIMIT)
        self.values += fitting
        return pairs[:fitting]

    def long_text(self, text: str) -> str:
        """Return an equal text that was read before, if there is one: a parent often repeats the text of its child."""
        # By its length: a hash of the whole takes three times as long.
        known = self.long_texts.setdefault(len(text), text)
        if known == text:
            return known
        self.long_texts[len(text)] = text
        return text

    def refuse(self, reason: Refusal, example: str, spans: int = 1) -> None:
        """Count refused spans, and keep the first example."""
        if spans:
            before = self.refused.get(reason, RefusedSpans(reason, 0, example))
            self.refused[reason] = before._replace(spans=before.spans + spans)

    def lose(self, reason: Refusal, trace_id: bytes, span_id: bytes = b"") -> None:
        """Note a refused span by its ids as they were read, of which that of the trace has to be valid."""
        if is_trace_id(trace_id):
            self.lost.append(refused_span(trace_id, b"%s %d" % (span_id, len(self.lost)), reason))

    def leave_out_attributes(self, count: int, caveat: Caveat) -> None:
        """Count attributes that the spans will not have."""
        if count:
            self.attributes_left_out += count
            self.caveats[caveat] += count

    def decoded(self, spans: list[Span], sizes: list[int]) -> Decoded:
        """Return the request as decoded."""
        return Decoded(
            spans=spans,
            sizes=sizes,
            refused=tuple(self.refused.values()),
            lost=tuple(self.lost),
            caveats=dict(self.caveats),
        )


NO_TRACE_ID: Final = bytes(16)


def is_trace_id(trace_id: bytes) -> bool:
    """Return whether bytes are a valid trace id."""
    return len(trace_id) == len(NO_TRACE_ID) and trace_id != NO_TRACE_ID
