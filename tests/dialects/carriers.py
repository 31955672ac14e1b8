"""A call with a result, as each dialect writes it that can carry the result of another framework's tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from dialects.spans import span
from spanscore.model import Span

_GIVEN: Final = '{"order_id": "A-1"}'
Carrier = Callable[..., Span]


def _of(name: str, attributes: Mapping[str, Any], result: str, scope: str = "app") -> Carrier:
    def carry(number: int, told: Any, **fields: Any) -> Span:
        held = {} if told is None else {result: told if isinstance(told, str) else json.dumps(told)}
        return span(number, name, {**attributes, **held}, **{"scope": scope, **fields})

    return carry


def _conventional(arguments: str, result: str, **more: str) -> tuple[dict[str, str], str]:
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund", arguments: _GIVEN}
    return {**named, **more}, result


_SPAN: Final = "execute_tool refund"
_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
_RESULT: Final = "gen_ai.tool.call.result"
_TOOL: Final = {"openinference.span.kind": "TOOL", "tool.name": "refund", "input.value": _GIVEN}
_TRACELOOP: Final = {
    "traceloop.span.kind": "tool",
    "traceloop.entity.name": "refund",
    "traceloop.entity.input": json.dumps({"args": [], "kwargs": {"order_id": "A-1"}}),
}
_LANGCHAIN: Final = {
    **_TRACELOOP,
    "traceloop.entity.input": json.dumps({"input_str": _GIVEN, "inputs": {"order_id": "A-1"}, "kwargs": {}}),
}

CARRIERS: Final[Mapping[str, Carrier]] = {
    "gen_ai": _of(_SPAN, *_conventional(_ARGUMENTS, _RESULT)),
    "google_adk": _of(
        _SPAN,
        *_conventional("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
        "gcp.vertex.agent",
    ),
    "pydantic_ai": _of("running tool", *_conventional("tool_arguments", "tool_response"), "pydantic-ai"),
    "strands": _of(
        _SPAN, *_conventional(_ARGUMENTS, _RESULT, **{"gen_ai.tool.status": "success"}), "strands.telemetry.tracer"
    ),
    "agent_framework": _of(_SPAN, *_conventional(_ARGUMENTS, _RESULT), "agent_framework"),
    "openinference": _of("refund", _TOOL, "output.value"),
    "langchain": _of("refund", _TOOL, "output.value", "openinference.instrumentation.langchain"),
    "openai_agents": _of("refund", _TOOL, "output.value", "openinference.instrumentation.openai_agents"),
    "claude_agent_sdk": _of("refund", _TOOL, "output.value", "openinference.instrumentation.claude_agent_sdk"),
    "llama_index": _of("refund", _TOOL, "output.value", "openinference.instrumentation.llama_index"),
    "openllmetry": _of("refund.tool", _TRACELOOP, "traceloop.entity.output"),
    "langchain_openllmetry": _of(
        "refund.tool", _LANGCHAIN, "traceloop.entity.output", "opentelemetry.instrumentation.langchain"
    ),
    "langsmith": _of("refund", {"langsmith.span.kind": "tool", "gen_ai.prompt": _GIVEN}, "gen_ai.completion"),
    "langfuse": _of(
        "refund",
        {"langfuse.observation.type": "tool", "langfuse.observation.input": _GIVEN},
        "langfuse.observation.output",
    ),
    "mlflow": _of("refund", {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": _GIVEN}, "mlflow.spanOutputs"),
    "logfire": _of("Function: {name}", {"name": "refund", "input": _GIVEN}, "output", "logfire.openai_agents"),
    "vercel_ai": _of(
        "ai.toolCall",
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "refund", "ai.toolCall.args": _GIVEN},
        "ai.toolCall.result",
        "ai",
    ),
    "mastra": _of(_SPAN, *_conventional(_ARGUMENTS, _RESULT, **{"mastra.span.type": "tool_call"})),
    "openlit": _of(_SPAN, *_conventional(_ARGUMENTS, _RESULT), "openlit.instrumentation.ag2"),
    "genkit": _of(
        "refund",
        {"genkit:metadata:subtype": "tool", "genkit:name": "refund", "genkit:input": _GIVEN},
        "genkit:output",
    ),
}
"""By the dialect that reads it; `carry(number, result, **fields)` gives the span, whose result may be None."""
