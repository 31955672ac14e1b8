from __future__ import annotations

import json

from dialects.spans import call, calls, read, span

RUN = span(1, "haystack.agent.run", {"haystack.agent.steps_taken": 1}, scope="my_application")


def test_a_failure_is_an_attribute_of_its_own() -> None:
    """The status stays unset, and the scope is whatever the user named the tracer."""
    failed = {
        "haystack.tool.name": "book",
        "haystack.agent.step.tool.input": '{"nights": 2}',
        "haystack.agent.step.tool.output": '{"error": "no rooms"}',
        "haystack.tool.error": True,
    }
    made = {**failed, "haystack.agent.step.tool.output": '{"error": "none"}', "haystack.tool.error": False}

    assert calls(
        RUN,
        span(2, "haystack.agent.step.tool", failed, parent=1, scope="my_application"),
        span(3, "haystack.agent.step.tool", made, parent=1, scope="my_application"),
    ) == [
        call(2, "book", {"nights": 2}, result={"error": "no rooms"}, error="no rooms"),
        call(3, "book", {"nights": 2}, result={"error": "none"}),
    ]


def test_call_ids_come_from_the_model_s_step() -> None:
    """The tool's span has none; without content tracing nobody knows them, nor the arguments."""
    replies = {"replies": [{"role": "assistant", "tool_calls": [{"id": "c1", "tool_name": "book", "arguments": {}}]}]}
    asked = span(2, "haystack.agent.step.llm", {"haystack.agent.step.llm.output": json.dumps(replies)}, parent=1)
    told = {"haystack.tool.name": "book", "haystack.agent.step.tool.input": "{}"}
    bare = {"haystack.tool.name": "book"}

    assert calls(RUN, asked, span(3, "haystack.agent.step.tool", told, parent=1)) == [call(3, "book", {}, call_id="c1")]
    assert calls(RUN, span(3, "haystack.agent.step.tool", bare, parent=1)) == [call(3, "book")]


def test_an_agent_has_the_name_of_its_component() -> None:
    """The span of its run, below, has none; other components are no agents, and a pipeline of such is nobody's."""
    named = {"haystack.component.name": "travel_agent", "haystack.component.type": "Agent"}
    other = {"haystack.component.name": "retriever", "haystack.component.type": "InMemoryRetriever"}
    component = span(2, "haystack.component.run", named, parent=1)
    run = span(3, "haystack.agent.run", parent=2)
    tool = span(4, "haystack.agent.step.tool", {"haystack.tool.name": "book"}, parent=3)
    pipeline, beside = span(1, "haystack.pipeline.run"), span(5, "haystack.component.run", other, parent=1)

    assert calls(pipeline, component, run, tool, beside) == [call(4, "book", agent="travel_agent")]
    assert [False] == [trajectory.recognised for trajectory in read(pipeline, beside)]
