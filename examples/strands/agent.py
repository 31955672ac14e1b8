"""A refund agent in Strands. Its model is a script: put your own in its place."""

import json

from strands import Agent, tool
from strands.models import Model

LOOK_UP = ("lookup_order", {"order_id": "A-1042"})
CHECK = ("check_policy", {"order_id": "A-1042"})
GOOD = [LOOK_UP, CHECK, ("issue_refund", {"order_id": "A-1042", "amount": 40})]
BAD = [LOOK_UP, ("issue_refund", {"order_id": "A-1042", "amount": 400})]


class Scripted(Model):
    """A model that asks for these calls, one after the other."""

    def __init__(self, calls):
        self.calls = iter(calls)

    async def stream(self, messages, *_args, **_settings):
        call = next(self.calls, None)
        yield {"messageStart": {"role": "assistant"}}
        if call is None:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "Refunded."}}}
        else:
            use = {"name": call[0], "toolUseId": f"call_{len(messages)}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call[1])}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if call is None else "tool_use"}}

    def structured_output(self, *_args, **_settings): ...
    def get_config(self): ...
    def update_config(self, **_settings): ...


@tool
def lookup_order(order_id: str) -> dict:
    return {"order_id": order_id, "amount": 40}


@tool
def check_policy(order_id: str) -> dict:
    return {"order_id": order_id, "refundable": True}


@tool
def issue_refund(order_id: str, amount: float) -> str:
    return f"refunded {amount}"


for calls in (GOOD, BAD):
    tools = [lookup_order, check_policy, issue_refund]
    agent = Agent(model=Scripted(calls), tools=tools, name="refund_agent", callback_handler=None)
    print(agent("My lamp, order A-1042, arrived broken."), end="")
