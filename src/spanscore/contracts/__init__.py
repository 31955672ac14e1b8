"""The plug-in API: the protocols, the types of settings, how plug-ins are found; and the list of our metrics.

A plug-in is one class in one file. Built-ins are found by file name (`evaluators/tool_call_count.py` has
`ToolCallCount`, type `tool_call_count`); others by the entry-point groups `spanscore.evaluators`,
`spanscore.dialects` and so on, whose entry names are the types. `spanscore.testing` checks that a plug-in keeps its
contract.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Protocol, runtime_checkable

from annotated_types import Ge, Le

from spanscore.contracts.dialects import CallReading as CallReading
from spanscore.contracts.dialects import CallRequest as CallRequest
from spanscore.contracts.dialects import CallState as CallState
from spanscore.contracts.dialects import CaptureSetting as CaptureSetting
from spanscore.contracts.dialects import Dialect as Dialect
from spanscore.contracts.dialects import Markers as Markers
from spanscore.contracts.dialects import ModelCallReading as ModelCallReading
from spanscore.contracts.dialects import ModelReading as ModelReading
from spanscore.contracts.dialects import Precedence as Precedence
from spanscore.contracts.dialects import Reading as Reading
from spanscore.contracts.dialects import SentMessage as SentMessage
from spanscore.contracts.dialects import TellsCaptureSettings as TellsCaptureSettings
from spanscore.contracts.dialects import TellsModelCalls as TellsModelCalls
from spanscore.contracts.dialects import TellsResults as TellsResults
from spanscore.contracts.instruments.instrument import Instrument
from spanscore.model import Outcome, Report, Trajectory
from spanscore.model.alarms import MonitorAlarm

ToolNames = Literal["exact", "sanitized", "canonical"]
Namespaces = Literal["strip", "keep"]
Roots = Literal["none", "parentless", "remote_parent"]
"""The spans to hold back: none, spans without a parent, or also spans with a remote parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters that every built-in evaluator has. Data only: subclass it and add fields."""

    threshold: Annotated[float, Ge(0), Le(1)] = 1.0
    """The trajectory passes when its value is at least this."""
    tool_names: ToolNames = "exact"
    """The comparison of tool names; both sides are normalised."""
    namespaces: Namespaces = "strip"
    """With canonical names: keep the last segment of a qualified name, or drop only well-known roots."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """With canonical names: names that mean the same tool, as {name: canonical name}."""


class Evaluator(Protocol):
    """Scores one trajectory.

    An evaluator is a frozen dataclass: its fields are its parameters, their annotations (with `annotated_types`)
    define the allowed values, a string below a field documents it, and `__post_init__` raises ValueError for rules
    that annotations cannot express. The class docstring defines the value, what counts, and when it skips.

    `evaluate` is pure: no I/O, no clock, no randomness, no state. It returns `Skipped` if data is missing. An
    exception is contained and reported as `Failed`, but is a bug. An evaluator of a plug-in runs in a separate process
    and has `time_limit` for each trajectory (docs/adr/007). So its class must be importable from its module by name,
    and its fields must be picklable. An evaluator that does not read results declares it: see `looks_at_results`.
    """

    expectation: ClassVar[str | None]
    """The parameter that `expected_from` fills in trace by trace; None when the evaluator expects nothing."""

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Return exactly one outcome; the same for the same trajectory."""


@runtime_checkable
class NeedsModelCalls(Protocol):
    """An evaluator that reads `Trajectory.model_calls`, `user_text` or `system_text`, or `ToolCall.turn`.

    They are filled, and the attributes behind them kept, only if an evaluator that needs them is configured; else they
    are empty.
    """

    needs_model_calls: ClassVar[bool]


def looks_at_results(other: object) -> bool:
    """Return whether an evaluator or emitter reads `ToolCall.result`: unless its `needs_results` is False.

    If no configured one does, `spanscore serve` does not keep results. `needs_results` may be a property that depends
    on the parameters; an evaluator that is made for each trajectory must have it on the class. An emitter that reads
    results only if `Report.tool_content` is true need not declare it: all results are kept then.
    """
    return getattr(other, "needs_results", None) is not False


class Emitter(Protocol):
    """Sends reports somewhere: to a metrics backend, a log, a file, a terminal.

    Methods are called one after the other, never two at a time, but not always on one thread: `spanscore serve` calls
    `close` on another thread when it ends. An exception is contained and counted, and stops no other emitter.

    An emitter that queues, or that must not see a report again after a crash, declares it with the members of one of
    the protocols below: `AtMostOnce`, `SendsInBackground`, `SendsInOrder`, `KnowsWhatItWrote`, `HoldsSpansBack`,
    `SendsMetrics`. Inheriting from them is not necessary.
    """

    def emit(self, report: Report) -> None:
        """Send a report, or queue it. Must not wait: put reports that cannot be sent now into a bounded queue.

        After this returns, the spans of the report are no longer kept, unless the emitter is one that `SendsInOrder`.
        So data that must survive a kill is written by then, and not left in a buffer.

        If `Trajectory.recognised` is false, the trace is another service's, without a span of a known instrumentation:
        emit no scores, and release spans that were held back for it.

        If `Report.conversation` is set, the report is of a conversation: add nothing to the spans of its last turn, and
        count it only if `conversation.finished` is set, as earlier reports have new failures only.
        """

    def flush(self, timeout_s: float) -> bool:
        """Send what is queued within the timeout and return whether all of it went out.

        Called inside an application, when it flushes its providers; `spanscore serve` never calls it.
        """

    def close(self, timeout_s: float) -> bool:
        """Flush, then free everything. Nothing is emitted after it."""


@runtime_checkable
class AtMostOnce(Protocol):
    """An emitter that gets no report again after a crash for a trace that was scored before: one that counts or prints.

    All other emitters may get it again: reports have an id for recognising repeats.
    """

    at_most_once: bool


class Outgoing(Protocol):
    """The queue of an emitter. Read from any thread."""

    @property
    def size(self) -> int:
        """Items in it."""

    @property
    def capacity(self) -> int:
        """Items that fit."""

    @property
    def failures(self) -> Mapping[str, int]:
        """The number of items that could not be sent, by reason."""


@runtime_checkable
class SendsInBackground(Protocol):
    """An emitter that queues: our own metrics include the size of its queue, and its failures."""

    @property
    def outbox(self) -> Outgoing | None:
        """The queue; None if it belongs to another emitter."""


@runtime_checkable
class SendsInOrder(Protocol):
    """An emitter that sends its queue in order: spans are kept until the items that it queued for them are sent.

    For other emitters, a trace is done after `emit` has returned.
    """

    @property
    def progress(self) -> tuple[int, int]:
        """The number of items queued so far, and the number of these that were sent or dropped."""


@runtime_checkable
class KnowsWhatItWrote(Protocol):
    """An emitter that can look up whether it wrote a report before the process was killed."""

    def expect_repeats(self, trace_ids: Collection[bytes]) -> None:
        """Do not write the reports of these traces again that were written before."""


@runtime_checkable
class TakesAlarms(Protocol):
    """An emitter that sends the alarms of monitors, too."""

    def alarm(self, alarm: MonitorAlarm) -> None:
        """Send that an alarm begins or ends."""


@runtime_checkable
class HoldsSpansBack(Protocol):
    """An emitter that passes spans on, some of them only when their trace is scored."""

    def give_up(self, trace_ids: Iterable[bytes]) -> None:
        """Discard the spans of these traces that are held back: another receiver sends them on."""


class Sink(Protocol):
    """A destination of metrics: a meter of OpenTelemetry, or a page for Prometheus."""

    def record(self, instrument: Instrument, value: float) -> None:
        """Add a measurement to a histogram."""

    def observe(self, instrument: Instrument, read: Callable[[], Mapping[tuple[str | None, ...], float]]) -> None:
        """Register numbers that are read whenever metrics are sent or scraped, from any thread."""


@runtime_checkable
class SendsMetrics(Protocol):
    """An emitter of metrics: our own go there too."""

    sink: Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class PassingOn:
    """The settings by which a program sends received spans on."""

    held_roots: Roots = "none"
    """The spans to hold back until their trace is scored, to put the scores on them."""
    annotates: bool = True
    """Whether scores are put on the spans that are held back."""
    child_spans: bool = False
    """Whether scores are sent as a separate child span of the evaluated one."""
    waiting_bytes: int = 0
    """The most bytes of spans that wait for the decision whether their trace is kept."""
    delay_s: float = 2.0
    """The longest wait for one more late child before a trace is scored, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The properties of the program in which an emitter is built."""

    owns_terminal: bool = True
    """Whether only spanscore writes to the terminal."""
    listens: bool = False
    """Whether an emitter that has a page must serve it itself."""
    passes_on: PassingOn | None = None
    """Set if the program receives requests that can be sent on."""


class EmitterPlugin(Protocol):
    """An entry of `exporters: {NAME: {key: value}}`: declares its settings, and is built from them.

    `Settings` is a frozen dataclass, whose fields are documented and checked as an evaluator's parameters are.
    `spanscore.contracts.settings` has types for durations, sizes, addresses, files and secrets. The first sentence of
    the class docstring names the destination of the scores.
    """

    Settings: ClassVar[type]

    @classmethod
    def configured(cls, settings: Any, host: Host) -> Emitter | Mapping[str, Emitter]:
        """Return the emitter, or several by the names under which each is counted. What cannot start raises."""


class SpanIntake(Protocol):
    """Takes the requests of a receiver. Belongs to the event loop in which the receiver was made."""

    async def take(self, request: bytes, *, is_json: bool = False) -> None:
        """Take an OTLP ExportTraceServiceRequest in protobuf or JSON; when this returns it may be acknowledged.

        Raises:
            RefusedError: it cannot be used; a retry is useless.
            TryAgainError: it cannot be taken now, and is to be sent again later.
        """


class Receiver(Protocol):
    """Brings spans from somewhere to an intake, in the event loop that made it."""

    async def start(self) -> str:
        """Start, and return in words where it listens or reads from. Raises if it cannot be started."""

    async def stop(self, grace_s: float) -> None:
        """Stop receiving, and finish running requests within the time. May be called without a start."""


class ReceiverPlugin(Protocol):
    """An entry of `receivers: {NAME: {key: value}}`: declares its settings, like an emitter, and is built from them.

    The first sentence of the class docstring names the source of the spans.
    """

    Settings: ClassVar[type]

    @classmethod
    def configured(cls, settings: Any, intake: SpanIntake) -> Receiver:
        """Return the receiver; it does nothing before `start`."""
