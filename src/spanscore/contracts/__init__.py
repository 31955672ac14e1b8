"""The plug-in API: what an evaluator, an emitter and a receiver owe spanscore; `dialects.py` has what a dialect does.

A plug-in is one class in one file. Built-ins are found by file name (`evaluators/tool_call_count.py` holds
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
from spanscore.contracts.dialects import Dialect as Dialect
from spanscore.contracts.dialects import Markers as Markers
from spanscore.contracts.dialects import ModelCallReading as ModelCallReading
from spanscore.contracts.dialects import ModelReading as ModelReading
from spanscore.contracts.dialects import Precedence as Precedence
from spanscore.contracts.dialects import Reading as Reading
from spanscore.contracts.dialects import TellsModelCalls as TellsModelCalls
from spanscore.contracts.dialects import TellsResults as TellsResults
from spanscore.instruments.instrument import Instrument
from spanscore.model import Outcome, Report, Trajectory

ToolNames = Literal["exact", "sanitized", "canonical"]
Namespaces = Literal["strip", "keep"]
Roots = Literal["none", "parentless", "remote_parent"]
"""Which spans to hold back: none, those without a parent, or also those whose parent is remote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters that every built-in evaluator has. Data only: subclass it and add fields."""

    threshold: Annotated[float, Ge(0), Le(1)] = 1.0
    """The trajectory passes when its value is at least this."""
    tool_names: ToolNames = "exact"
    """How tool names are compared; both sides are normalised."""
    namespaces: Namespaces = "strip"
    """With canonical names: keep the last segment of a qualified name, or drop only well-known roots."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """With canonical names: names that mean the same tool, as {name: canonical name}."""


class Evaluator(Protocol):
    """Scores one trajectory.

    An evaluator is a frozen dataclass: its fields are its parameters, their annotations (with `annotated_types`) say
    what is allowed, a string below a field documents it, and `__post_init__` raises ValueError for what annotations
    cannot say. The class docstring defines the value, what counts, and when it skips.

    `evaluate` is pure: no I/O, no clock, no randomness, no state. It answers `Skipped` where data is missing. An
    exception is contained and reported as `Failed`, but is a bug. An evaluator of a plug-in runs in a process of its
    own and has `time_limit` for each trajectory (docs/adr/007), so that its class must be found in its module by name,
    and its fields can be pickled.
    """

    expectation: ClassVar[str | None]
    """The parameter that `expected_from` fills in trace by trace; None when the evaluator expects nothing."""

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Return exactly one outcome; the same for the same trajectory."""


@runtime_checkable
class NeedsModelCalls(Protocol):
    """An evaluator that looks at `Trajectory.model_calls`, `user_text` or `system_text`, or at `ToolCall.turn`.

    They are read, and the attributes that tell them kept, only where one that needs them is configured: without it,
    they are empty.
    """

    needs_model_calls: ClassVar[bool]


@runtime_checkable
class LooksAtResults(Protocol):
    """An evaluator or emitter that says whether it looks at `ToolCall.result`; one that does not say is taken to look.

    Where none that is configured does, `spanscore serve` does not keep results.
    """

    @property
    def needs_results(self) -> bool:
        """Whether it does, as it is configured.

        Where an evaluator is made for each trajectory, its class has to say so. An emitter that looks only where
        `Report.tool_content` is true need not: then all results are kept.
        """


def looks_at_results(other: object) -> bool:
    """Return whether an evaluator or emitter looks at results."""
    return not isinstance(other, LooksAtResults) or other.needs_results is not False


class Emitter(Protocol):
    """Sends reports somewhere: to a metrics backend, a log, a file, a terminal.

    Methods are called one after the other, never two at a time, but not always on one thread: `close` comes on another
    where `spanscore serve` ends. An exception is contained and counted, and stops no other emitter.

    An emitter that queues, or that must not see a report again after a crash, says so by having what one of the
    protocols below asks for: `AtMostOnce`, `SendsInBackground`, `SendsInOrder`, `KnowsWhatItWrote`, `HoldsSpansBack`,
    `SendsMetrics`. None of them needs to be inherited from.
    """

    def emit(self, report: Report) -> None:
        """Send a report, or queue it. Must not wait: what cannot go out now belongs in a bounded queue of its own.

        When this returns, nothing is kept for the report any more, unless the emitter is one that `SendsInOrder`: what
        has to outlive a kill is written by then, and not left in a buffer.

        A report whose trajectory is not known (`Trajectory.recognised`) is of a trace without a span of a known
        instrumentation, another service's: nothing is to be said of it, and what was held back for it may go on.
        """

    def flush(self, timeout_s: float) -> bool:
        """Send what is queued within the timeout and return whether all of it went out.

        Called inside an application, when it flushes its providers; by `spanscore serve` never.
        """

    def close(self, timeout_s: float) -> bool:
        """Flush, then free everything. Nothing is emitted after it."""


@runtime_checkable
class AtMostOnce(Protocol):
    """An emitter that is not told again, after a crash, of a trace that was scored before it: one that counts.

    All others may be: their reports have an id by which they are recognised.
    """

    at_most_once: bool


class Outgoing(Protocol):
    """What an emitter has on its way. Read from any thread."""

    @property
    def size(self) -> int:
        """Items in it."""

    @property
    def capacity(self) -> int:
        """Items that fit."""

    @property
    def failures(self) -> Mapping[str, int]:
        """What could not be sent, by why."""


@runtime_checkable
class SendsInBackground(Protocol):
    """An emitter that queues: how full the queue is, and what failed, are among our own metrics."""

    @property
    def outbox(self) -> Outgoing | None:
        """What is on its way; None where it is not the emitter's own."""


@runtime_checkable
class SendsInOrder(Protocol):
    """An emitter that sends what it queued in that order: spans are kept until what it queued for them is sent.

    Without it, a trace is done with when `emit` has returned.
    """

    @property
    def progress(self) -> tuple[int, int]:
        """How many items were queued so far, and how many of them are sent or given up."""


@runtime_checkable
class KnowsWhatItWrote(Protocol):
    """An emitter that can look up whether it wrote a report before the process was killed."""

    def expect_repeats(self, trace_ids: Collection[bytes]) -> None:
        """Do not write again what was written of these traces."""


@runtime_checkable
class HoldsSpansBack(Protocol):
    """An emitter that passes spans on, some of them only when their trace is scored."""

    def give_up(self, trace_ids: Iterable[bytes]) -> None:
        """Do not pass on what is held back of these traces: another receiver will."""


class Sink(Protocol):
    """Where metrics go: a meter of OpenTelemetry, or a page for Prometheus."""

    def record(self, instrument: Instrument, value: float) -> None:
        """Add a measurement to a histogram."""

    def observe(self, instrument: Instrument, read: Callable[[], Mapping[tuple[str | None, ...], float]]) -> None:
        """Have numbers looked up whenever metrics are sent or asked for, from any thread."""


@runtime_checkable
class SendsMetrics(Protocol):
    """An emitter of metrics: our own go there too."""

    sink: Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class PassingOn:
    """How a program passes on the spans that it receives."""

    held_roots: Roots = "none"
    """The spans to hold back until their trace is scored, to put the scores on them."""
    child_spans: bool = False
    """Whether scores go out as a span of their own below the evaluated one."""
    delay_s: float = 2.0
    """How long at most a trace waits for one more late child before it is scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What an emitter may know of the program that it is built in."""

    owns_terminal: bool = True
    """Nobody but spanscore writes to the terminal."""
    listens: bool = False
    """An emitter that has a page is to serve it itself."""
    passes_on: PassingOn | None = None
    """Where requests are received that can be passed on."""


class EmitterPlugin(Protocol):
    """What `exporters: {NAME: {key: value}}` names: says what it can be told, and is built of that.

    `Settings` is a frozen dataclass, whose fields are documented and checked as an evaluator's parameters are.
    `spanscore.settings` has types for durations, sizes, addresses, files and secrets. The first sentence of the class
    docstring says where scores go.
    """

    Settings: ClassVar[type]

    @classmethod
    def configured(cls, settings: Any, host: Host) -> Emitter | Mapping[str, Emitter]:
        """Return the emitter, or several by the names under which each is counted. What cannot start raises."""


class SpanIntake(Protocol):
    """Takes what a receiver brings. Belongs to the event loop in which the receiver was made."""

    async def take(self, request: bytes, *, is_json: bool = False) -> None:
        """Take an OTLP ExportTraceServiceRequest in protobuf or JSON; when this returns it may be acknowledged.

        Raises:
            RefusedError: it cannot be used; to send it again is of no use.
            TryAgainError: it cannot be taken now, and is to be sent again later.
        """


class Receiver(Protocol):
    """Brings spans from somewhere to an intake, in the event loop that made it."""

    async def start(self) -> str:
        """Begin, and return where it listens or reads from, for people to read. What cannot be started raises."""

    async def stop(self, grace_s: float) -> None:
        """Bring nothing more, and be done with what is under way within the time. May be called without a start."""


class ReceiverPlugin(Protocol):
    """What `receivers: {NAME: {key: value}}` names: says what it can be told, as an emitter does, and is built of it.

    The first sentence of the class docstring says where spans come from.
    """

    Settings: ClassVar[type]

    @classmethod
    def configured(cls, settings: Any, intake: SpanIntake) -> Receiver:
        """Return the receiver, which begins when it is started."""
