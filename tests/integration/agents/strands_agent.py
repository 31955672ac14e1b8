"""The refund agent in Strands, which traces itself."""

import json
from collections.abc import AsyncIterator
from typing import Any

import program
import refunds
from strands import Agent, tool
from strands.models import Model


class Scripted(Model):
    """A model that asks for the calls of a run."""

    def __init__(self, run: str) -> None:
        self._steps = iter(refunds.RUNS[run])

    async def stream(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Give the next answer."""
        step = next(self._steps, ())
        yield {"messageStart": {"role": "assistant"}}
        for call in step:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call.name, "toolUseId": call.call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call.arguments)}}}}
            yield {"contentBlockStop": {}}
        if not step:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": refunds.ANSWER}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if step else "end_turn"}}

    def structured_output(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Is not asked for."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return that there is nothing to set."""
        return {}

    def update_config(self, **_settings: Any) -> None:
        """Set nothing."""


async def run(name: str) -> None:
    """Do a run."""
    tools = [tool(function) for function in refunds.tools(name)]
    await Agent(model=Scripted(name), tools=tools, name=refunds.AGENT, callback_handler=None).invoke_async(name)


if __name__ == "__main__":
    program.main(run)
