"""The contract of dialects: the markers of their spans, and the readings that they return for one span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from spanscore.model import JSON, NOT_RECORDED, Attributes, Lack, Recorded, Span, struct


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """The marks of a dialect's spans; any one of them is enough. Cheap to look up, checked before `read`."""

    attributes: frozenset[str] = frozenset()
    """The span has an attribute with one of these keys."""
    scopes: frozenset[str] = frozenset()
    """The span's instrumentation scope has one of these names."""
    span_names: tuple[str, ...] = ()
    """The span's name starts with one of these."""
    log_names: tuple[str, ...] = ()
    """The span is a log record (`Span.is_log`), and the name of its event starts with one of these. Nothing else marks
    a log record."""


class Precedence:
    """The order of dialects if several read one span.

    For a tool call only the dialects with the lowest number count, and fill each other's gaps: a dialect of a framework
    also knows which of the shared attributes mislead. For everything else, the first dialect with a value wins.
    """

    CUSTOM: Final = 0
    """Dialects in the user's configuration."""
    FRAMEWORK: Final = 10
    """The attributes of one framework or one instrumentation."""
    CONVENTION: Final = 20
    """A convention that many instrumentations share."""


CallState: TypeAlias = Literal["made", "waits", "refused", "uncertain"]
"""Whether a tool call was made.

A call that `waits` for an approval or an answer, and one that was `refused`, are no calls of the run and have not
failed. A call is `uncertain` if the end of its span does not show whether it was made."""

RefusalSign: TypeAlias = Literal["shown", "hidden", "hidden at start"]
"""Whether a span would show that its call was refused.

It is `hidden` if only content shows a refusal and the span does not record it; `hidden at start` if, besides, the
framework writes the span of a refused call only where a run continues: before any request to a model."""


@struct
class CallReading:
    """The execution of one tool call as one span records it. Fields that it does not record keep their defaults."""

    name: str | None = None
    """None if the span is a tool call but does not name the tool."""
    other_names: tuple[str, ...] = ()
    """Other names of the tool along this call, for example on both sides of a gateway: nearby spans with one of these
    names are the same call."""
    arguments: Recorded = NOT_RECORDED
    sole_argument: str | None = None
    """The text in place of the arguments, if the instrumentation drops the name of an only argument.

    Together with `arguments` it means that the text can be read either way: the model's request decides."""
    result: Recorded = NOT_RECORDED
    error: str | None = None
    """A short text if the call failed; it begins with `error_type` if that is known."""
    error_type: str | None = None
    """The kind of failure by name, such as `TimeoutError`, and never a word of a message."""
    call_id: str | None = None
    sequence: int | None = None
    agent: str | None = None
    """The agent that made the call, if the instrumentation records it better than the span tree shows it."""
    tool_type: str | None = None
    """The kind of tool, such as `function`, if the span records it."""
    state: CallState = "made"
    """Whether the call was made. A requested call that was not executed is not thereby a call that waits."""
    refusal: RefusalSign = "shown"
    """Whether a refusal would show. If it is hidden, evaluators count only if they agree with and without the call."""
    may_have_failed: bool = False
    """Whether only content that the span does not record shows a failure. Evaluators count only if it makes no
    difference."""


@struct
class CallRequest:
    """A tool call that a model asked for, as its answer lists it."""

    name: str
    arguments: Recorded = NOT_RECORDED
    call_id: str | None = None
    agent: str | None = None
    """The agent that asked, if the span has the answers of several agents."""


@struct
class SentMessage:
    """A message that a model was sent, as far as it concerns the calls of tools."""

    is_user_text: bool = False
    """The message is a user's and has a text: it begins a turn. Results and approvals are none, whoever sends them."""
    requests: tuple[CallRequest, ...] = ()
    """The calls that the model asked for in it."""
    answers: tuple[CallReading, ...] = ()
    """The results of calls in it: `result`, and `call_id`, `error` and `state` as far as they are recorded; `name` and
    `arguments` if another call was made than the model asked for."""


@struct
class Reading:
    """The reading of one span by one dialect. Every part is optional; parts that are not recorded stay empty."""

    call: CallReading | None = None
    """The span is the execution of a tool call."""
    part_of_call: bool = False
    """`call` is an inner step of the tool call above this span, or else of the call with its id; without an id, of the
    last call of its tool that began before it. It is not a separate call."""
    only_if_asked: bool = False
    """The framework makes this call only if a model asks for it: a run that begins with it continues after a pause."""
    not_a_call: bool = False
    """The span looks like a tool call to a shared convention, but is none; overrules every other dialect. With
    `is_workflow` it is a step in which any number of calls is made."""
    is_model: bool = False
    """The span is one request to a model: `read_model` returns the model's answer."""
    is_agent: bool | None = None
    """The span is one run of an agent; False overrules the shared conventions."""
    is_workflow: bool = False
    """The span is one run of a workflow, which may coordinate several agents: no agent's own run, and no call. Its name
    is used as the agent's only if no agent is named."""
    agent: str | None = None
    """The name of the agent of this span and the spans below it; for a workflow, its name."""
    conversation_id: str | None = None
    response_id: str | None = None
    waits: tuple[CallRequest, ...] = ()
    """The calls that the run waits for at the end of this span, if the span is none of them. If the span does not
    record which calls, the name is empty and the id missing."""
    refused: tuple[CallRequest, ...] = ()
    """The calls that this span, which is none of them, records as refused."""
    ends_asking: bool = False
    """The span is an agent's own run that ended with an answer that asks for tools, or a request to a model whose
    answer asks for tools that are siblings of its span. The calls of the last answer without a result wait."""
    resumes: bool = False
    """The span says that the run continues after a pause with it."""
    may_wait: bool = False
    """The span is an agent's own run, and only content that it does not record shows whether the run waits. With
    `is_agent` False it is another span, and the framework does not end the agent's span while the run waits."""
    refuses_silently: bool = False
    """The span is of a framework that leaves no span of a refused call: only the messages of the next model show it."""
    leaves_out_calls: bool = False
    """The span is a request to a model, and its messages are recorded without the calls in them."""
    content_elsewhere: bool = False
    """The span refers to messages, arguments or results that are kept outside the telemetry."""
    of_span: Attributes = field(default_factory=dict)
    """The attributes that were moved from the span around this log record into the record. The span is read as if it
    still had them. With `is_model`, the record is a request of its own if no model's span is around it."""


@struct
class ModelReading:
    """The model's side of tool calling, as one dialect reads it from a span."""

    requests: tuple[CallRequest, ...] = ()
    """The calls requested in the model's answer, in its order; never calls in the history that it was sent."""
    asks: bool = False
    """The answer asks for tools by its finish reason, or may ask for them as its text is cut off. Without `requests`,
    the tools are unknown."""
    leaves_out_requests: bool = False
    """The answer is recorded without the calls that it asks for: the `history` of the next request lists them."""
    output_tools: Mapping[str, JSON] = field(default_factory=dict)
    """The tools by which the model hands in its structured output, by name: nothing runs them, and `requests` for them
    are left out. May be found when it is first looked at."""
    answers: Mapping[str, JSON] = field(default_factory=dict)
    """Results handed back to the model, by call id. May be found when it is first looked at."""
    refused: Mapping[str, JSON] = field(default_factory=dict)
    """The `answers` to refused calls whose text does not show the refusal. May be found later too."""
    failures: Mapping[str, JSON] = field(default_factory=dict)
    """The `answers` to failed calls, with a short text. May be found later too."""
    by_provider: Mapping[str, JSON] = field(default_factory=dict)
    """The `answers` of tools that the model's provider executed. May be found later too."""
    tool_definitions: Mapping[str, JSON] = field(default_factory=dict)
    """JSON Schema of the arguments, by tool name; None for a tool of which it is not recorded."""
    history: Sequence[SentMessage] = ()
    """The messages that the model was sent, in their order. Looked at in the first request of a trace: it shows the
    calls of a run that was paused and continues in this trace. May be found later too."""


@struct
class ModelCallReading:
    """One request to a model, besides tool calls, as one span records it. Other fields keep their defaults."""

    is_request: bool | None = None
    """False if the span is only a part of a request, or wraps several; overrules every other dialect."""
    model: str | None = None
    """The model that answered, else the requested one."""
    input_tokens: int | None = None
    """Includes tokens read from and written to a cache, if the instrumentation counts them so."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    user_text: tuple[str, ...] = ()
    """The texts of the user's messages that the model was sent, in their order."""
    system_text: tuple[str, ...] = ()
    """The texts of the system's and the developer's instructions that the model was sent."""


class Dialect(Protocol):
    """Reads agents, model requests and tool calls from the spans of one instrumentation.

    A dialect reads one span at a time, without knowledge of others: `spanscore.trajectories` joins spans. Both methods
    are pure and never raise, whatever the attributes contain. The class docstring's first line names the emitters of
    such spans.
    """

    precedence: int
    markers: Markers
    reads: frozenset[str]
    """The keys of all span attributes that it reads, besides those of its markers; a key that ends in `*` means all
    keys with that prefix. Receivers leave out attributes that nothing reads: decoding and keeping them is most of the
    work."""

    def read(self, span: Span) -> Reading | None:
        """Return the reading of a span, or None if it is not of this dialect. Called for every span with a marker."""

    def read_model(self, span: Span) -> ModelReading | None:
        """Return the model's requests, and the results that it was sent.

        Called in every trace that has a model's span and either calls or an agent: the requests fill gaps of the spans
        of calls, and show calls that were answered although nothing ran.
        """


@runtime_checkable
class TellsModelCalls(Protocol):
    """A dialect that also reads the costs of a request to a model, and the texts that the model was sent.

    Called for spans that are a request to a model (`Reading.is_model`), and only if an evaluator `NeedsModelCalls`.
    Pure, and never raises, as the other methods.
    """

    reads_for_model_calls: frozenset[str]
    """The keys of all span attributes that it reads for this, as in `Dialect.reads`: if no evaluator needs them,
    receivers leave out the keys that are not in `reads`, too."""

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        """Return the request as the span records it, or None if it is not of this dialect."""


@runtime_checkable
class TellsResults(Protocol):
    """A dialect that also declares which attributes have only results, so that they need not be kept.

    Results of tools, also as models are sent them, are most of the memory of spans, and most evaluators read none of
    them. Everything is kept of a span that is also offered to a dialect without this declaration.
    """

    result_keys: frozenset[str]
    """The keys of attributes from which it reads the result of a call, and nothing else unless in `telling_words`."""
    telling_words: Mapping[str, tuple[str, ...]]
    """By the key of an attribute: words such that `read` and `read_model` use a text without any of them only for its
    result. For example words of a failure that only the result shows."""


class CaptureSetting(NamedTuple):
    """A setting of an emitter with which it records more."""

    setting: str
    """As a user writes it: `NAME=value` for an environment variable, else the code or the key."""
    gives: tuple[Lack, ...] = ("arguments", "results", "user messages", "tool calls")
    """The kinds of data that the emitter records with it; by default all content."""
    scopes: tuple[str, ...] = ("",)
    """The names of instrumentation scopes whose spans it is for begin with one of these."""


@runtime_checkable
class TellsCaptureSettings(Protocol):
    """A dialect that also names the settings with which the emitters of its spans record more.

    `spanscore explain` shows them for evaluators that were skipped.
    """

    capture_settings: tuple[CaptureSetting, ...]
