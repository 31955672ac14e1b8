from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, event, read, span
from spanscore.model import Span, StatusCode


def node(number: int, kind: str, parent: int, *entities: tuple[str, str], **data: dict[str, Any]) -> Span:
    """A span with its entities and the data of its events."""
    held = {"span.type": kind, "monocle_apptrace.version": "0.8", "scope.agentic.session": "s-1"}
    for number_of, (of, name) in enumerate(entities, 1):
        held |= {f"entity.{number_of}.type": of, f"entity.{number_of}.name": name}
    events = tuple(event(name.replace("_", "."), attributes) for name, attributes in data.items())
    return span(number, f"a.method_{number}", held, parent=parent, events=events, scope="monocle_apptrace")


def test_tools_agents_and_models_are_entities() -> None:
    """Data is in events: JSON, or what Python prints. What LangChain hands to a tool has the arguments inside."""
    asked = {"tool_id": "c2", "tool_name": "pay", "tool_arguments": '{"n": 1}'}
    handed = {"name": "pay", "args": {"n": 1}, "id": "c2", "type": "tool_call"}
    failed = node(
        5,
        "agentic.tool.invocation",
        2,
        ("tool.langgraph", "pay"),
        ("agent.langgraph", "planner"),
        data_input={"input": str(handed)},
        data_output={"response": "declined", "error_code": "error"},
    )
    (trajectory,) = read(
        node(1, "agentic.turn", 0, ("agent.langgraph", "planner")),
        node(2, "agentic.invocation", 1, ("agent.langgraph", "planner")),
        node(
            3,
            "agentic.mcp.invocation",
            2,
            ("tool.mcp", "book"),
            data_input={"input": "{'city': 'Oslo'}"},
            data_output={"response": '{"id": 7}', "error_code": ""},
        ),
        node(
            4,
            "inference",
            2,
            ("inference.openai", "api"),
            ("model.llm.gpt-4o", "gpt-4o"),
            data_output={"response": json.dumps({"assistant": [asked]})},
            metadata={"prompt_tokens": 11, "completion_tokens": 7, "finish_type": "tool_call"},
        ),
        failed,
        model_calls=True,
    )

    assert trajectory.calls == (
        call(3, "book", {"city": "Oslo"}, result={"id": 7}, agent="planner"),
        call(5, "pay", {"n": 1}, result="declined", error="declined", call_id="c2", agent="planner", turn=0),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")
    assert [(each.model, each.input_tokens, each.output_tokens) for each in trajectory.model_calls] == [
        ("gpt-4o", 11, 7)
    ]


def test_calls_that_nobody_recorded_are_known_to_be_unknown() -> None:
    """The finish type tells that tools were asked for; the status tells what failed."""
    asking = node(2, "inference", 1, metadata={"finish_type": "tool_call"})
    (trajectory,) = read(node(1, "agentic.invocation", 0, ("agent.adk", "planner")), asking)
    assert trajectory.unread is not None

    raised = node(2, "agentic.tool.invocation", 1, ("tool.adk", "book"))._replace(
        status_code=StatusCode.ERROR, status_message="full"
    )
    (trajectory,) = read(node(1, "agentic.invocation", 0, ("agent.adk", "planner")), raised)
    assert [("book", "full")] == [(made.name, made.error) for made in trajectory.calls]
