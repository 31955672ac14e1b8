"""traceAI, the instrumentors of FutureAGI."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Precedence, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai, openinference
from spanscore.dialects._langgraph import AFTER_MODEL
from spanscore.dialects._tool_message import output_message
from spanscore.model import Span, changed

_KIND: Final = "gen_ai.span.kind"
_OPENAI_AGENTS: Final = "traceai_openai_agents"
_AGENTS: Final = (gen_ai.AGENT, "lc_agent_name")
_NODE: Final = "graph.node.id"
_INTERRUPT: Final = "langgraph.interrupt"
_COMMAND: Final = ('{"input": "Command(', "resume=")
"""The beginning of LangGraph's `Command` as Python prints it, and the field that holds a person's answer."""


class TraceAi:
    """Tool spans of FutureAGI's traceAI (recorded with 0.1.6 and 0.2.0), and of others with a `gen_ai.span.kind`.

    The name is in `gen_ai.tool.name`, or is the span's; the arguments are in `input.value` and the result is in
    `output.value`, as in OpenInference. Spans of LangGraph that an interrupt has ended are marked and have not failed.
    A tool of the OpenAI Agents SDK that waits for approval has a span without a result.
    """

    precedence = Precedence.CONVENTION
    markers = Markers(attributes=frozenset({_KIND}))
    reads = content.READS | {
        gen_ai.TOOL_NAME,
        gen_ai.CALL_ID,
        *_AGENTS,
        _NODE,
        _INTERRUPT,
        openinference.INPUT,
        openinference.OUTPUT,
    }
    reads_for_model_calls = model_calls.READS

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_KIND)
        is_agent = kind == "AGENT"
        is_of_sdk = span.scope == _OPENAI_AGENTS
        is_interrupted = content.is_true(attributes.get(_INTERRUPT))
        return Reading(
            call=_call(span, is_interrupted=is_interrupted) if kind == "TOOL" else None,
            waits=(CallRequest(name=""),) if is_interrupted and kind != "TOOL" else (),
            resumes=span.name.endswith(AFTER_MODEL) or _resumes(span),
            is_model=kind == "LLM",
            is_agent=True if is_agent else None,
            agent=content.first_text(attributes, (*_AGENTS, _NODE) if is_of_sdk else _AGENTS) if is_agent else None,
            only_if_asked=kind == "TOOL" and is_of_sdk,
            refuses_silently=is_of_sdk,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        return sent_messages.reading(
            span.attributes.get(openinference.OUTPUT), span.attributes.get(openinference.INPUT)
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        return model_calls.reading(span.attributes) if span.attributes.get(_KIND) == "LLM" else None


def _resumes(span: Span) -> bool:
    begin, answer = _COMMAND
    given = span.attributes.get(openinference.INPUT)
    return not span.parent_span_id and isinstance(given, str) and given.startswith(begin) and answer in given


def _call(span: Span, *, is_interrupted: bool) -> CallReading:
    attributes = span.attributes
    given = attributes.get(openinference.INPUT)
    message = output_message(content.decoded(attributes.get(openinference.OUTPUT)))
    call = CallReading(
        name=content.text(attributes.get(gen_ai.TOOL_NAME)) or span.name,
        arguments=content.arguments(given),
        sole_argument=content.sole_argument(given),
        result=message.content,
        error=content.error(span) or message.error,
        error_type=content.error_type(span),
        call_id=content.identifier(attributes.get(gen_ai.CALL_ID)) or message.call_id,
        state="waits" if is_interrupted else "made",
    )
    # Without content, a call that has ended has no result either.
    is_silent = openinference.INPUT in attributes and openinference.OUTPUT not in attributes
    is_open = span.scope == _OPENAI_AGENTS and is_silent and call.error is None
    return changed(call, state="uncertain") if is_open else call
