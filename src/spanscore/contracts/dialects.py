"""What a dialect owes spanscore: what it reads from one span, and in which words it says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from spanscore.model import JSON, NOT_RECORDED, Attributes, Recorded, Span, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers:
    """When a dialect is offered a span: any one of these is enough. Cheap to look up, checked before `read`."""

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
    """Whose word counts where several dialects read one span.

    Of a tool call only the dialects of the lowest number are heard, which fill each other's gaps: a dialect that knows
    a framework's own way also knows which of the shared attributes mislead. Of all else the first to say it wins.
    """

    CUSTOM: Final = 0
    """Dialects that the user configured."""
    FRAMEWORK: Final = 10
    """One framework's or one instrumentation's own way."""
    CONVENTION: Final = 20
    """A convention that many instrumentations share."""


CallState: TypeAlias = Literal["made", "waits", "refused", "uncertain"]
"""Whether a tool call was made.

A call that `waits` for somebody's approval or answer, and one that was `refused`, are no calls of the run and have not
failed. A call is `uncertain` where its span has no end that shows whether it was made."""


@value
class CallReading:
    """What one span says about the execution of one tool call. What it does not say stays at the default."""

    name: str | None = None
    """None when the span is a tool call but does not say of which tool."""
    other_names: tuple[str, ...] = ()
    """What else the tool is called on the way of this call, as before and behind a gateway: spans near this one that
    name it so are the same call."""
    arguments: Recorded = NOT_RECORDED
    sole_argument: str | None = None
    """The text that stands where arguments should, where the instrumentation drops the name of an only argument.

    Beside `arguments` it means that the text can be read either way: what the model asked for decides."""
    result: Recorded = NOT_RECORDED
    error: str | None = None
    """A short text when the call failed, which begins with `error_type` where that is known."""
    error_type: str | None = None
    """The kind of failure by name, such as `TimeoutError`, and never a word of a message."""
    call_id: str | None = None
    sequence: int | None = None
    agent: str | None = None
    """The agent that made the call, where the instrumentation tells it better than the span tree does."""
    tool_type: str | None = None
    """What kind of tool it is, such as `function`, where the span says so."""
    state: CallState = "made"
    """Whether the call was made. A call that was asked for and not executed is no sign that it waits."""


@value
class CallRequest:
    """A tool call that a model asked for, as its answer lists it."""

    name: str
    arguments: Recorded = NOT_RECORDED
    call_id: str | None = None


@value
class Reading:
    """What one dialect reads from one span. Every part is optional; what the span does not say stays empty."""

    call: CallReading | None = None
    """The span is the execution of a tool call."""
    part_of_call: bool = False
    """`call` belongs to the tool call above this span, an inner step of it, or else to the one of its id; without an
    id to the last of its tool that began before it. It is not a call of its own."""
    not_a_call: bool = False
    """The span looks like a tool call to a shared convention, but is none; overrules every other dialect."""
    is_model: bool = False
    """The span is one request to a model: `read_model` tells what the model answered."""
    is_agent: bool | None = None
    """The span is one run of an agent; False overrules the shared conventions."""
    is_workflow: bool = False
    """The span is one run of a workflow, which may coordinate several agents: no agent's own run, and no call. Its name
    stands for that of an agent only where no agent is named."""
    agent: str | None = None
    """The name of the agent that this span, and what runs below it, belongs to; of a workflow, its name."""
    conversation_id: str | None = None
    response_id: str | None = None
    waits: tuple[CallRequest, ...] = ()
    """The calls that the run waits for when this span ends, where the span is none of them. The name is empty, and the
    id is missing, where the span does not say for which."""
    refused: tuple[CallRequest, ...] = ()
    """The calls that this span, which is none of them, says were refused."""
    ends_asking: bool = False
    """The span is an agent's own run that ended with an answer that asks for tools, or a request to a model whose
    answer asks for tools that stand beside it. The calls of the last answer that have no result wait."""
    content_elsewhere: bool = False
    """The span refers to messages, arguments or results that are kept outside the telemetry."""
    of_span: Attributes = field(default_factory=dict)
    """What the span that this log record was written in had as attributes, before they were moved into the record. The
    span is read as if it still had them."""


@value
class ModelReading:
    """What one dialect reads from a span about the model's side of tool calling."""

    requests: tuple[CallRequest, ...] = ()
    """The calls asked for in the model's answer, in its order. Never those of the history it was sent."""
    asks: bool = False
    """The answer asks for tools, as its finish reason says, or may, as its text is cut off: where there are no
    `requests`, nobody knows for which."""
    output_tools: Mapping[str, JSON] = field(default_factory=dict)
    """The tools by which the model hands in its structured output, by name: nothing runs them, and `requests` for them
    are left out. May be found when it is first looked at."""
    answers: Mapping[str, JSON] = field(default_factory=dict)
    """Results handed back to the model, by call id. May be found when it is first looked at."""
    refused: Mapping[str, JSON] = field(default_factory=dict)
    """Of the `answers`, those that say that the call was refused where their text does not. May be found later too."""
    tool_definitions: Mapping[str, JSON] = field(default_factory=dict)
    """JSON Schema of the arguments, by tool name."""


@value
class ModelCallReading:
    """What one span says about one request to a model besides tool calls. What it does not say stays at the default."""

    is_request: bool | None = None
    """False where the span is none of its own, but a part of one, or around several; overrules every other dialect."""
    model: str | None = None
    """The model that answered, else the one that was asked."""
    input_tokens: int | None = None
    """Those read from and written to a cache included, where the instrumentation counts them so."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_creation_tokens: int | None = None
    user_text: tuple[str, ...] = ()
    """The texts of the user's messages that the model was sent, in their order."""
    system_text: tuple[str, ...] = ()
    """The texts of the system's and the developer's instructions that the model was sent."""


class Dialect(Protocol):
    """Knows how one instrumentation writes agents, model requests and tool calls into spans.

    A dialect looks at one span at a time and knows nothing of others: joining spans is `spanscore.reading`'s
    work. Both methods are pure and never raise, whatever the attributes hold. The class docstring's first line says
    who emits such spans.
    """

    precedence: int
    markers: Markers
    reads: frozenset[str]
    """The keys of all span attributes that it looks at, besides those of its markers; one that ends in `*` stands for
    all that begin so. Attributes that nobody looks at are left out where spans are received: decoding and keeping them
    is most of the work."""

    def read(self, span: Span) -> Reading | None:
        """Return what the span says, or None when it is not of this dialect. Called for every span with a marker."""

    def read_model(self, span: Span) -> ModelReading | None:
        """Return what the model asked for and was told.

        Asked in every trace that has a model's span and either calls or an agent: the requests complete what the spans
        of calls leave out, and tell of those that were answered though nothing ran.
        """


@runtime_checkable
class TellsModelCalls(Protocol):
    """A dialect that also knows what a request to a model took, and the texts that the model was sent.

    Asked for the spans that are a request to a model (`Reading.is_model`), and only where an evaluator
    `NeedsModelCalls`. Pure, and never raises, as the other methods.
    """

    reads_for_model_calls: frozenset[str]
    """The keys of all span attributes that it looks at for this, as in `Dialect.reads`: where no evaluator needs them,
    those that are not in `reads` too are left out where spans are received."""

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        """Return what the span says of the request, or None when it is not of this dialect."""


@runtime_checkable
class TellsResults(Protocol):
    """A dialect that also knows which attributes tell of results alone, so that they need not be kept.

    What tools answer, and what of it models are sent, is most of what spans take in memory, and most evaluators look at
    none of it. All is kept of a span that is also offered to a dialect which does not say this.
    """

    result_keys: frozenset[str]
    """The keys of attributes in which it finds the result of a call, and nothing else unless `telling_words` has it."""
    telling_words: Mapping[str, tuple[str, ...]]
    """By the key of an attribute, words without any of which its text says nothing to `read` and `read_model`, but for
    a result: such as those of a failure that the result alone tells."""
