from __future__ import annotations

import json

from dialects.spans import call, calls, read, span, span_id, start_ns
from spanscore.model import Span

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


def component(number: int, kind: str, **content: object) -> Span:
    """Return the span of a component with its recorded input and output."""
    recorded = {f"haystack.component.{key}": json.dumps(value) for key, value in content.items()}
    return span(number, "haystack.component.run", {"haystack.component.type": kind, **recorded}, parent=1)


def said(role: str, *parts: object, **meta: str) -> list[object]:
    """Return a list of one message, as Haystack writes it."""
    return [{"role": role, "meta": meta, "content": list(parts)}]


BOOK = {"tool_name": "book", "arguments": {"nights": 2}, "id": "c1"}
CHECK = {"tool_name": "check", "arguments": {}, "id": "c2"}
ASKED = said("assistant", {"tool_call": BOOK}, {"tool_call": CHECK}, finish_reason="tool_calls")
DONE = said("tool", {"tool_call_result": {"result": "no rooms", "origin": BOOK, "error": True}})
FINE = said("tool", {"tool_call_result": {"result": "{'rooms': 0}", "origin": CHECK, "error": False}})


def test_the_calls_of_a_tool_invoker_are_those_that_the_generator_asked_for() -> None:
    """One span stands for all of them; its output has the results, also where no model is asked afterwards."""
    generator = component(
        2, "AzureOpenAIChatGenerator", input={"messages": said("user", {"text": "go"})}, output={"replies": ASKED}
    )
    invoker = component(3, "ToolInvoker", input={"messages": ASKED}, output={"tool_messages": [*DONE, *FINE]})

    for root in (RUN, span(1, "haystack.pipeline.run")):
        (run,) = read(root, generator, invoker)

        assert [(made.name, made.arguments, made.result, made.error, made.call_id) for made in run.calls] == [
            ("book", {"nights": 2}, "no rooms", "no rooms", "c1"),
            ("check", {}, {"rooms": 0}, None, "c2"),
        ]


def test_a_call_that_a_person_refused_before_the_tool_invoker_was_not_made() -> None:
    """The invoker is given the others only; the next request holds the refusal."""
    refusal = {"result": "Tool execution for 'book' was rejected by the user.", "origin": BOOK, "error": True}
    told = [*ASKED, *said("tool", {"tool_call_result": refusal}), *FINE]
    spans = (
        component(2, "OpenAIChatGenerator", output={"replies": ASKED}),
        component(3, "ToolInvoker", output={"tool_messages": FINE}),
        component(4, "OpenAIChatGenerator", input={"messages": told}, output={"replies": said("assistant")}),
    )

    assert ["check"] == [made.name for made in calls(RUN, *spans)]


def test_a_tool_invoker_without_content_says_that_tools_were_called() -> None:
    """Nobody knows which: the run is not one that needed none. A generator alone may have answered in words."""
    generator, invoker = component(2, "OpenAIChatGenerator"), component(3, "ToolInvoker")
    idle = component(4, "ToolInvoker", output={"tool_messages": []})

    assert [True] == [bool(run.unread) for run in read(RUN, generator, invoker)]
    assert [False] == [bool(run.unread) for run in read(RUN, generator)]
    assert [False] == [bool(run.unread) for run in read(RUN, generator, idle)]


def test_an_agent_without_spans_of_its_steps_has_them_in_its_conversation() -> None:
    """What it was given is of earlier turns. Where the steps have spans, no call is told twice."""
    earlier = said("assistant", {"tool_call": {**BOOK, "id": "c0"}})
    messages = {"input": {"messages": earlier}, "output": {"messages": [*earlier, *ASKED, *DONE, *FINE]}}
    agent = component(2, "Agent", **messages)._replace(end_ns=start_ns(9))
    agent = agent._replace(attributes={**agent.attributes, "haystack.component.name": "planner"})
    run = span(3, "haystack.agent.run", parent=2)
    steps = (
        component(4, "OpenAIChatGenerator", output={"replies": ASKED})._replace(parent_span_id=span_id(3)),
        component(5, "ToolInvoker", output={"tool_messages": [*DONE, *FINE]})._replace(parent_span_id=span_id(3)),
    )
    pipeline = span(1, "haystack.pipeline.run")
    made = [("book", "no rooms", "planner"), ("check", None, "planner")]

    assert made == [(each.name, each.error, each.agent) for each in calls(pipeline, agent)]
    assert made == [(each.name, each.error, each.agent) for each in calls(pipeline, agent, run, *steps)]


def test_a_conversation_that_is_not_recorded_may_hold_calls() -> None:
    """If no step has a span, the agent is not one that needed no tool."""
    agent = component(2, "Agent")._replace(end_ns=start_ns(9))
    step = component(4, "OpenAIChatGenerator")._replace(parent_span_id=agent.span_id)
    pipeline = span(1, "haystack.pipeline.run")

    assert [True] == [bool(run.unread) for run in read(pipeline, agent)]
    assert [False] == [bool(run.unread) for run in read(pipeline, agent, step)]
