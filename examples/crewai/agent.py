"""A refund agent in CrewAI. Its model is a script: put the name of your own in its place."""

import json

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

LOOK_UP = ("lookup_order", {"order_id": "A-1042"})
CHECK = ("check_policy", {"order_id": "A-1042"})
GOOD = [LOOK_UP, CHECK, ("issue_refund", {"order_id": "A-1042", "amount": 40})]
BAD = [LOOK_UP, ("issue_refund", {"order_id": "A-1042", "amount": 400})]


class Scripted(BaseLLM):
    """A model that asks for these calls, one after the other."""

    calls: list

    def call(self, messages, **_settings):
        made = sum(message["role"] == "tool" for message in messages)
        if made == len(self.calls):
            return "Refunded."
        name, arguments = self.calls[made]
        function = {"name": name, "arguments": json.dumps(arguments)}
        return [{"id": f"call_{made}", "type": "function", "function": function}]

    def supports_function_calling(self):
        return True

    def get_input_tokens_count(self, *_args, **_settings):
        return 0


@tool
def lookup_order(order_id: str) -> dict:
    """Return what was ordered."""
    return {"order_id": order_id, "amount": 40}


@tool
def check_policy(order_id: str) -> dict:
    """Return whether a refund is due."""
    return {"order_id": order_id, "refundable": True}


@tool
def issue_refund(order_id: str, amount: float) -> str:
    """Pay the money back."""
    return f"refunded {amount}"


for calls in (GOOD, BAD):
    model = Scripted(model="scripted", calls=calls)
    tools = [lookup_order, check_policy, issue_refund]
    agent = Agent(role="refund_agent", goal="Help customers", backstory="You work in a shop.", llm=model, tools=tools)
    task = Task(description="My lamp, order A-1042, arrived broken.", expected_output="An answer.", agent=agent)
    print(Crew(agents=[agent], tasks=[task]).kickoff())
