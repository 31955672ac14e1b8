from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span, span_id
from spanscore.model import Span, StatusCode

LANGCHAIN = "openlit.instrumentation.langchain"
LANGGRAPH = "openlit.instrumentation.langgraph"
RUN_ID = "01a1f8eb-e4e0-7706-ab38-8b2b69fe1640"


def tool(number: int, scope: str = LANGCHAIN, **attributes: Any) -> Span:
    """A tool span."""
    told = {f"gen_ai.tool.call.{key}": value for key, value in attributes.items()}
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", **told}
    return span(number, "execute_tool book", held, parent=1, scope=scope)


@pytest.mark.parametrize(
    ("content", "result"),
    [
        ('\'{"id": "BK-1"}\'', {"id": "BK-1"}),
        ("'it\\'s booked'", "it's booked"),
        ("\"it's tool_call_id='c9'\"", "it's tool_call_id='c9'"),
        ("[{'type': 'text', 'text': 'a'}]", [{"type": "text", "text": "a"}]),
    ],
)
def test_arguments_and_messages_are_printed(content: str, result: Any) -> None:
    """The arguments as a dict, the result as LangChain's tool message."""
    printed = f"content={content} name='book' tool_call_id='c1'"

    assert calls(tool(2, arguments="{'nights': 2}", result=printed, id="c1")) == [
        call(2, "book", {"nights": 2}, result=result, call_id="c1")
    ]


def test_a_failed_call_has_the_id_of_a_run() -> None:
    """It is not the model's; there is no exception event."""
    failed = tool(2, arguments="{}", id=RUN_ID)
    told = {"gen_ai.framework.error.message": "full", "error.type": "ValueError"}

    assert calls(
        failed._replace(attributes={**failed.attributes, **told}, status_code=StatusCode.ERROR, status_message="x")
    ) == [call(2, "book", {}, error="ValueError: full")]


def test_the_graph_is_the_agent() -> None:
    """Its nodes are written as agents, too."""
    workflow = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "planner"}
    node = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "model", "gen_ai.agent.id": "model"}

    (trajectory,) = read(
        span(1, "invoke_workflow planner", workflow, scope=LANGGRAPH),
        span(2, "invoke_agent model", node, parent=1, scope=LANGGRAPH),
        tool(3, arguments="{}")._replace(parent_span_id=bytes(7) + b"\x02"),
    )

    assert trajectory.calls == (call(3, "book", {}, agent="planner"),)
    assert trajectory.agent == "planner"


def test_smolagents() -> None:
    """Every call has an id of OpenLIT's own, and a failed one no attribute at all: the model's requests repair both."""
    request = {"type": "tool_call", "name": "book", "arguments": {"nights": 2}}
    chats = []
    for number, call_id in ((2, "c1"), (4, "c2")):
        said = [{"role": "assistant", "parts": [{**request, "id": call_id}]}]
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(said)}
        chats.append(span(number, "chat", attributes, parent=1))
    scope = "openlit.instrumentation.smolagents"
    error = {"status_code": StatusCode.ERROR, "events": (exception("ValueError", "full"),)}
    failed = span(3, "execute_tool book", parent=1, scope=scope, **error)

    assert calls(span(1, "run"), *chats, failed, tool(5, scope, arguments='{"nights": 2}', id=RUN_ID)) == [
        call(3, "book", {"nights": 2}, call_id="c1", error="ValueError: full"),
        call(5, "book", {"nights": 2}, call_id="c2"),
    ]


@pytest.mark.parametrize(
    ("given", "is_unseen"),
    [
        ("\"Command(resume={'decisions': [{'type': 'approve'}]})\"", True),
        ("{'messages': [{'role': 'user', 'content': 'Command(resume='}]}", False),
    ],
)
def test_a_graph_that_is_given_a_persons_answer_continues(given: str, *, is_unseen: bool) -> None:
    """The messages of its models leave the calls out."""
    run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner", "gen_ai.workflow.input": given}

    (trajectory,) = read(span(1, "invoke_agent planner", run, scope=LANGCHAIN), tool(2, arguments="{}"))

    assert trajectory.completeness.begin_unseen == is_unseen


AGENTS = "openlit.instrumentation.openai_agents"


def part(number: int, operation: str, parent: int, agent: str | None = None) -> Span:
    """A span of a run of the OpenAI Agents SDK that is no call."""
    named = {} if agent is None else {"gen_ai.agent.name": agent}
    return span(number, operation, {"gen_ai.operation.name": operation, **named}, parent=parent, scope=AGENTS)


def test_a_tool_of_openai_agents_without_a_result_waits_at_the_end() -> None:
    """A span without a name is a turn, not a run of an agent."""
    (run,) = read(
        part(1, "invoke_workflow", 0),
        part(2, "invoke_agent", 1),
        part(3, "invoke_agent", 2, "desk"),
        part(4, "invoke_agent", 3),
        span(5, "chat m", {"gen_ai.operation.name": "chat"}, parent=4, scope="openlit.instrumentation.openai"),
        tool(6, AGENTS, arguments="{}")._replace(parent_span_id=span_id(4)),
    )

    assert (run.agent, run.calls, run.completeness.paused) == ("desk", (), ("book",))
    assert run.invocations is not None
    assert [each.agent for each in run.invocations] == ["desk"]


@pytest.mark.parametrize(("root", "expected"), [("invoke_workflow", False), ("invoke_agent", True)])
def test_a_run_of_openai_agents_that_continues_has_no_workflow_around_it(root: str, *, expected: bool) -> None:
    """Its calls before the pause are in another trace."""
    (run,) = read(part(1, root, 0), part(2, "invoke_agent", 1, "desk"), tool(3, AGENTS, arguments="{}", result="1"))

    assert run.completeness.begin_unseen is expected


def test_the_creation_of_an_agent_is_no_run() -> None:
    """Its span is a trace of its own."""
    (run,) = read(part(1, "create_agent", 0, "desk"))

    assert not run.recognised


def test_ids_of_items_are_not_those_of_calls() -> None:
    """The Responses API gives both; the span has the id of its last call beside the messages."""
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "fc_1", "name": "book", "arguments": {}}]}]
    held = {
        "gen_ai.operation.name": "chat",
        "openai.api.type": "responses",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.output.messages": json.dumps(said),
    }
    (run,) = read(
        part(1, "invoke_agent", 0, "desk"),
        span(2, "chat m", held, parent=1, scope="openlit.instrumentation.openai"),
        tool(3, AGENTS, arguments="{}", result="1"),
    )

    assert [each.call_id for each in run.calls] == ["call_1"]


PYDANTIC_AI = "openlit.instrumentation.pydantic_ai"


def test_a_tool_span_of_pydantic_ai_without_a_name_is_a_step() -> None:
    """The calls are those that the model asked for."""
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "book", "arguments": {"n": 1}}]}]
    (run,) = read(
        span(1, "invoke_agent desk", {"gen_ai.agent.name": "desk"}, scope=PYDANTIC_AI),
        span(2, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps(said)}, parent=1),
        span(3, "execute_tool m", {"gen_ai.operation.name": "execute_tool"}, parent=1, scope=PYDANTIC_AI),
    )

    assert [(each.name, each.call_id, each.agent) for each in run.calls] == [("book", "c1", "desk")]


def test_the_output_of_pydantic_ai_shows_for_which_calls_a_run_waits() -> None:
    """The calls are printed as objects."""
    waits = "DeferredToolRequests(calls=[], approvals=[ToolCallPart(tool_name='book', args='{}', tool_call_id='c1')])"
    held = {"gen_ai.agent.name": "desk", "gen_ai.operation.name": "execute_task", "gen_ai.output.messages": waits}
    (run,) = read(span(1, "invoke_agent desk", held, scope=PYDANTIC_AI))

    assert run.completeness.paused == ("book",)
