from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "openinference.instrumentation.langchain"
ASKED = f"ann@x.example{', bob@x.example' * 10}"


def chain(number: int, name: str, kind: str = "CHAIN", parent: int = 0, **metadata: Any) -> Span:
    """A graph, or a node of one."""
    attributes = {"openinference.span.kind": kind, "metadata": json.dumps(metadata)}
    return span(number, name, attributes, parent=parent, scope=SCOPE)


def tool(number: int, name: str, parent: int = 0, **attributes: Any) -> Span:
    """A tool span."""
    held = {"openinference.span.kind": "TOOL", "tool.name": name, **attributes}
    return span(number, name, held, parent=parent, scope=SCOPE)


def message(content: str, call_id: str = "c1", **fields: Any) -> str:
    """The serialised message of a tool."""
    data = {"content": content, "type": "tool", "tool_call_id": call_id, "status": "success", **fields}
    return json.dumps({"type": "tool", "data": data})


@pytest.mark.parametrize("given", ['{"city": "Zürich", "days": 2}', "{'city': 'Zürich', 'days': 2}"])
def test_arguments_are_json_or_printed(given: str) -> None:
    """Versions for LangChain 0.3 print them; the call id stands in the result's message."""
    spans = [
        chain(1, "planner"),
        tool(2, "get_weather", parent=1, **{"input.value": given, "output.value": message('{"sky": "clear"}')}),
    ]

    assert calls(*spans) == [
        call(2, "get_weather", {"city": "Zürich", "days": 2}, result={"sky": "clear"}, call_id="c1", agent="planner")
    ]


def test_a_tool_without_arguments() -> None:
    """Nothing is written then; hidden arguments and those dropped by a limit are something else."""
    bare = tool(1, "ping", **{"output.value": message("pong")})
    hidden = tool(2, "ping", **{"input.value": "__REDACTED__", "output.value": "__REDACTED__"})
    dropped = tool(3, "ping", **{"output.value": message("pong", "c3")})._replace(dropped_attributes=1)
    unfinished = tool(4, "ping")

    assert calls(bare, hidden, dropped, unfinished) == [
        call(1, "ping", {}, result="pong", call_id="c1"),
        call(2, "ping"),
        call(3, "ping", result="pong", call_id="c3"),
        call(4, "ping"),
    ]


@pytest.mark.parametrize("text", ["refunds", "12", "[1, 2]", '{"match": 1}', "[draft"])
def test_a_lone_string_argument_has_lost_its_name(text: str) -> None:
    """The model's request gives it back, whatever the text looks like."""
    prefix = "llm.output_messages.0.message.tool_calls.0.tool_call"
    request = {
        "openinference.span.kind": "LLM",
        f"{prefix}.id": "c1",
        f"{prefix}.function.name": "lookup",
        f"{prefix}.function.arguments": json.dumps({"topic": text}),
    }
    model = span(1, "ChatOpenAI", request, scope=SCOPE)

    assert calls(model, tool(2, "lookup", **{"input.value": text, "output.value": message("ok")})) == [
        call(2, "lookup", {"topic": text}, result="ok", call_id="c1")
    ]


def test_a_failure_is_a_status_and_an_exception() -> None:
    """The status message is the whole traceback."""
    failed = tool(1, "book", **{"input.value": '{"nights": 2}'})._replace(
        status_code=StatusCode.ERROR,
        status_message="ValueError('full')Traceback (most recent call last):\n ...",
        events=(exception("ValueError", "full"),),
    )

    assert calls(failed) == [call(1, "book", {"nights": 2}, error="ValueError: full")]


def test_an_error_that_the_tool_node_caught() -> None:
    """Only the message tells, where the tool was handled inside."""
    failed = tool(1, "book", **{"input.value": "{}", "output.value": message("full\nsorry", status="error")})

    assert calls(failed) == [call(1, "book", {}, result="full\nsorry", error="full", call_id="c1")]


def test_a_tool_with_agent_in_its_name_is_taken_for_an_agent() -> None:
    """It is a tool all the same."""
    attributes = {"openinference.span.kind": "AGENT", "input.value": "Paris?", "output.value": message("sunny")}
    asked = tool(2, "ask_weather_agent", parent=1, **attributes)

    assert [(made.name, made.agent) for made in calls(chain(1, "planner"), asked)] == [("ask_weather_agent", "planner")]


def test_graphs_are_agents_and_nodes_are_not() -> None:
    """A graph as a node has the node's name, and the metadata names it; a node called "agent" is no agent."""
    spans = [
        chain(1, "team"),
        chain(2, "agent", "AGENT", parent=1, langgraph_node="agent"),
        chain(3, "booker", parent=1, langgraph_node="booker"),
        chain(4, "booker", parent=3, langgraph_node="booker", lc_agent_name="booker"),
        tool(5, "book", parent=4, **{"input.value": "{}"}),
        tool(6, "log", parent=2, **{"input.value": "{}"}),
    ]

    (trajectory,) = read(*spans)

    assert trajectory.agent == "team"
    assert [("book", "booker"), ("log", "team")] == [(made.name, made.agent) for made in trajectory.calls]


def test_an_agent_that_begins_behind_its_model_continues() -> None:
    """Its tools and middlewares run because a model asked for calls; the nodes of other graphs run by themselves."""
    root = chain(1, "clerk", "AGENT", lc_agent_name="clerk")
    model = span(4, "chat", {"openinference.span.kind": "LLM"}, parent=1, scope=SCOPE)
    named = {"metadata": json.dumps({"lc_agent_name": "clerk"})}
    after = chain(2, "HumanInTheLoopMiddleware.after_model", parent=1)
    found = [
        read(root, first, model)[0].completeness.begin_unseen
        for first in (tool(2, "book", parent=1, **named), after, tool(2, "book", parent=1))
    ]

    assert [True, True, False] == found


SENT: dict[str, str] = {
    "openinference.span.kind": "LLM",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "mail it",
    "llm.input_messages.1.message.role": "assistant",
    "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "mail",
    "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": json.dumps({"to": ASKED}),
    "llm.input_messages.2.message.role": "tool",
    "llm.input_messages.2.message.content": "sent",
    "llm.input_messages.2.message.tool_call_id": "c1",
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [("bob@x.example", "bob@x.example"), (ASKED, ASKED), ("ann@x.example", "ann@x.example"), (ASKED[:-9], ASKED)],
)
def test_a_person_has_edited_a_lone_argument(given: str, expected: str) -> None:
    """The call that the run has waited for tells what it was given; a long text may be cut."""
    made = tool(2, "mail", parent=1, **{"input.value": given, "output.value": message("sent")})
    (run,) = read(chain(1, "clerk", "AGENT"), made, span(4, "chat", SENT, parent=1, scope=SCOPE))

    assert run.completeness.resumed
    assert [{"to": expected}] == [call.arguments for call in run.calls]


@pytest.mark.parametrize(("pauses", "expected"), [(True, "bob@x.example"), (False, ASKED)])
def test_a_person_has_edited_a_lone_argument_in_the_trace_that_asked(*, pauses: bool, expected: str) -> None:
    """Without a pause nobody can have: the text of the argument may be another form of it."""
    call = "llm.output_messages.0.message.tool_calls.0.tool_call."
    told = {f"{call}id": "c1", f"{call}function.name": "mail", f"{call}function.arguments": json.dumps({"to": ASKED})}
    model = span(2, "chat", {"openinference.span.kind": "LLM", **told}, parent=1, scope=SCOPE)
    review = chain(3, "HumanInTheLoopMiddleware.after_model", parent=1)
    interrupt = (exception("langgraph.errors.GraphInterrupt", "(Interrupt(value='mail?'),)"),)
    made = tool(4, "mail", parent=1, **{"input.value": "bob@x.example", "output.value": message("sent")})
    paused = [review._replace(events=interrupt)] if pauses else []
    (run,) = read(chain(1, "clerk", "AGENT"), model, *paused, made)

    assert [{"to": expected}] == [call.arguments for call in run.calls]


def test_a_lone_number_is_the_one_that_was_asked_for() -> None:
    """A text of it is no sign that a person has changed it."""
    asked = {key: '{"to": 100}' if key.endswith("arguments") else value for key, value in SENT.items()}
    made = tool(2, "mail", parent=1, **{"input.value": "100", "output.value": message("sent")})
    (run,) = read(chain(1, "clerk", "AGENT"), made, span(4, "chat", asked, parent=1, scope=SCOPE))

    assert [{"to": 100}] == [call.arguments for call in run.calls]


@pytest.mark.parametrize(("source", "refused"), [("hitl_interrupt_decision", ["mail"]), ("other", [])])
def test_a_person_has_answered_in_place_of_the_tool(source: str, refused: list[str]) -> None:
    """Only the whole input of the model has the mark of the message."""
    marked = {"lc_source": source, "lc_data": {"decision": "respond"}}
    answer = {"content": "sent", "type": "tool", "tool_call_id": "c1", "additional_kwargs": marked}
    request = {"name": "mail", "args": {"to": "ann@x.example"}, "id": "c1", "type": "tool_call"}
    told = [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": fields}
        for kind, fields in (
            ("HumanMessage", {"content": "mail it", "type": "human"}),
            ("AIMessage", {"content": "", "type": "ai", "tool_calls": [request]}),
            ("ToolMessage", answer),
        )
    ]
    sent = {**SENT, "input.value": json.dumps({"messages": [told]})}
    (run,) = read(chain(1, "clerk", "AGENT"), span(4, "chat", sent, parent=1, scope=SCOPE))

    assert refused == [name for name, state in run.withheld if state == "refused"]
    assert run.completeness.resumed is bool(refused)


OF_AGENT = "langchain_create_agent"


def under_openinference(integration: str, name: str, given: Any, state: Any) -> Span:
    """The span of an agent's graph."""
    spanned = chain(1, name, "AGENT", ls_integration=integration, lc_agent_name="clerk")
    held = {"input.value": json.dumps(given), "output.value": json.dumps(state)}
    return spanned._replace(attributes={**spanned.attributes, **held})


def under_openllmetry(integration: str, name: str, given: Any, state: Any) -> Span:
    """The span of an agent's graph."""
    of_run = "traceloop.association.properties"
    held = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.name": "clerk",
        "traceloop.entity.input": json.dumps({"inputs": given, "tags": []}),
        "traceloop.entity.output": json.dumps({"outputs": state, "kwargs": {"tags": []}}),
        f"{of_run}.ls_integration": integration,
        f"{of_run}.lc_agent_name": "clerk",
    }
    return span(1, f"{name}.workflow", held, scope="opentelemetry.instrumentation.langchain")


def under_langfuse(integration: str, name: str, given: Any, state: Any) -> Span:
    """The span of an agent's graph."""
    of_run = "langfuse.observation"
    held = {
        f"{of_run}.type": "agent",
        f"{of_run}.input": json.dumps(given),
        f"{of_run}.output": json.dumps(state),
        f"{of_run}.metadata.ls_integration": json.dumps(integration),
        f"{of_run}.metadata.lc_agent_name": '"clerk"',
    }
    return span(1, name, held)


def under_langsmith(integration: str, name: str, given: Any, state: Any) -> Span:
    """The span of an agent's graph."""
    held = {
        "langsmith.span.kind": "chain",
        "gen_ai.prompt": json.dumps({"input": given} if given is None else given),
        "gen_ai.completion": json.dumps(state),
        "langsmith.metadata.ls_integration": integration,
        "langsmith.metadata.lc_agent_name": "clerk",
    }
    return span(1, name, held)


REQUEST = {"name": "mail", "args": {"to": "ann@x.example"}, "id": "c1", "type": "tool_call"}
ASKS = {"content": "", "type": "ai", "tool_calls": [REQUEST]}
MALFORMED = {
    "content": "",
    "type": "ai",
    "tool_calls": [],
    "invalid_tool_calls": [{"name": "mail", "args": "{to", "id": "c1"}],
    "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "mail", "arguments": "{to"}}]},
}
ANSWER = {"content": "sent", "type": "tool", "tool_call_id": "c1"}
EVERYWHERE = pytest.mark.parametrize(
    "graph_of", [under_openinference, under_openllmetry, under_langfuse, under_langsmith]
)


@EVERYWHERE
@pytest.mark.parametrize(
    ("integration", "last", "paused"),
    [
        (OF_AGENT, [ASKS], ("mail",)),
        (OF_AGENT, [ASKS, ANSWER], ()),
        (OF_AGENT, [ASKS, ANSWER, {"content": "done", "type": "ai", "tool_calls": []}], ()),
        (OF_AGENT, [MALFORMED], ()),
        ("langgraph", [ASKS], ()),
    ],
)
def test_an_agent_whose_graph_stops_before_its_tools_pauses(
    graph_of: Callable[..., Span], integration: str, last: list[Any], paused: tuple[str, ...]
) -> None:
    """An agent executes each tool that its model asks for; a graph of the user's own may end with such an answer."""
    told = "llm.output_messages.0.message.tool_calls.0.tool_call."
    asked = {
        f"{told}id": "c1",
        f"{told}function.name": "mail",
        f"{told}function.arguments": json.dumps(REQUEST["args"]),
    }
    model = span(2, "chat", {"openinference.span.kind": "LLM", **asked}, parent=1, scope=SCOPE)
    graph = graph_of(
        integration, "clerk", {"messages": []}, {"messages": [{"content": "mail", "type": "human"}, *last]}
    )
    (run,) = read(graph._replace(end_ns=graph.start_ns + 10**9), model)

    assert paused == run.completeness.paused


def test_a_step_after_the_model_may_have_ended_the_run() -> None:
    """A guard may jump to the end of the graph: whether the run pauses is not known."""
    graph = under_openinference(OF_AGENT, "clerk", {"messages": []}, {"messages": [ASKS]})
    model = span(2, "chat", {"openinference.span.kind": "LLM"}, parent=1, scope=SCOPE)
    guard = chain(3, "guard.after_model", langgraph_node="guard.after_model")._replace(parent_span_id=graph.span_id)
    (run,) = read(graph._replace(end_ns=graph.start_ns + 10**9), model, guard)

    assert ((), True) == (run.completeness.paused, run.completeness.may_pause)


@EVERYWHERE
@pytest.mark.parametrize(
    ("integration", "name", "given", "resumed"),
    [
        (OF_AGENT, "clerk", None, True),
        (OF_AGENT, "clerk", {"messages": []}, False),
        ("langgraph", "clerk", None, False),
        (OF_AGENT, "clerkUpdateState", {"messages": [ANSWER]}, True),
    ],
)
def test_a_graph_that_was_given_nothing_goes_on(
    graph_of: Callable[..., Span], integration: str, name: str, given: Any, *, resumed: bool
) -> None:
    """A person may have changed its state before, in a trace of its own."""
    (run,) = read(graph_of(integration, name, given, {"messages": []}))

    assert resumed is run.completeness.begin_unseen
