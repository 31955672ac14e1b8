"""The refund agent in the OpenAI Agents SDK, traced by OpenInference."""

import json
from collections.abc import AsyncIterator
from typing import Any

import program
import refunds
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool, generation_span
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

TEXT = ResponseOutputMessage(
    type="message",
    id="message_1",
    role="assistant",
    status="completed",
    content=[ResponseOutputText(type="output_text", text=refunds.ANSWER, annotations=[])],
)


class Scripted(Model):
    """A model that asks for the calls of a run, and traces its answers as the models of this framework do."""

    def __init__(self, run: str) -> None:
        self._steps = iter(refunds.RUNS[run])

    async def get_response(self, *_args: Any, **_kwargs: Any) -> ModelResponse:
        """Return the next answer."""
        calls = [
            ResponseFunctionToolCall(
                type="function_call", call_id=call.call_id, name=call.name, arguments=json.dumps(call.arguments)
            )
            for call in next(self._steps, ())
        ]
        with generation_span(model="scripted") as span:
            span.span_data.output = [{"role": "assistant", "tool_calls": [traced(call) for call in calls]}]
        return ModelResponse(output=list(calls) or [TEXT], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Is not asked for."""
        raise NotImplementedError


def traced(call: ResponseFunctionToolCall) -> dict[str, Any]:
    """Return a call as it stands in a model's span."""
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


async def run(name: str) -> None:
    """Do a run."""
    tools = [function_tool(tool) for tool in refunds.tools(name)]
    await Runner.run(
        Agent(name=refunds.AGENT, model=Scripted(name), tools=tools), name, run_config=RunConfig(workflow_name=name)
    )


if __name__ == "__main__":
    program.main(run, OpenAIAgentsInstrumentor().instrument)
