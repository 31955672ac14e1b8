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


def test_a_workflow_without_an_agent_is_no_run() -> None:
    """Any workflow writes such spans."""
    assert [False] == [
        run.recognised for run in read(span(1, "Mine.run", scope=SCOPE), span(2, "Mine.begin", parent=1))
    ]
    assert [True] == [run.recognised for run in read(RUN, chat(2))]
