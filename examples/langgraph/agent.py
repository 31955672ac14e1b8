"""A refund agent in LangGraph: a person approves each refund. Its model is a script: put your own in its place."""

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

LOOK_UP = ("lookup_order", {"order_id": "A-1042"})
CHECK = ("check_policy", {"order_id": "A-1042"})
GOOD = [LOOK_UP, CHECK, ("issue_refund", {"order_id": "A-1042", "amount": 40})]
BAD = [LOOK_UP, ("issue_refund", {"order_id": "A-1042", "amount": 400})]


class Scripted(GenericFakeChatModel):
    """A model that gives the answers that it has, one after the other."""

    def bind_tools(self, _tools, **_settings):
        return self


def scripted(calls):
    """Return a model that asks for these calls."""
    asking = [
        AIMessage("", tool_calls=[{"id": f"call_{number}", "name": name, "args": arguments}])
        for number, (name, arguments) in enumerate(calls)
    ]
    return Scripted(messages=iter([*asking, AIMessage("Refunded.")]))


def lookup_order(order_id: str) -> dict:
    """Return what was ordered."""
    return {"order_id": order_id, "amount": 40}


def check_policy(order_id: str) -> dict:
    """Return whether a refund is due."""
    return {"order_id": order_id, "refundable": True}


def issue_refund(order_id: str, amount: float) -> str:
    """Pay the money back."""
    return f"refunded {amount}"


for thread_id, calls in (("good", GOOD), ("bad", BAD)):
    agent = create_agent(
        scripted(calls),
        [lookup_order, check_policy, issue_refund],
        middleware=[HumanInTheLoopMiddleware({"issue_refund": True})],
        checkpointer=InMemorySaver(),
        name="refund_agent",
    )
    thread = {"configurable": {"thread_id": thread_id}}
    run = agent.invoke({"messages": [("user", "My lamp, order A-1042, arrived broken.")]}, thread)
    while "__interrupt__" in run:  # the run pauses, and ends its trace
        run = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    print(run["messages"][-1].content)
