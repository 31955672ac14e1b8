"""A refund agent in Pydantic AI: a person approves each refund. Its model is a script: put your own in its place."""

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

LOOK_UP = ("lookup_order", {"order_id": "A-1042"})
CHECK = ("check_policy", {"order_id": "A-1042"})
GOOD = [LOOK_UP, CHECK, ("issue_refund", {"order_id": "A-1042", "amount": 40})]
BAD = [LOOK_UP, ("issue_refund", {"order_id": "A-1042", "amount": 400})]


def scripted(calls):
    """Return a model that asks for these calls, one after the other."""
    parts = iter([*(ToolCallPart(name, arguments) for name, arguments in calls), TextPart("Refunded.")])
    return FunctionModel(lambda _messages, _info: ModelResponse([next(parts)]))


Agent.instrument_all()
agent = Agent(name="refund_agent", output_type=[str, DeferredToolRequests])


@agent.tool_plain
def lookup_order(order_id: str) -> dict:
    return {"order_id": order_id, "amount": 40}


@agent.tool_plain
def check_policy(order_id: str) -> dict:
    return {"order_id": order_id, "refundable": True}


@agent.tool_plain(requires_approval=True)
def issue_refund(order_id: str, amount: float) -> str:
    return f"refunded {amount}"


for calls in (GOOD, BAD):
    model = scripted(calls)
    run = agent.run_sync("My lamp, order A-1042, arrived broken.", model=model)
    while isinstance(run.output, DeferredToolRequests):  # the run pauses, and ends its trace
        approved = DeferredToolResults(approvals={call.tool_call_id: True for call in run.output.approvals})
        run = agent.run_sync(message_history=run.all_messages(), deferred_tool_results=approved, model=model)
    print(run.output)
