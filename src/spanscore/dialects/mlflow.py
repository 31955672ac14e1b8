"""MLflow's tracing."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, ModelCallReading, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._langgraph import graph, metadata
from spanscore.dialects._tool_message import tool_message
from spanscore.model import LaterList, Span, changed

_TYPE: Final = "mlflow.spanType"
_AGENT: Final = "lc_agent_name"
_NAME: Final = "name"
_MODEL: Final = "mlflow.llm.model"
_USAGE: Final = "mlflow.chat.tokenUsage"
_FUNCTION: Final = "mlflow.spanFunctionName"
_OUTPUTS: Final = "mlflow.spanOutputs"
_OPENAI_AGENTS_RUN: Final = "mlflow.openai.agent_run_root"
_MODEL_TYPES: Final = frozenset({"CHAT_MODEL", "LLM"})

_RUN_BY_OTHERS: Final = frozenset({_FUNCTION, "tool_call_id", "metadata"})
"""Keys of tool spans of which `null` is a result; in those of the OpenAI Agents SDK the call waits."""


class Mlflow(FrameworkDialect):
    """Spans of `mlflow.trace` and of MLflow's autologging, exported by OTLP (recorded with 3.17).

    Every attribute is JSON, plain strings included. A call has the `mlflow.spanType` `TOOL`, the arguments in
    `mlflow.spanInputs` and the result in `mlflow.spanOutputs`. Autologging names the span of an agent after the
    method, such as `Agent.run`; the agent's own name is in `name`. A tool of the OpenAI Agents SDK that waits for
    approval has the output `null`, and a hand-off is a span `Handoff`.
    """

    markers = Markers(attributes=frozenset({_TYPE}))
    reads = content.READS.union(
        {
            _TYPE,
            _FUNCTION,
            _OUTPUTS,
            "mlflow.spanInputs",
            "mlflow.chat.tools",
            "tool_call_id",
            "metadata",
            _NAME,
            _OPENAI_AGENTS_RUN,
        }
    )
    reads_for_model_calls = frozenset({_MODEL, _USAGE, "mlflow.spanInputs"})

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = content.unquoted(attributes.get(_TYPE))
        if _OPENAI_AGENTS_RUN in attributes:
            return Reading(is_agent=False)
        if (
            kind == "CHAIN"
            and span.name == "Handoff"
            and content.field(content.decoded(attributes.get(_OUTPUTS)), "to_agent")
        ):
            return Reading(not_a_call=True)
        name = content.unquoted(attributes.get(_FUNCTION)) or span.name
        is_marked = kind == "AGENT" or (kind == "CHAIN" and not span.parent_span_id)
        chain = graph(span.name, metadata(span, "langgraph_node"), metadata(span, _AGENT), is_marked=is_marked)
        return Reading(
            call=_call(span, name) if kind == "TOOL" else None,
            is_model=kind in _MODEL_TYPES,
            is_agent=chain.is_agent,
            agent=(content.text(content.decoded(attributes.get(_NAME))) if kind == "AGENT" else None) or chain.agent,
        )

    def read_model(self, span: Span) -> ModelReading | None:
        attributes = span.attributes
        told = sent_messages.reading(
            attributes.get(_OUTPUTS),
            attributes.get("mlflow.spanInputs"),
            attributes.get("mlflow.chat.tools"),
        )
        return changed(told, history=LaterList(lambda: sent_messages.without_hand_offs(told.history)))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        attributes = span.attributes
        if content.unquoted(attributes.get(_TYPE)) not in _MODEL_TYPES:
            return None
        user, system = model_calls.texts(content.decoded(attributes.get("mlflow.spanInputs")))
        used = content.decoded(attributes.get(_USAGE))
        return ModelCallReading(
            model=content.unquoted(attributes.get(_MODEL)),
            input_tokens=model_calls.count(content.field(used, "input_tokens")),
            output_tokens=model_calls.count(content.field(used, "output_tokens")),
            user_text=user,
            system_text=system,
        )


def _call(span: Span, name: str) -> CallReading:
    attributes = span.attributes
    outputs = content.decoded(attributes.get(_OUTPUTS))
    message = tool_message(outputs)
    result, error = message.content, content.error(span) or message.error
    may_wait = outputs is None and error is None and _RUN_BY_OTHERS.isdisjoint(attributes)
    return CallReading(
        name=name,
        arguments=content.arguments(attributes.get("mlflow.spanInputs")),
        result=content.reparsed(result) if isinstance(result, str) and result.startswith(("{", "[")) else result,
        error=error,
        state="uncertain" if may_wait else "made",
        error_type=content.error_type(span),
        call_id=content.text(content.decoded(attributes.get("tool_call_id"))) or message.call_id,
        agent=metadata(span, _AGENT),
    )
