from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, event, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "llamaindex.opentelemetry.tracer"
RUN = span(1, "FunctionAgent.run", scope=SCOPE)


def step(number: int, summary: str) -> Span:
    """Return the span of a step that calls a tool."""
    attributes = {"llamaindex.step.input_summary": summary}
    return span(number, "BaseWorkflowAgent.call_tool", attributes, parent=1, scope=SCOPE)


def tool(number: int, parent: int, *raised: str) -> Span:
    """Return the tool's own span, which may have raised an exception."""
    fields: dict[str, Any] = {"status_code": StatusCode.ERROR, "events": (exception(*raised),)} if raised else {}
    return span(number, "FunctionTool.acall", parent=parent, scope=SCOPE, **fields)


def chat(number: int, *, sent: object = (), said: object = ()) -> Span:
    """Return the span of a request to a model."""
    events = (
        event("LLMChatStartEvent", {"messages": json.dumps(sent)}),
        event("LLMChatEndEvent", {"response.message.blocks": json.dumps(said)}),
    )
    return span(number, "OpenAI.achat", parent=1, scope=SCOPE, events=events)


BOOK = "ToolCall(tool_name='book', tool_kwargs={'hotel': 'Ritz'}, tool_id='c1')"


def test_a_step_is_the_call_and_the_tool_below_says_whether_it_failed() -> None:
    """What the step was given is printed."""
    assert calls(RUN, step(2, BOOK), tool(3, 2), step(4, BOOK), tool(5, 4, "ValueError", "full")) == [
        call(2, "book", {"hotel": "Ritz"}, call_id="c1"),
        call(4, "book", {"hotel": "Ritz"}, call_id="c1", error="ValueError: full", error_type="ValueError"),
    ]


def test_what_is_cut_off_stands_in_the_messages() -> None:
    """A step's text ends after 200 characters; the messages to and from the model are whole."""
    given = {"note": "n" * 200}
    asked = [{"block_type": "tool_call", "tool_name": "book", "tool_kwargs": json.dumps(given), "tool_call_id": "c1"}]
    told = [{"role": "tool", "additional_kwargs": {"tool_call_id": "c1"}, "blocks": [{"text": "{'id': 7}"}]}]
    cut = f"ToolCall(tool_name='book', tool_kwargs={given}, tool_id='c1')"[:200] + "..."

    assert calls(RUN, chat(2, said=asked), step(3, cut), tool(4, 3), chat(5, sent=told)) == [
        call(3, "book", given, result={"id": 7}, call_id="c1")
    ]


def test_a_step_that_waits_for_an_event_is_no_call_yet() -> None:
    """The step is run once more when the event has come."""
    waits = (step(2, BOOK), tool(3, 2, "workflows.runtime.types.step_function.WaitingForEvent", "Waiting for event"))

    assert calls(RUN, *waits) == []
    assert calls(RUN, *waits, step(4, BOOK), tool(5, 4)) == [call(4, "book", {"hotel": "Ritz"}, call_id="c1")]


def test_the_step_that_asks_the_model_names_the_agent_of_the_calls_beside_it() -> None:
    """A call that comes before all steps continues a run: its earlier calls are in the messages."""
    asks = step(5, "AgentSetup(input=[2 items], current_agent_name='clerk')")._replace(name="Agent.run_agent_step")

    def exchanged(call_id: str, name: str, result: str) -> list[dict[str, Any]]:
        asked = {"block_type": "tool_call", "tool_name": name, "tool_kwargs": "{}", "tool_call_id": call_id}
        told = {"additional_kwargs": {"tool_call_id": call_id}, "blocks": [{"block_type": "text", "text": result}]}
        return [{"role": "assistant", "blocks": [asked]}, {"role": "tool", **told}]

    said = {"role": "user", "blocks": [{"block_type": "text", "text": "book it"}]}
    sent = [said, *exchanged("c0", "look", "free"), *exchanged("c1", "book", "ok")]
    within = chat(6, sent=sent)._replace(parent_span_id=asks.span_id)
    (run,) = read(RUN, step(2, "ToolCall(tool_name='book', tool_kwargs={}, tool_id='c1')"), asks, within)

    assert [("look", "clerk", True), ("book", "clerk", False)] == [
        (each.name, each.agent, each.restored) for each in run.calls
    ]


def test_a_workflow_without_an_agent_is_no_run() -> None:
    """Any workflow writes such spans."""
    assert [False] == [
        run.recognised for run in read(span(1, "Mine.run", scope=SCOPE), span(2, "Mine.begin", parent=1))
    ]
    assert [True] == [run.recognised for run in read(RUN, chat(2))]
