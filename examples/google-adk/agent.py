"""A refund agent in Google's Agent Development Kit. Its model is a script: put the name of your own in its place."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, FunctionCall, GenerateContentResponseUsageMetadata, Part

LOOK_UP = ("lookup_order", {"order_id": "A-1042"})
CHECK = ("check_policy", {"order_id": "A-1042"})
GOOD = [LOOK_UP, CHECK, ("issue_refund", {"order_id": "A-1042", "amount": 40})]
BAD = [LOOK_UP, ("issue_refund", {"order_id": "A-1042", "amount": 400})]


class Scripted(BaseLlm):
    """A model that asks for these calls, one after the other."""

    model: str = "scripted"
    calls: list

    async def generate_content_async(self, request, stream=False):
        made = sum(part.function_response is not None for each in request.contents for part in each.parts)
        part = Part(text="Refunded.")
        if made < len(self.calls):
            name, arguments = self.calls[made]
            part = Part(function_call=FunctionCall(name=name, args=arguments))
        usage = GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=Content(role="model", parts=[part]), usage_metadata=usage)


def lookup_order(order_id: str) -> dict:
    """Return what was ordered."""
    return {"order_id": order_id, "amount": 40}


def check_policy(order_id: str) -> dict:
    """Return whether a refund is due."""
    return {"order_id": order_id, "refundable": True}


def issue_refund(order_id: str, amount: float) -> dict:
    """Pay the money back."""
    return {"refunded": amount}


async def run(calls):
    agent = LlmAgent(name="refund_agent", model=Scripted(calls=calls), tools=[lookup_order, check_policy, issue_refund])
    runner = InMemoryRunner(agent, app_name="refunds")
    session = await runner.session_service.create_session(app_name="refunds", user_id="customer")
    message = Content(role="user", parts=[Part(text="My lamp, order A-1042, arrived broken.")])
    async for event in runner.run_async(user_id="customer", session_id=session.id, new_message=message):
        if event.is_final_response():
            print(event.content.parts[0].text)


for calls in (GOOD, BAD):
    asyncio.run(run(calls))
