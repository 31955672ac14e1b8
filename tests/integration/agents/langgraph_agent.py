"""The refund agent in LangGraph, traced by OpenLLMetry."""

import program
import refunds
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from opentelemetry.instrumentation.langchain import LangchainInstrumentor


def scripted(run: str) -> GenericFakeChatModel:
    """Return a model that asks for the calls of a run."""
    answers = [
        AIMessage(
            "", tool_calls=[{"id": call.call_id, "name": call.name, "args": dict(call.arguments)} for call in step]
        )
        for step in refunds.RUNS[run]
    ]
    return GenericFakeChatModel(messages=iter([*answers, AIMessage(refunds.ANSWER)]))


async def run(name: str) -> None:
    """Do a run."""
    model = scripted(name)

    async def answer(state: MessagesState) -> MessagesState:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", answer)
    graph.add_node("tools", ToolNode([tool(function) for function in refunds.tools(name)], handle_tool_errors=True))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    await graph.compile(name=refunds.AGENT).ainvoke({"messages": [("user", name)]})


if __name__ == "__main__":
    program.main(run, LangchainInstrumentor().instrument)
