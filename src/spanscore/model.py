"""The values that flow through spanscore: spans in, traces, trajectories, scores out.

Everything here is an immutable value and imports the standard library only. Units are in the names: ``_ns`` is
nanoseconds since the Unix epoch, ``_ms`` milliseconds. Ids are the raw bytes of OTLP: 16 for a trace, 8 for a span.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

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

LOG_RECORD: Final = -1
"""The kind of a span that is a log record: what emitters tell in logs is read as what they tell in spans."""

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
    """A closed trace: the spans received for one trace id, in the order of their arrival."""

    trace_id: bytes
    spans: tuple[Span, ...]
    close_reason: CloseReason
    revision: int = 0
    """Counts the re-scores that late spans caused; 0 is the first closing."""
    root_received_at: float | None = field(default=None, compare=False)
    """When the root's end arrived, on the table's clock; None when it never did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call as the spans tell it."""

    name: str
    arguments: Recorded = NOT_RECORDED
    result: Recorded = NOT_RECORDED
    error: str | None = None
    """A short text when the call failed; None when nothing says so."""
    error_type: str | None = field(default=None, compare=False)
    """The `error.type` of a call that failed, with which `error` begins; None when the spans do not tell it."""
    call_id: str | None = None
    """The id the model gave the call."""
    span_id: bytes | None = None
    """The span of the execution; None when only the model's request is known."""
    start_ns: int = 0
    end_ns: int = 0
    agent: str | None = None
    sequence: int | None = None
    """The number the instrumentation gave the call, where it numbers calls."""

    @property
    def error_without_content(self) -> str | None:
        """What may be told of the error where the texts of tools may not go."""
        return None if self.error is None else self.error_type or "error"

    @property
    def duration_ms(self) -> float:
        """How long the call took; 0 where the clocks disagree and it would be negative."""
        return max(0, self.end_ns - self.start_ns) / 1e6

    @property
    def was_timed(self) -> bool:
        """Whether its execution was seen to the end: not where only a model's request tells of it, or it still runs."""
        return self.span_id is not None and self.end_ns != 0


class Unit(enum.StrEnum):
    """What one trajectory is cut from."""

    TRACE = "trace"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """How much of the run the spans show.

    What is missing makes an evaluator that needs it answer `Skipped`; it never counts against the agent.
    """

    root_seen: bool = True
    from_logs: bool = False
    """Only log records tell of the run: there is no root to wait for."""
    parents_missing: int = 0
    """Spans whose parent was not received."""
    truncated: bool = False
    """A limit closed the trace before its end."""
    arguments_recorded: bool = True
    """False when at least one call has no recorded arguments."""
    results_recorded: bool = True
    """False when at least one call that did not fail has no recorded result."""

    @property
    def complete(self) -> bool:
        """Whether every span of the run was received."""
        return self.root_seen and not self.parents_missing and not self.truncated

    def of(self, calls: Iterable[ToolCall]) -> Completeness:
        """Return the same for a trajectory with these calls."""
        calls = tuple(calls)
        return replace(
            self,
            arguments_recorded=all(call.arguments is not NOT_RECORDED for call in calls),
            results_recorded=all(call.result is not NOT_RECORDED or call.error is not None for call in calls),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """The ordered tool calls of one trace, or of one agent run inside it, and what is known about the run."""

    calls: tuple[ToolCall, ...]
    trace_id: bytes = b""
    root_span_id: bytes = b""
    """The span evaluated: the trace's root, or the agent span. Where the root never came, the topmost span received."""
    unit: Unit = Unit.TRACE
    service: str | None = None
    agent: str | None = None
    conversation_id: str | None = None
    response_id: str | None = None
    attributes: Attributes = field(default_factory=dict)
    """What `match` and `expected_from` look at: resource attributes, then those of the root span, then `span.name`."""
    tool_definitions: Mapping[str, JSON] = field(default_factory=dict)
    """JSON Schema of the arguments by tool name, as far as the trace carries it."""
    completeness: Completeness = Completeness()
    recognised: bool = True
    """Whether a dialect knows any span of the trace; where none does, it is no agent's, as far as can be told."""
    unread: str | None = None
    """Why the calls cannot be relied on: then nothing is evaluated. None where they can."""
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The names of the calls: what every evaluator looks at, so they are listed once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple([call.name for call in self.calls]))

    @classmethod
    def from_calls(cls, calls: Iterable[Mapping[str, Any]]) -> Trajectory:
        """Build a trajectory by hand.

        Args:
            calls: one mapping a call. `name` is required; `arguments`, `result`, `error`, `call_id`, `sequence`
                (an integer) and `duration_ms` may be left out. Missing `arguments` means that the call had none.

        Raises:
            ValueError: a call has no name, or a key that is not known.
        """
        return cls(calls=tuple(_call(index, call) for index, call in enumerate(calls)))

    def without_arguments(self, names: Iterable[str] | None = None) -> tuple[ToolCall, ...]:
        """Return the calls whose arguments an evaluator would need but the spans do not hold.

        Args:
            names: look at the calls of these tools only.
        """
        if self.completeness.arguments_recorded:
            return ()
        wanted = None if names is None else frozenset(names)
        return tuple(
            call for call in self.calls if call.arguments is NOT_RECORDED and (wanted is None or call.name in wanted)
        )


_CALL_KEYS: Final = ("name", "arguments", "result", "error", "call_id", "sequence", "duration_ms")


def _call(index: int, call: Mapping[str, Any]) -> ToolCall:
    name = call.get("name")
    if not isinstance(name, str):
        message = f"call {index}: 'name' must be a string, not {name!r}"
        raise ValueError(message)  # noqa: TRY004 - one kind of error for everything wrong with a call
    unknown = sorted(set(call) - set(_CALL_KEYS))
    if unknown:
        message = f"call {index} ({name!r}): unknown key {unknown[0]!r}; allowed: {', '.join(_CALL_KEYS)}"
        raise ValueError(message)
    return ToolCall(
        name=name,
        arguments=call.get("arguments", NOT_RECORDED),
        result=call.get("result", NOT_RECORDED),
        error=call.get("error"),
        call_id=call.get("call_id"),
        sequence=call.get("sequence"),
        end_ns=round((call.get("duration_ms") or 0.0) * 1e6),
    )


@dataclass(frozen=True, slots=True)
class Score:
    """A trajectory was evaluated.

    Args:
        value: finite, from 0 to 1.
        passed: whether the value reached the threshold and every gate held.
        explanation: one sentence from which the value can be recomputed by hand, and what deviates, down to the
            argument: `issue_refund.amount: expected 40, got 400`.
        details: JSON that says the same to a program.
        without_content: the explanation without arguments and results, for where those may not go; None where the
            explanation holds none.
    """

    value: float
    passed: bool
    explanation: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    without_content: str | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """There was nothing to evaluate, or not enough was recorded; never a score of 0."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The evaluator itself went wrong."""

    error_type: str
    message: str


Outcome: TypeAlias = Score | Skipped | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What one configured evaluator said about one trajectory."""

    name: str
    """The user's name for it: `gen_ai.evaluation.name`."""
    type: str
    outcome: Outcome
    version: str | None = None
    """Of the distribution that the evaluator comes from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All evaluations of one trajectory."""

    trajectory: Trajectory
    evaluations: tuple[Evaluation, ...]
    close_reason: CloseReason
    revision: int = 0
    tool_content: bool = False
    """Whether arguments and results of tools may go where scores go."""

    @property
    def complete(self) -> bool:
        """Whether the whole run was seen."""
        completeness = self.trajectory.completeness
        return completeness.complete and (completeness.from_logs or self.close_reason is CloseReason.ROOT_ENDED)

    def told(self, score: Score) -> str:
        """Return the explanation of a score of this report, with arguments and results only where they may go."""
        if self.tool_content or score.without_content is None:
            return score.explanation
        return score.without_content

    @property
    def failing(self) -> tuple[str, ...]:
        """The names of the evaluations that failed or were not passed."""
        return tuple(
            evaluation.name
            for evaluation in self.evaluations
            if isinstance(evaluation.outcome, Failed)
            or (isinstance(evaluation.outcome, Score) and not evaluation.outcome.passed)
        )

    @property
    def label(self) -> Literal["pass", "fail", "not_evaluated"]:
        """`fail` when an evaluation failed or was not passed, `not_evaluated` when none has a score."""
        if self.failing:
            return "fail"
        is_scored = any(isinstance(evaluation.outcome, Score) for evaluation in self.evaluations)
        return "pass" if is_scored else "not_evaluated"

    @property
    def verdict(self) -> Literal["pass", "fail", "none"]:
        """The same as metrics and spans say it, in which what was not evaluated is `none`."""
        label = self.label
        return "none" if label == "not_evaluated" else label
