"""LlamaIndex's own tracing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Reading, SentMessage
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import llama_index
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._literals import printed
from spanscore.model import JSON, Later, LaterList, Recorded, Span

_INPUT: Final = "llamaindex.step.input_summary"
_BEGINS: Final = "LLMChatStartEvent"
_ENDS: Final = "LLMChatEndEvent"
_STEP: Final = ".call_tool"
_RUNS: Final = ("Agent.run", "AgentWorkflow.run")
_TOOL: Final = re.compile(r"\w*Tool\.a?call")
_NAMED: Final = re.compile(r"ToolCall\(tool_name='([^']+)'")


class LlamaIndexObservability(FrameworkDialect):
    """Spans of LlamaIndex's own tracing (recorded with 0.7.0).

    The distribution is `llama-index-observability-otel`. A call is a step `call_tool` of an agent's workflow. Its
    input is in `llamaindex.step.input_summary`, printed and cut off after 200 characters. The tool's own span below
    it says whether the call failed, or waits for a person's event. The messages to and from a model are events of
    its span, `LLMChatStartEvent` and `LLMChatEndEvent`. The agent's name is in the input of the step that asks the
    model, if it is not cut off; that step is beside the calls.
    """

    markers = Markers(scopes=frozenset({"llamaindex.opentelemetry.tracer"}))
    reads = content.READS | {_INPUT}

    def read(self, span: Span) -> Reading | None:
        if span.name.endswith(_STEP):
            return Reading(call=_call(span), only_if_asked=True)
        if _TOOL.fullmatch(span.name):
            failed = CallReading(error=content.error(span), error_type=content.error_type(span))
            return Reading(call=failed, part_of_call=True)
        if span.name.endswith(llama_index.STEP) or any(event.name == _BEGINS for event in span.events):
            named = llama_index.CURRENT_AGENT.search(content.text(span.attributes.get(_INPUT)) or "")
            return Reading(is_model=True, agent=named[1] if named else None)
        return Reading(is_agent=True) if span.name.endswith(_RUNS) else None

    def read_model(self, span: Span) -> ModelReading | None:
        said = content.decoded(content.in_event(span, _ENDS, "response.message.blocks"))
        return ModelReading(
            requests=tuple(_requests(said)),
            answers=Later(lambda: _answers(_sent(span))),
            history=LaterList(lambda: [_message(each) for each in _objects(_sent(span))]),
        )

    reads_for_model_calls = frozenset[str]()

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        return ModelCallReading(is_request=False) if span.name.endswith(llama_index.STEP) else None


def _sent(span: Span) -> Recorded:
    return content.decoded(content.in_event(span, _BEGINS, "messages"))


def _message(sent: dict[str, Any]) -> SentMessage:
    blocks = sent.get("blocks")
    return SentMessage(
        is_user_text=model_calls.is_user_text({"role": sent.get("role"), "content": blocks}),
        requests=tuple(_requests(blocks)),
        answers=tuple(CallReading(call_id=call_id, result=result) for call_id, result in _answers([sent]).items()),
    )


def _call(span: Span) -> CallReading:
    told = content.text(span.attributes.get(_INPUT)) or ""
    given = printed(told)
    named = _NAMED.match(told)
    return CallReading(
        name=named[1] if named else None,
        arguments=content.field(given, "tool_kwargs"),
        call_id=content.text(content.field(given, "tool_id")),
        error=content.error(span),
        error_type=content.error_type(span),
    )


def _requests(blocks: Recorded) -> Iterator[CallRequest]:
    for block in _objects(blocks):
        match block:
            case {
                "block_type": "tool_call",
                "tool_name": str(name),
                "tool_call_id": str(call_id),
                "tool_kwargs": given,
            }:
                yield CallRequest(name=name, arguments=content.arguments(given), call_id=call_id)


def _answers(sent: Recorded) -> dict[str, JSON]:
    found: dict[str, JSON] = {}
    for message in _objects(sent):
        match message:
            case {"role": "tool", "additional_kwargs": {"tool_call_id": str(call_id)}, "blocks": [{"text": str(text)}]}:
                found[call_id] = content.reparsed(text)
    return found


def _objects(listed: Recorded) -> list[dict[str, Any]]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
