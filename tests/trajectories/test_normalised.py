"""Spans that came by the Collector's `gen_ai_normalizer`, whether or not it removed what it renamed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import call, calls, read, span
from spanscore.model import LOG_RECORD, Span, StatusCode, Unit
from spanscore.trajectories.normalised import may_be_renamed, with_originals

OPENINFERENCE = "openinference.instrumentation.smolagents"
WRITTEN = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}

KEYS = (
    "gen_ai.operation.name",
    "gen_ai.agent.name",
    "gen_ai.tool.name",
    "gen_ai.input.messages",
    "openinference.span.kind",
    "input.value",
    "traceloop.span.kind",
    "traceloop.entity.name",
)
VALUES: tuple[Any, ...] = (
    "invoke_agent",
    "execute_tool",
    "chat",
    "invoke_workflow",
    "CHAIN",
    "AGENT",
    "task",
    "tool",
    "a",
    1,
    ["a"],
    {},
)
NAMES = ("a", "a.task", "a.agent", "a.tool", "execute_tool a")
SCOPES = ("", OPENINFERENCE, "openinference-core", "traceloop.tracer", "opentelemetry.instrumentation.langchain")


@given(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)), st.sampled_from(NAMES), st.sampled_from(SCOPES))
def test_what_was_put_back_stays_as_it_is(attributes: dict[str, Any], name: str, scope: str) -> None:
    """To put originals back a second time changes nothing."""
    once = with_originals(span(1, name, attributes, scope=scope))

    assert with_originals(once) == once


@given(st.dictionaries(st.text(), st.text()))
def test_a_span_without_the_written_names_is_the_same_object(attributes: dict[str, Any]) -> None:
    """What the processor has not touched costs nothing."""
    other = span(1, "any", {key: value for key, value in attributes.items() if not key.startswith("gen_ai.")})

    assert with_originals(other) is other


def test_a_span_of_the_conventions_is_the_same_object() -> None:
    """What an instrumentation writes by the GenAI conventions itself is left alone."""
    followed = [
        span(1, "execute_tool get_weather", {**WRITTEN, "gen_ai.agent.name": "travel_agent"}),
        span(2, "invoke_agent travel_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}),
        span(3, "execute_tool get_weather", WRITTEN, scope="opentelemetry.instrumentation.openai_agents"),
    ]

    assert all(with_originals(each) is each for each in followed)


@pytest.mark.parametrize("scope", ["", OPENINFERENCE])
def test_a_tool_of_openinference_is_known_by_its_operation(scope: str) -> None:
    """Arguments and results stay where OpenInference has them; its kind and the tool's name come from elsewhere."""
    held = {"input.value": '{"city": "Zürich"}', "output.value": '{"sky": "clear"}', "tool_call.id": "c1"}

    assert calls(span(1, "GetWeather", {**WRITTEN, **held}, scope=scope)) == [
        call(1, "get_weather", {"city": "Zürich"}, result={"sky": "clear"}, call_id="c1")
    ]


def test_a_call_of_the_ai_sdk_fails_by_its_exception_alone() -> None:
    """OpenInference's processor marks what ends after an error as failed, also where content is off."""
    held = {"gen_ai.operation.name": "execute_tool", "ai.operationId": "ai.toolCall", "ai.toolCall.name": "get_weather"}
    ended = span(1, "ai.toolCall travel-agent", held, scope="ai", status_code=StatusCode.ERROR)

    assert calls(ended) == [call(1, "get_weather")]


def test_what_a_user_has_renamed_as_well_is_found() -> None:
    """Mappings can be added to those of the processor: these are the most likely."""
    held = {"gen_ai.tool.call.arguments": '{"kwargs": {"city": "Paris"}}', "gen_ai.tool.call.result": "sunny"}

    assert calls(span(1, "GetWeather", {**WRITTEN, **held}, scope=OPENINFERENCE)) == [
        call(1, "get_weather", {"city": "Paris"}, result="sunny")
    ]


@pytest.mark.parametrize(
    ("name", "scope", "agent"),
    [
        ("travel_agent.run", OPENINFERENCE, "travel_agent"),
        ("Step 1", OPENINFERENCE, None),
        ("weather_agent", "openinference-core", "weather_agent"),
        ("plan", "openinference-core", None),
        ("ReAct.forward", "openinference.instrumentation.dspy", None),
    ],
)
def test_a_step_of_a_chain_is_no_agent(name: str, scope: str, agent: str | None) -> None:
    """The processor calls both `invoke_agent`: the span's name tells them apart, or what only agents have."""
    told = {"gen_ai.operation.name": "invoke_agent"}
    root = span(1, "root", {})
    runs = read(root, span(2, name, told, parent=1, scope=scope), span(3, "get_weather", WRITTEN, parent=2))

    assert [each.agent for trajectory in runs for each in trajectory.calls] == [agent]


def test_a_chain_that_kept_its_kind_is_no_agent() -> None:
    """Nor where the originals are still there."""
    chain = {"openinference.span.kind": "CHAIN", "gen_ai.operation.name": "invoke_agent"}
    agent = {"openinference.span.kind": "AGENT", "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
    spans = [span(1, "a", agent), span(2, "step", chain, parent=1), span(3, "get_weather", WRITTEN, parent=2)]

    assert [(run.agent, len(run.calls)) for run in read(*spans, unit=Unit.AGENT)] == [("a", 1)]


@pytest.mark.parametrize("kept", [True, False], ids=["originals kept", "originals removed"])
def test_a_tool_of_openllmetry_is_no_agent(kept: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The processor makes an agent's name of every entity's, and messages of what goes in and out."""
    given_, answer = '{"args": [], "kwargs": {"city": "Paris"}}', '"sunny"'
    originals = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "get_weather",
        "traceloop.entity.input": given_,
        "traceloop.entity.output": answer,
    }
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "get_weather",
        "gen_ai.input.messages": given_,
        "gen_ai.output.messages": answer,
        **(originals if kept else {}),
    }
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "travel_agent"}
    step = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "plan"}
    spans = [
        span(1, "travel_agent.agent", agent, scope="traceloop.tracer"),
        span(2, "plan.task", step, parent=1, scope="traceloop.tracer"),
        span(3, "get_weather.tool", tool, parent=2, scope="traceloop.tracer"),
    ]

    assert calls(*spans) == [call(3, "get_weather", {"city": "Paris"}, result="sunny", agent="travel_agent")]


def test_a_workflow_is_no_agent() -> None:
    """Its name is that of an entity, of which the processor makes an agent's."""
    told = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "trip"}
    (run,) = read(span(1, "trip.workflow", told, scope="traceloop.tracer"), span(2, "get_weather", WRITTEN, parent=1))

    assert run.agent is None


def test_the_agent_that_an_instrumentation_names_itself_stays() -> None:
    """Where there is an agent's name already, the processor leaves it, and the entity's as well."""
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "travel_agent",
        "gen_ai.tool.name": "get_weather",
        "traceloop.entity.name": "get_weather",
        "gen_ai.input.messages": '{"args": [], "kwargs": {"city": "Paris"}}',
    }

    assert calls(span(1, "get_weather.tool", tool, scope="traceloop.tracer")) == [
        call(1, "get_weather", {"city": "Paris"}, agent="travel_agent")
    ]


OPENINFERENCE_X, TRACELOOP = "openinference.instrumentation.x", "traceloop.x"
OPERATION, AGENT, TOOL = "gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.tool.name"
CALL_ID, ARGUMENTS, RESULT = "gen_ai.tool.call.id", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
CONVERSATION, INPUT, OUTPUT = "gen_ai.conversation.id", "gen_ai.input.messages", "gen_ai.output.messages"
OI_KIND, OI_TOOL, OI_INPUT, OI_OUTPUT = "openinference.span.kind", "tool.name", "input.value", "output.value"
TL_KIND, TL_NAME, TL_REQUEST = "traceloop.span.kind", "traceloop.entity.name", "llm.request.type"
TL_INPUT, TL_OUTPUT = "traceloop.entity.input", "traceloop.entity.output"


def restored(spanned: Span) -> dict[str, Any]:
    """Return the attributes that are put back, and as None those that are taken away; the others have to stay."""
    found = with_originals(spanned)
    assert found is spanned or may_be_renamed(spanned)
    assert found is spanned or found.attributes != spanned.attributes
    was, becomes = dict(spanned.attributes), dict(found.attributes)
    return {key: becomes.get(key) for key in {**becomes, **was} if becomes.get(key) != was.get(key)}


@pytest.mark.parametrize(
    ("name", "attributes", "scope", "expected"),
    [
        ("n", {OPERATION: "chat"}, OPENINFERENCE_X, {OI_KIND: "LLM"}),
        ("n", {OPERATION: "embeddings"}, OPENINFERENCE_X, {OI_KIND: "EMBEDDING"}),
        ("n", {OPERATION: "retrieval"}, OPENINFERENCE_X, {OI_KIND: "RETRIEVER"}),
        ("n", {OPERATION: "execute_tool"}, OPENINFERENCE_X, {OI_KIND: "TOOL"}),
        ("n", {OPERATION: "text_completion"}, OPENINFERENCE_X, {OI_KIND: "PROMPT", OPERATION: None}),
        ("n", {OPERATION: "RERANKER"}, OPENINFERENCE_X, {OI_KIND: "RERANKER"}),
        ("n", {OPERATION: "other"}, OPENINFERENCE_X, {}),
        ("n", {OPERATION: "invoke_agent"}, OPENINFERENCE_X, {OI_KIND: "CHAIN", OPERATION: None}),
        ("n", {OPERATION: 1}, OPENINFERENCE_X, {}),
        ("n", {OPERATION: "chat"}, "openinference-core", {OI_KIND: "LLM"}),
        ("n", {OPERATION: "chat"}, "@arizeai/openinference-x", {OI_KIND: "LLM"}),
        ("n", {OPERATION: "chat"}, "other", {}),
        ("n", {OPERATION: "chat", OI_INPUT: "x"}, "", {OI_KIND: "LLM"}),
        ("n", {OPERATION: "chat", OI_OUTPUT: "x"}, "", {OI_KIND: "LLM"}),
        ("ai.toolCall x", {OPERATION: "execute_tool"}, "", {OI_KIND: "TOOL"}),
        ("ai.tool", {OPERATION: "execute_tool"}, "", {}),
        ("n", {AGENT: "a"}, OPENINFERENCE_X, {}),
        ("n", {OI_KIND: "LLM", AGENT: "a"}, "", {}),
        ("n", {OI_KIND: "LLM", OPERATION: "chat"}, "", {}),
        (
            "n",
            {
                OPERATION: "execute_tool",
                TOOL: "t",
                AGENT: "a",
                CALL_ID: "c",
                CONVERSATION: "s",
                ARGUMENTS: "in",
                RESULT: "out",
            },
            OPENINFERENCE_X,
            {
                OI_KIND: "TOOL",
                OI_TOOL: "t",
                "agent.name": "a",
                "tool_call.id": "c",
                "session.id": "s",
                OI_INPUT: "in",
                OI_OUTPUT: "out",
            },
        ),
        ("n", {OPERATION: "execute_tool", TOOL: "t", OI_TOOL: "own"}, OPENINFERENCE_X, {OI_KIND: "TOOL"}),
        ("n", {OPERATION: "invoke_agent", AGENT: "a"}, OPENINFERENCE_X, {OI_KIND: "AGENT", "agent.name": "a"}),
        (
            "n",
            {OPERATION: "invoke_agent", TOOL: "t"},
            OPENINFERENCE_X,
            {OI_KIND: "AGENT", OI_TOOL: "t", OPERATION: None},
        ),
        ("n", {OPERATION: "invoke_agent", "agent.name": "x"}, OPENINFERENCE_X, {OI_KIND: "AGENT"}),
        ("n", {OPERATION: "invoke_agent", "graph.node.id": "x"}, OPENINFERENCE_X, {OI_KIND: "AGENT"}),
        ("n", {OPERATION: "invoke_agent", OI_KIND: "CHAIN"}, "", {OPERATION: None}),
        ("n", {OPERATION: "invoke_agent", OI_KIND: "PROMPT"}, "", {OPERATION: None}),
        ("n", {OPERATION: "chat", OI_KIND: "PROMPT"}, "", {OPERATION: None}),
        ("n", {OPERATION: "invoke_agent", OI_KIND: "AGENT"}, "", {}),
        ("n", {OPERATION: "invoke_agent", OI_KIND: "AGENT", OI_TOOL: "t"}, "", {OPERATION: None}),
        ("n", {OPERATION: "chat", OI_KIND: "AGENT", OI_TOOL: "t"}, "", {}),
        ("n", {OPERATION: "invoke_agent", OI_KIND: "TOOL"}, "", {}),
        ("n", {OPERATION: "chat", OI_KIND: "CHAIN"}, "", {}),
        ("My_Agent", {OPERATION: "invoke_agent"}, "openinference.instrumentation.langchain", {OI_KIND: "AGENT"}),
        (
            "x.run",
            {OPERATION: "invoke_agent"},
            "openinference.instrumentation.langchain",
            {OI_KIND: "CHAIN", OPERATION: None},
        ),
        (
            "n",
            {OPERATION: "invoke_agent"},
            "openinference.instrumentation.langchain",
            {OI_KIND: "CHAIN", OPERATION: None},
        ),
        (
            "My_Agent",
            {OPERATION: "invoke_agent"},
            "openinference.instrumentation.smolagents",
            {OI_KIND: "CHAIN", OPERATION: None},
        ),
        ("x.run", {OPERATION: "invoke_agent"}, "openinference.instrumentation.smolagents", {OI_KIND: "AGENT"}),
        (
            "n",
            {OPERATION: "invoke_agent"},
            "openinference.instrumentation.smolagents",
            {OI_KIND: "CHAIN", OPERATION: None},
        ),
        ("My_Agent", {OPERATION: "invoke_agent"}, "openinference-core", {OI_KIND: "AGENT"}),
        ("x.run", {OPERATION: "invoke_agent"}, "openinference-core", {OI_KIND: "AGENT"}),
        ("n", {OPERATION: "invoke_agent"}, "openinference-core", {OI_KIND: "AGENT"}),
        ("My_Agent", {OPERATION: "invoke_agent"}, "openinference.claude_agent_sdk", {OI_KIND: "AGENT"}),
        ("x.run", {OPERATION: "invoke_agent"}, "openinference.claude_agent_sdk", {OI_KIND: "AGENT"}),
        ("n", {OPERATION: "invoke_agent"}, "openinference.claude_agent_sdk", {OI_KIND: "AGENT"}),
        ("My_Agent", {OPERATION: "invoke_agent"}, "openinference-claude-agent-sdk", {OI_KIND: "AGENT"}),
        ("x.run", {OPERATION: "invoke_agent"}, "openinference-claude-agent-sdk", {OI_KIND: "AGENT"}),
        ("n", {OPERATION: "invoke_agent"}, "openinference-claude-agent-sdk", {OI_KIND: "AGENT"}),
        ("My_Agent", {OPERATION: "invoke_agent"}, OPENINFERENCE_X, {OI_KIND: "CHAIN", OPERATION: None}),
        ("x.run", {OPERATION: "invoke_agent"}, OPENINFERENCE_X, {OI_KIND: "CHAIN", OPERATION: None}),
    ],
)
def test_originals_of_openinference(
    name: str, attributes: dict[str, Any], scope: str, expected: dict[str, Any]
) -> None:
    """The kind by the operation, and the names by the names; an operation that misleads is taken away."""
    assert expected == restored(span(1, name, attributes, scope=scope))
    record = span(1, name, attributes, scope=scope, kind=LOG_RECORD)
    assert with_originals(record) is record


@pytest.mark.parametrize(("name", "kind"), [("n", "CHAIN"), ("Agent", "AGENT")])
def test_a_step_below_another_span_is_an_agent_by_its_name(name: str, kind: str) -> None:
    """A root is one in any case."""
    below = span(1, name, {OPERATION: "invoke_agent"}, scope="openinference-core", parent=9)
    assert kind == with_originals(below).attributes[OI_KIND]
    assert "AGENT" == with_originals(below._replace(parent_span_id=b"")).attributes[OI_KIND]


@pytest.mark.parametrize(
    ("name", "attributes", "scope", "expected"),
    [
        ("n", {OPERATION: "chat"}, TRACELOOP, {TL_REQUEST: "chat"}),
        ("n", {OPERATION: "text_completion"}, TRACELOOP, {TL_REQUEST: "completion"}),
        ("n", {OPERATION: "chat", TL_REQUEST: "own"}, TRACELOOP, {}),
        ("n", {OPERATION: "embeddings"}, TRACELOOP, {}),
        ("n", {OPERATION: "chat"}, "opentelemetry.instrumentation.x", {TL_REQUEST: "chat"}),
        ("n", {OPERATION: "chat"}, "@traceloop/x", {TL_REQUEST: "chat"}),
        ("n", {AGENT: "a"}, TRACELOOP, {}),
        ("a.agent", {OPERATION: "invoke_agent", AGENT: "a"}, TRACELOOP, {TL_KIND: "agent", TL_NAME: "a"}),
        (
            "a.task",
            {OPERATION: "invoke_agent", AGENT: "a"},
            TRACELOOP,
            {TL_KIND: "task", TL_NAME: "a", OPERATION: None, AGENT: None},
        ),
        ("agent", {OPERATION: "invoke_agent", AGENT: "agent"}, TRACELOOP, {}),
        ("a.b", {OPERATION: "invoke_agent", AGENT: "a"}, TRACELOOP, {}),
        (
            "a.workflow",
            {OPERATION: "invoke_workflow", AGENT: "a"},
            TRACELOOP,
            {TL_KIND: "workflow", TL_NAME: "a", AGENT: None},
        ),
        ("x.workflow", {OPERATION: "invoke_workflow", AGENT: "a"}, TRACELOOP, {TL_KIND: "workflow"}),
        ("a.tool", {OPERATION: "execute_tool", AGENT: "a"}, TRACELOOP, {TL_KIND: "tool", TL_NAME: "a", AGENT: None}),
        ("a", {OPERATION: "execute_tool", AGENT: "a"}, TRACELOOP, {TL_KIND: "tool", TL_NAME: "a", AGENT: None}),
        ("run a", {OPERATION: "execute_tool", AGENT: "a"}, TRACELOOP, {TL_KIND: "tool", TL_NAME: "a", AGENT: None}),
        ("runa", {OPERATION: "execute_tool", AGENT: "a"}, TRACELOOP, {TL_KIND: "tool"}),
        ("ab", {OPERATION: "execute_tool", AGENT: "a"}, TRACELOOP, {TL_KIND: "tool"}),
        (
            "a.tool",
            {OPERATION: "execute_tool", AGENT: "a", INPUT: "in", OUTPUT: "out"},
            TRACELOOP,
            {TL_KIND: "tool", TL_NAME: "a", TL_INPUT: "in", TL_OUTPUT: "out", AGENT: None},
        ),
        (
            "a.tool",
            {OPERATION: "execute_tool", AGENT: "a", INPUT: "in", TL_INPUT: "own"},
            TRACELOOP,
            {TL_KIND: "tool", TL_NAME: "a", AGENT: None},
        ),
        ("a.tool", {OPERATION: "execute_tool", TOOL: "a", AGENT: "x"}, TRACELOOP, {}),
        (
            "a.tool",
            {OPERATION: "execute_tool", TOOL: "a", AGENT: "x", INPUT: "in"},
            TRACELOOP,
            {TL_KIND: "tool", TL_INPUT: "in"},
        ),
        (
            "a.tool",
            {OPERATION: "execute_tool", TOOL: "a", TL_NAME: "a", AGENT: "a"},
            TRACELOOP,
            {TL_KIND: "tool", AGENT: None},
        ),
        ("a.tool", {OPERATION: "execute_tool", TOOL: "a", TL_NAME: "a", AGENT: "x"}, TRACELOOP, {TL_KIND: "tool"}),
        ("n", {TL_KIND: "tool", OPERATION: "execute_tool", AGENT: "a", TL_NAME: "a"}, "", {AGENT: None}),
        (
            "n",
            {TL_KIND: "task", OPERATION: "invoke_agent", AGENT: "a", TL_NAME: "a"},
            "",
            {OPERATION: None, AGENT: None},
        ),
        ("n", {TL_KIND: "agent", OPERATION: "invoke_agent", AGENT: "a", TL_NAME: "a"}, "", {}),
        ("n", {TL_KIND: "workflow", OPERATION: "invoke_agent", AGENT: "a", TL_NAME: "a"}, "", {}),
        ("n", {TL_KIND: "tool", OPERATION: "invoke_agent", AGENT: "a", TL_NAME: "a"}, "", {}),
        ("n", {TL_KIND: "task", OPERATION: "execute_tool", AGENT: "a", TL_NAME: "a"}, "", {AGENT: None}),
        ("n", {TL_KIND: "task", OPERATION: "invoke_agent", AGENT: "x", TL_NAME: "a"}, "", {OPERATION: None}),
        ("n", {TL_KIND: "tool", OPERATION: "execute_tool", AGENT: "x"}, "", {}),
        ("n", {OPERATION: "execute_tool", TL_NAME: "a"}, "", {TL_KIND: "tool"}),
        ("n", {OPERATION: "execute_tool", TL_INPUT: "a"}, "", {TL_KIND: "tool"}),
        ("n", {OPERATION: "execute_tool", TL_OUTPUT: "a"}, "", {TL_KIND: "tool"}),
        ("n", {OPERATION: "execute_tool", "traceloop.workflow.name": "a"}, "", {TL_KIND: "tool"}),
        ("n", {OPERATION: "execute_tool", "traceloop.x": "a"}, "", {}),
        ("a", {OPERATION: "execute_tool", AGENT: ["a"]}, TRACELOOP, {TL_KIND: "tool"}),
    ],
)
def test_originals_of_openllmetry(name: str, attributes: dict[str, Any], scope: str, expected: dict[str, Any]) -> None:
    """The kind by the operation or the span's name; a name of an entity is no agent's."""
    assert expected == restored(span(1, name, attributes, scope=scope))
