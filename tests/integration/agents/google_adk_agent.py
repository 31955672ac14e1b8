"""The refund agent in Google's Agent Development Kit, which traces itself."""

from collections.abc import AsyncIterator
from typing import Any

import program
import refunds
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, FunctionCall, GenerateContentResponseUsageMetadata, Part
from pydantic import PrivateAttr


class Scripted(BaseLlm):
    """A model that asks for the calls of the run whose name it has."""

    model: str
    _steps: Any = PrivateAttr()

    def model_post_init(self, _context: object) -> None:
        """Begin the run."""
        self._steps = iter(refunds.RUNS[self.model])

    async def generate_content_async(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[LlmResponse]:
        """Give the next answer."""
        calls = [
            Part(function_call=FunctionCall(id=call.call_id, name=call.name, args=dict(call.arguments)))
            for call in next(self._steps, ())
        ]
        yield LlmResponse(
            content=Content(role="model", parts=calls or [Part(text=refunds.ANSWER)]),
            usage_metadata=GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1),
        )


def tell(error: Exception, **_context: Any) -> dict[str, str]:
    """Tell the model of a tool's failure: an exception would end the run."""
    return {"error": str(error)}


async def run(name: str) -> None:
    """Do a run."""
    tools = list(refunds.tools(name))
    agent = LlmAgent(name=refunds.AGENT, model=Scripted(model=name), tools=tools, on_tool_error_callback=tell)
    runner = InMemoryRunner(agent, app_name="refunds")
    session = await runner.session_service.create_session(app_name="refunds", user_id="customer")
    message = Content(role="user", parts=[Part(text=name)])
    async for _ in runner.run_async(user_id="customer", session_id=session.id, new_message=message):
        pass


if __name__ == "__main__":
    program.main(run)
