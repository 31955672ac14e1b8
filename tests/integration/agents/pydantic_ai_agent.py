"""The refund agent in Pydantic AI, which traces itself."""

import functools
from typing import Any

import program
import refunds
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def scripted(run: str) -> FunctionModel:
    """Return a model that asks for the calls of a run."""
    steps = iter(refunds.RUNS[run])

    async def respond(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        calls = [ToolCallPart(call.name, dict(call.arguments), call.call_id) for call in next(steps, ())]
        return ModelResponse(parts=calls or [TextPart(refunds.ANSWER)])

    return FunctionModel(respond)


def telling(tool: refunds.Tool) -> refunds.Tool:
    """Return a tool that tells the model of its failures: an exception of its own would end the run."""

    @functools.wraps(tool)
    async def told(**arguments: Any) -> Any:
        try:
            return await tool(**arguments)
        except refunds.GatewayError as error:
            raise ModelRetry(str(error)) from error

    return told


async def run(name: str) -> None:
    """Do a run."""
    agent = Agent(scripted(name), name=refunds.AGENT, tools=[telling(tool) for tool in refunds.tools(name)])
    await agent.run(name)


if __name__ == "__main__":
    Agent.instrument_all()
    program.main(run)
