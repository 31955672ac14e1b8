"""OpenInference, the conventions of the openinference-* instrumentors, and of UiPath's own tracing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Final

from spanscore.contracts import (
    CallReading,
    CaptureSetting,
    Markers,
    ModelCallReading,
    ModelReading,
    Precedence,
    Reading,
    SentMessage,
)
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _numbered as numbered
from spanscore.dialects import _provider_calls as providers
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.model import EMPTY, JSON, NOT_RECORDED, Attributes, AttributeValue, Later, LaterList, Span

KIND: Final = "openinference.span.kind"
TOOL_NAME: Final = "tool.name"
INPUT: Final = "input.value"
OUTPUT: Final = "output.value"

_CALL_ID: Final = ("tool_call.id", "tool.id", "tool.call_id", "tool_call_id")
AGENT_NAME: Final = ("agent.name", "graph.node.id")
_INPUT_MESSAGES: Final = "llm.input_messages."
_OUTPUT_MESSAGES: Final = "llm.output_messages."
_TOOLS: Final = "llm.tools."
_FINISH_REASONS: Final = ("llm.finish_reason", f"{_OUTPUT_MESSAGES}0.message.finish_reason", *finish_reasons.READS)
_TOOL_SCHEMA: Final = re.compile(r"llm\.tools\.\d+\.tool\.json_schema")
_TOOL_CALL: Final = re.compile(r"llm\.output_messages\.(\d+)\.message\.tool_calls\.(\d+)\.tool_call\.(.+)")
_MESSAGE: Final = re.compile(r"llm\.input_messages\.(\d+)\.message\.(tool_call_id|content)")

READS: Final = frozenset(
    {KIND, TOOL_NAME, INPUT, OUTPUT, *_CALL_ID, *AGENT_NAME, *content.READS}
    | {f"{_INPUT_MESSAGES}*", f"{_OUTPUT_MESSAGES}*", f"{_TOOLS}*", *_FINISH_REASONS}
)
"""The attributes that the conventions define and a dialect may look at."""

_FIELD: Final = re.compile(r"llm\.input_messages\.(\d+)\.message\.(.+)")
_TEXT: Final = re.compile(r"llm\.input_messages\.(\d+)\.message\.(role|content|contents\.\d+\.message_content\.text)")
_MODEL: Final = ("llm.model_name",)
_TOKENS: Final = {
    "sent": ("llm.token_count.prompt",),
    "said": ("llm.token_count.completion",),
    "cache_read": ("llm.token_count.prompt_details.cache_read",),
    "cache_write": ("llm.token_count.prompt_details.cache_write",),
}
READS_FOR_MODEL_CALLS: Final = frozenset({*_MODEL, f"{_INPUT_MESSAGES}*", *chain.from_iterable(_TOKENS.values())})
"""Keys for the usage of a model request and for its input."""

_INSTRUMENTORS: Final = ("openinference", "@arizeai/openinference")


class Openinference:
    """The openinference-* instrumentors of Python and JavaScript, and UiPath's `@traced`.

    A tool span has kind TOOL, or kind AGENT with a tool's name: the LangChain instrumentor takes any tool with "agent"
    in its name for an agent.
    """

    precedence = Precedence.CONVENTION
    markers = Markers(attributes=frozenset({KIND}))
    reads = READS
    reads_for_model_calls = READS_FOR_MODEL_CALLS
    capture_settings = (
        CaptureSetting("OPENINFERENCE_HIDE_INPUTS=false", ("arguments", "user messages"), _INSTRUMENTORS),
        CaptureSetting("OPENINFERENCE_HIDE_OUTPUTS=false", ("results", "tool calls"), _INSTRUMENTORS),
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(KIND)
        is_call = kind == "TOOL" or (kind == "AGENT" and TOOL_NAME in attributes)
        is_agent = kind == "AGENT" and not is_call
        return Reading(
            call=call(span) if is_call else None,
            is_model=kind == "LLM",
            is_agent=True if is_agent else None,
            agent=content.first_text(attributes, AGENT_NAME) if is_agent else None,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        attributes = span.attributes
        # The instrumentors leave out the arguments of a call that has none, and calls that the provider executes.
        left_out = None if span.dropped_attributes else "{}"
        has_others = messages.has_provider_calls(attributes.get(OUTPUT))
        by_provider = Later(lambda: sent_messages.by_provider_in(attributes.get(OUTPUT))) if has_others else EMPTY
        return ModelReading(
            requests=(
                ()
                if has_others
                else numbered.requests(attributes, _OUTPUT_MESSAGES, _TOOL_CALL, within="function.", left_out=left_out)
            )
            or messages.requests_in(attributes.get(OUTPUT)),
            asks=finish_reasons.asks(attributes, _FINISH_REASONS),
            answers=Later(
                lambda: {
                    **by_provider,
                    **_flat_answers(span),
                    **sent_messages.refusals_in(attributes.get(INPUT)),
                }
            ),
            by_provider=by_provider,
            failures=Later(lambda: _failures(attributes)),
            refused=Later(lambda: sent_messages.refusals_in(attributes.get(INPUT))),
            tool_definitions=Later(lambda: _definitions(span)),
            history=LaterList(lambda: history(span)),
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        if span.attributes.get(KIND) != "LLM":
            return None
        texts = model_calls.numbered_texts(span.attributes, _INPUT_MESSAGES, _TEXT)
        return model_calls.reading(span.attributes, texts, model=_MODEL, **_TOKENS)


def call(span: Span) -> CallReading:
    """Return the tool call of a span as the convention has it: dialects replace what their framework does otherwise."""
    attributes = span.attributes
    given = attributes.get(INPUT)
    arguments = content.arguments(given)
    return CallReading(
        name=content.text(attributes.get(TOOL_NAME)) or span.name,
        arguments=arguments if isinstance(arguments, dict) else NOT_RECORDED,
        sole_argument=content.sole_argument(given),
        result=content.decoded(attributes.get(OUTPUT)),
        error=content.error(span),
        error_type=content.error_type(span),
        call_id=content.first_text(attributes, _CALL_ID),
    )


def history(span: Span) -> Sequence[SentMessage]:
    """Return the messages that the model was sent; from the whole input if the others leave calls or answers out."""
    attributes = span.attributes
    keys = [key for key in attributes if key.startswith(_INPUT_MESSAGES)]
    whole = attributes.get(INPUT)
    if isinstance(whole, str) and any(map(whole.__contains__, providers.ITEMS)):
        return sent_messages.history_in(whole)
    if not any("tool" in key or attributes[key] == "tool" for key in keys):
        return ()
    told = sent_messages.numbered_history(attributes, _INPUT_MESSAGES, _FIELD)
    has_calls = any(each.requests for each in told)
    if has_calls and any(each.answers for each in told) and not _marks_more(whole):
        return told
    in_whole = sent_messages.history_in(whole)
    return told if has_calls and not any(each.requests for each in in_whole) else in_whole or told


def _marks_more(given: AttributeValue) -> bool:
    """Return whether the input may hold a mark of LangChain's that the other attributes leave out."""
    return _marks_failures(given) or (isinstance(given, str) and messages.LANGCHAIN_DECISION in given)


def _marks_failures(given: AttributeValue) -> bool:
    """Return whether the input may hold LangChain's mark of a failure, which the other attributes leave out."""
    return isinstance(given, str) and '"error"' in given and '"status"' in given


def _failures(attributes: Attributes) -> dict[str, JSON]:
    """Return the failures of calls, by id."""
    given = attributes.get(INPUT)
    sent = messages.failures(content.decoded(given)) if _marks_failures(given) else {}
    return {**sent_messages.failures_in(attributes.get(OUTPUT)), **sent}


def _definitions(span: Span) -> dict[str, JSON]:
    schemas = [content.decoded(value) for key, value in span.attributes.items() if _TOOL_SCHEMA.fullmatch(key)]
    return messages.definitions([schema for schema in schemas if isinstance(schema, dict)])


def _flat_answers(span: Span) -> dict[str, JSON]:
    return {
        call_id: content.reparsed(content.decoded(message.get("content")))
        for message in numbered.numbered(span.attributes, _INPUT_MESSAGES, _MESSAGE)
        if (call_id := content.text(message.get("tool_call_id")))
    }
