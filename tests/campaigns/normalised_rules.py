"""What the Collector's `gen_ai_normalizer` does to spans, for where the processor itself cannot be had.

The facts are those of the processor's source in opentelemetry-collector-contrib (processor/genainormalizerprocessor,
the tables at commits 0a5f6d30786117e3f559c443a6fd2aa3056db5d7 and 09ea2f421d7b5b9771e9fbb5513c59186e7f33c1): sources
are applied in their order, to the attributes of spans. What is there already stays, and keeps its original. Messages
that OpenInference writes flat are gathered before that, by the versions that do so (pull request 49149 there).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

_OPERATION: Final = "gen_ai.operation.name"
_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"

_OPENINFERENCE: Final = {
    "llm.token_count.prompt": "gen_ai.usage.input_tokens",
    "llm.token_count.completion": "gen_ai.usage.output_tokens",
    "llm.model_name": "gen_ai.request.model",
    "llm.provider": "gen_ai.provider.name",
    "llm.input_messages": "gen_ai.input.messages",
    "llm.output_messages": "gen_ai.output.messages",
    "embedding.model_name": "gen_ai.request.model",
    "tool.name": "gen_ai.tool.name",
    "tool.description": "gen_ai.tool.description",
    "tool_call.function.arguments": "gen_ai.tool.call.arguments",
    "tool_call.id": "gen_ai.tool.call.id",
    "reranker.model_name": "gen_ai.request.model",
    "agent.name": "gen_ai.agent.name",
    "session.id": "gen_ai.conversation.id",
    "openinference.span.kind": _OPERATION,
}
_OPENLLMETRY: Final = {
    "llm.usage.prompt_tokens": "gen_ai.usage.input_tokens",
    "llm.usage.completion_tokens": "gen_ai.usage.output_tokens",
    "llm.request.model": "gen_ai.request.model",
    "llm.response.model": "gen_ai.response.model",
    "llm.request.max_tokens": "gen_ai.request.max_tokens",
    "llm.request.temperature": "gen_ai.request.temperature",
    "llm.request.top_p": "gen_ai.request.top_p",
    "llm.top_k": "gen_ai.request.top_k",
    "llm.frequency_penalty": "gen_ai.request.frequency_penalty",
    "llm.presence_penalty": "gen_ai.request.presence_penalty",
    "llm.chat.stop_sequences": "gen_ai.request.stop_sequences",
    "llm.request.functions": "gen_ai.tool.definitions",
    "llm.response.finish_reason": _FINISH_REASONS,
    "llm.response.stop_reason": _FINISH_REASONS,
    "llm.request.type": _OPERATION,
    "traceloop.span.kind": _OPERATION,
    "traceloop.entity.name": "gen_ai.agent.name",
    "traceloop.entity.input": "gen_ai.input.messages",
    "traceloop.entity.output": "gen_ai.output.messages",
}
_OPENINFERENCE_KINDS: Final = {
    "llm": "chat",
    "embedding": "embeddings",
    "chain": "invoke_agent",
    "retriever": "retrieval",
    "reranker": "retrieval",
    "tool": "execute_tool",
    "agent": "invoke_agent",
    "prompt": "text_completion",
}
_OPENLLMETRY_KINDS: Final = {
    "workflow": "invoke_workflow",
    "task": "invoke_agent",
    "agent": "invoke_agent",
    "tool": "execute_tool",
    "completion": "text_completion",
    "chat": "chat",
    "rerank": "retrieval",
    "embedding": "embeddings",
}
_SOURCES: Final = ((_OPENINFERENCE, _OPENINFERENCE_KINDS), (_OPENLLMETRY, _OPENLLMETRY_KINDS))
_SIDES: Final = {"llm.input_messages.": "gen_ai.input.messages", "llm.output_messages.": "gen_ai.output.messages"}
_FIELD: Final = re.compile(r"(\d+)\.message\.(role|content|name|tool_call_id|tool_calls\.(\d+)\.tool_call\.(.+))")

Attributes = dict[str, dict[str, Any]]
"""The values of OTLP/JSON by their keys."""


def normalised(request: Mapping[str, Any], *, remove_originals: bool, gather_messages: bool = False) -> dict[str, Any]:
    """Return an ExportTraceServiceRequest in JSON as the processor passes it on."""
    changed: dict[str, Any] = json.loads(json.dumps(request))
    for resource in changed.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                attributes = {each["key"]: each.get("value", {}) for each in span.get("attributes", ())}
                if gather_messages:
                    _gather(attributes, remove_originals=remove_originals)
                for table, kinds in _SOURCES:
                    _rename(attributes, table, kinds, remove_originals=remove_originals)
                span["attributes"] = [{"key": key, "value": value} for key, value in attributes.items()]
    return changed


def _rename(
    attributes: Attributes, table: Mapping[str, str], kinds: Mapping[str, str], *, remove_originals: bool
) -> None:
    for key in [key for key in attributes if key in table]:
        target, value = table[key], attributes[key]
        if target in attributes:
            continue
        told = value.get("stringValue")
        if target == _OPERATION and isinstance(told, str):
            value = {"stringValue": kinds.get(told.lower(), told)}
        elif target == _FINISH_REASONS and isinstance(told, str):
            value = {"arrayValue": {"values": [value]}}
        attributes[target] = value
        if remove_originals:
            del attributes[key]


def _gather(attributes: Attributes, *, remove_originals: bool) -> None:
    for prefix, target in _SIDES.items():
        found: dict[int, dict[str, Any]] = {}
        keys = []
        for key, value in attributes.items():
            match = _FIELD.fullmatch(key.removeprefix(prefix)) if key.startswith(prefix) else None
            if match is None:
                continue
            keys.append(key)
            message = found.setdefault(int(match[1]), {"calls": {}})
            told = str(next(iter(value.values()), ""))
            if match[3] is None:
                message[match[2]] = told
            else:
                message["calls"].setdefault(int(match[3]), {})[match[4]] = told
        if not found or target in attributes:
            continue
        messages = [_message(message) for _, message in sorted(found.items())]
        attributes[target] = {"stringValue": json.dumps(messages)}
        for key in keys if remove_originals else ():
            del attributes[key]


def _message(fields: Mapping[str, Any]) -> dict[str, Any]:
    role, said = fields.get("role", "user"), fields.get("content", "")
    if fields.get("tool_call_id"):
        answer = {"type": "tool_call_response", "id": fields["tool_call_id"], "response": said}
        return {"role": "tool" if role == "user" else role, "parts": [answer]}
    if fields["calls"]:
        return {"role": role, "parts": [_asked(call) for _, call in sorted(fields["calls"].items())]}
    return {"role": role, "parts": [{"type": "text", "content": said}] if said else []}


def _asked(call: Mapping[str, str]) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "tool_call", "name": call.get("function.name", "")}
    if call.get("id"):
        part["id"] = call["id"]
    if given := call.get("function.arguments"):
        try:
            part["arguments"] = json.loads(given)
        except ValueError:
            part["arguments"] = given
    return part
