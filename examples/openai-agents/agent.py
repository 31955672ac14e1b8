"""A refund agent in the OpenAI Agents SDK: a person approves each refund. Its model is a script: use your own."""

import json

import httpx2
from agents import Agent, Runner, function_tool, set_default_openai_client, trace
from openai import AsyncOpenAI

LOOK_UP = ("lookup_order", {"order_id": "A-1042"})
CHECK = ("check_policy", {"order_id": "A-1042"})
GOOD = [LOOK_UP, CHECK, ("issue_refund", {"order_id": "A-1042", "amount": 40})]
BAD = [LOOK_UP, ("issue_refund", {"order_id": "A-1042", "amount": 400})]


def scripted(calls):
    """Return a client whose model asks for these calls, one after the other."""
    asking = [
        {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments)}
        for number, (name, arguments) in enumerate(calls)
    ]
    text = {"type": "output_text", "text": "Refunded.", "annotations": []}
    saying = {"type": "message", "id": "message", "role": "assistant", "status": "completed", "content": [text]}
    answers = iter([*asking, saying])

    def answer(_request):
        settings = {"parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
        response = {"id": "r", "object": "response", "created_at": 0, "model": "scripted", "output": [next(answers)]}
        return httpx2.Response(200, json=response | settings)

    return AsyncOpenAI(api_key="none", http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(answer)))


@function_tool
def lookup_order(order_id: str) -> dict:
    return {"order_id": order_id, "amount": 40}


@function_tool
def check_policy(order_id: str) -> dict:
    return {"order_id": order_id, "refundable": True}


@function_tool(needs_approval=True)
def issue_refund(order_id: str, amount: float) -> str:
    return f"refunded {amount}"


agent = Agent(name="refund_agent", tools=[lookup_order, check_policy, issue_refund])
for calls in (GOOD, BAD):
    set_default_openai_client(scripted(calls))
    run = Runner.run_sync(agent, "My lamp, order A-1042, arrived broken.")
    while run.interruptions:  # the run pauses, and ends its trace
        state = run.to_state()
        for interruption in run.interruptions:
            state.approve(interruption)
        with trace("approved"):  # else OpenInference writes no spans of the rest
            run = Runner.run_sync(agent, state)
    print(run.final_output)
