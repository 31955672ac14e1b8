from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, exception, read, span, span_id
from spanscore.model import Span, StatusCode
from traces import lasting

SCOPE = "gcp.vertex.agent"
OPENINFERENCE = "openinference.instrumentation.google_adk"


def tool(number: int, name: str = "book", scope: str = SCOPE, **attributes: Any) -> Span:
    """A tool span as every version writes it, with content off."""
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.call.id": f"c{number}"}
    return span(number, f"execute_tool {name}", {**held, **attributes}, parent=1, scope=scope)


def content(arguments: Any, response: Any) -> dict[str, str]:
    """The two attributes that hold content in versions before 2, and in schema 1."""
    return {
        "gcp.vertex.agent.tool_call_args": json.dumps(arguments),
        "gcp.vertex.agent.tool_response": json.dumps(response),
    }


def test_with_its_own_attributes() -> None:
    """What is no object is wrapped as one; the agent and the session are told by other spans."""
    run = span(1, "agent_run [planner]", scope=SCOPE)
    session = {"gcp.vertex.agent.session_id": "s-1", "gcp.vertex.agent.llm_response": "{}"}

    (trajectory,) = read(
        run,
        span(2, "call_llm", session, parent=1, scope=SCOPE),
        tool(3, **content({"nights": 2}, {"result": [1, 2]})),
        tool(4, **content({}, {"id": "BK-1"})),
    )

    assert trajectory.calls == (
        call(3, "book", {"nights": 2}, result=[1, 2], call_id="c3", agent="planner"),
        call(4, "book", {}, result={"id": "BK-1"}, call_id="c4", agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_by_the_convention_with_content_on_and_off() -> None:
    """Off is the default."""
    on = {"gen_ai.tool.call.arguments": '{"nights": 2}', "gen_ai.tool.call.result": '{"result": "BK-1"}'}

    assert calls(tool(2, **on), tool(3)) == [
        call(2, "book", {"nights": 2}, result="BK-1", call_id="c2"),
        call(3, "book", call_id="c3"),
    ]


@pytest.mark.parametrize("other", [{"gcp.vertex.agent.llm_response": "{}"}, {"gen_ai.tool.type": "FunctionTool"}])
def test_content_off_may_look_like_empty_content(other: dict[str, str]) -> None:
    """Arguments and response are both the text of an empty object then."""
    assert calls(tool(2, **content({}, {}), **other)) == [call(2, "book", call_id="c2")]


def test_in_go_empty_content_is_empty() -> None:
    """A tool without arguments that returned nothing in particular; content cannot be switched off."""
    assert calls(tool(2, **content({}, {}))) == [call(2, "book", {}, result={}, call_id="c2")]


def test_in_go_a_placeholder_stands_for_no_response() -> None:
    """What returned nothing at all has a call id, and did not fail."""
    returned = {**content({}, None), "gcp.vertex.agent.tool_response": "<not specified>"}

    assert calls(tool(2, **returned)) == [call(2, "book", {}, call_id="c2")]


@pytest.mark.parametrize("attributes", [{}, content("N/A", {})])
def test_the_merged_span_of_parallel_calls_is_no_call(attributes: dict[str, str]) -> None:
    """One stands beside every batch, with an id of its own."""
    merged = tool(4, "(merged tools)", **attributes)._replace(name="execute_tool (merged)")

    assert [made.name for made in calls(tool(2), tool(3), merged)] == ["book", "book"]


def test_a_tool_that_raised_may_leave_nothing() -> None:
    """Python sets the status, JavaScript not even that; both leave a span without attributes."""
    python = span(
        2,
        "execute_tool book",
        scope=SCOPE,
        status_code=StatusCode.ERROR,
        events=(exception("ValueError", "full"),),
    )
    javascript = span(3, "execute_tool book", scope=SCOPE)

    assert calls(python, javascript) == [
        call(2, "book", error="ValueError: full"),
        call(3, "book", error="the tool raised"),
    ]


def test_no_call_id_where_the_tool_raised() -> None:
    """A placeholder stands in its place."""
    failed = tool(2, **{"gen_ai.tool.call.id": "<not specified>", "error.type": "ValueError"})

    assert calls(failed) == [call(2, "book", error="ValueError")]


def in_java(number: int, arguments: Any, response: Any, *, name: str = "book", call_id: str = "c1") -> Span:
    """A tool span of Java, whose id has a key of its own (v1.8.0)."""
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool_call.id": call_id}
    return span(number, f"execute_tool {name}", {**held, **content(arguments, response)}, scope=SCOPE)


def test_in_java() -> None:
    """A function that threw answers with a fixed text, and one that says it failed has not thrown."""
    raised = {"status": "error", "message": "An internal error occurred."}
    said = {"status": "error", "message": "An internal error occurred.", "retry": True}

    assert calls(
        in_java(2, {"nights": 2}, {"result": 1}),
        in_java(3, {}, raised, call_id="c2"),
        in_java(4, {}, said, call_id="c3"),
    ) == [
        call(2, "book", {"nights": 2}, result=1, call_id="c1"),
        call(3, "book", {}, result=raised, error="An internal error occurred.", call_id="c2"),
        call(4, "book", {}, result=said, call_id="c3"),
    ]


def test_a_tool_of_java_that_ended_the_run() -> None:
    """A tool that is no function may do so; its span has placeholders for the id and the answer."""
    failed = in_java(1, {"nights": 2}, {}, call_id="<not specified>")._replace(
        status_code=StatusCode.ERROR, events=(exception("java.io.IOException", "no line"),)
    )

    assert calls(failed) == [
        call(1, "book", {"nights": 2}, error="java.io.IOException: no line", error_type="java.io.IOException")
    ]


def test_a_tool_of_java_that_raised_in_its_first_versions() -> None:
    """The name of the span, which is all there is, has the tool in brackets (v1.0.0)."""
    assert calls(span(1, "execute_tool [book]", scope=SCOPE)) == [call(1, "book", error="the tool raised")]


def test_before_the_first_version() -> None:
    """A call is told by its span's name; the span of its answer is neither a call nor a model's (Java, v0.5.0)."""
    given = {"gen_ai.system": SCOPE, "gcp.vertex.agent.tool_call_args": '{"nights": 2}'}
    answer = {
        "gcp.vertex.agent.tool_response": '{"id": "event-1"}',
        "gcp.vertex.agent.llm_response": "{}",
        "gcp.vertex.agent.session_id": "s-1",
    }
    said = '{"content": {"parts": [{"functionCall": {"id": "c1", "name": "book", "args": {"nights": 2}}}]}}'

    assert calls(
        span(1, "agent_run [planner]", scope=SCOPE),
        span(2, "call_llm", {"gcp.vertex.agent.llm_response": said}, parent=1, scope=SCOPE),
        span(3, "tool_call [book]", given, parent=2, scope=SCOPE, events=(exception("IOException", "no line"),)),
        span(4, "tool_response [book]", answer, parent=2, scope=SCOPE),
    ) == [
        call(
            3,
            "book",
            {"nights": 2},
            error="IOException: no line",
            error_type="IOException",
            call_id="c1",
            agent="planner",
        )
    ]


def test_under_openinference() -> None:
    """Arguments and response stand in its attributes; it writes no arguments where there are none."""
    named = {"openinference.span.kind": "TOOL", "tool.name": "book"}
    answer = {"output.value": json.dumps({"id": "c2", "name": "book", "response": {"result": "BK-1"}})}
    given = {"input.value": '{"nights": 2}', "tool.parameters": '{"nights": 2}'}
    hidden = {"input.value": "__REDACTED__", "output.value": "__REDACTED__"}

    assert calls(
        tool(2, scope=OPENINFERENCE, **named, **given, **answer),
        tool(3, scope=OPENINFERENCE, **named, **answer),
        tool(4, scope=OPENINFERENCE, **named, **hidden),
        tool(5, scope=OPENINFERENCE, **named)._replace(dropped_attributes=1),
    ) == [
        call(2, "book", {"nights": 2}, result="BK-1", call_id="c2"),
        call(3, "book", {}, result="BK-1", call_id="c3"),
        call(4, "book", call_id="c4"),
        call(5, "book", call_id="c5"),
    ]


@pytest.mark.parametrize(
    ("asked", "answered"), [("functionCall", "functionResponse"), ("function_call", "function_response")]
)
def test_a_run_that_continues_has_the_calls_before_it(asked: str, answered: str) -> None:
    """JavaScript and Java write the names of the API, Python its own; instructions may have a user's role."""
    sent = [
        {"role": "user", "parts": [{"text": "refund"}]},
        {"role": "model", "parts": [{asked: {"id": "c1", "name": "look_up", "args": {"order": 1}}}]},
        {"role": "user", "parts": [{answered: {"id": "c1", "name": "look_up", "response": {"result": 40}}}]},
        {"role": "model", "parts": [{asked: {"id": "c2", "name": "refund", "args": {}}}]},
        {"role": "user", "parts": [{answered: {"id": "c2", "name": "refund", "response": {"result": "ok"}}}]},
    ]
    config = {"systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]}}
    request = {"contents": sent, "config": config}
    held = {"gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": "{}"}

    (trajectory,) = read(
        span(1, "invocation", scope=SCOPE),
        tool(2, "refund", **content({}, {"result": "ok"})),
        span(3, "call_llm", held, parent=1, scope=SCOPE),
    )

    assert [(made.name, made.result, made.restored) for made in trajectory.calls] == [
        ("look_up", 40, True),
        ("refund", "ok", False),
    ]


@pytest.mark.parametrize("returned", ["`look_up` tool", "tool `look_up`"])
@pytest.mark.parametrize("quoted", ["{}", "<<<BEGIN_QUOTED_AGENT_CONTENT>>>\n{}\n<<<END_QUOTED_AGENT_CONTENT>>>"])
@pytest.mark.parametrize("key", ["gcp.vertex.agent.llm_request", "gen_ai.input.messages"])
def test_a_run_that_continues_has_the_calls_of_the_agent_that_handed_over(quoted: str, key: str, returned: str) -> None:
    """An agent is sent them as texts in the user's role, which begin no turn. Python and JavaScript word them."""
    told = [
        "[desk] called tool `look_up` with parameters:\n" + quoted.replace("{}", "{'order': 1}"),
        f"[desk] {returned} returned result:\n" + quoted.replace("{}", "{'result': 40}"),
        "[desk] said:\n" + quoted.replace("{}", "I hand over."),
    ]
    name = "text" if key.endswith("llm_request") else "content"
    sent = [[{name: "refund"}], *([{name: "For context: another agent"}, {name: each}] for each in told)]
    messages = [{"role": "user", "parts": parts} for parts in sent]
    asked = {"type": "tool_call", "id": "c2", "name": "refund", "arguments": {}}
    answer = {"type": "tool_call_response", "id": "c2", "response": {"result": "ok"}}
    messages += [{"role": "model", "parts": [asked]}, {"role": "user", "parts": [answer]}]
    held = {key: json.dumps({"contents": messages} if name == "text" else messages)}

    (run,) = read(
        span(1, "invocation", scope=SCOPE),
        tool(2, "refund", **content({}, {"result": "ok"})),
        span(3, "call_llm", {**held, "gcp.vertex.agent.llm_response": "{}"}, parent=1, scope=SCOPE),
    )

    assert [(made.name, made.arguments, made.result, made.restored) for made in run.calls] == [
        ("look_up", {"order": 1}, 40, True),
        ("refund", {}, "ok", False),
    ]


@pytest.mark.parametrize("parts", [["For context: my order is 7. Refund it."], ["For context:", "my order is 7"]])
def test_a_user_may_begin_as_the_text_about_another_agent(parts: list[str]) -> None:
    """The text begins a turn: the calls before it are of an earlier run, which ended with a result."""
    asked = {"functionCall": {"id": "c1", "name": "look_up", "args": {}}}
    answer = {"functionResponse": {"id": "c1", "name": "look_up", "response": {"result": 40}}}
    contents = [
        {"role": "user", "parts": [{"text": "What did I order?"}]},
        {"role": "model", "parts": [asked]},
        {"role": "user", "parts": [answer]},
        {"role": "user", "parts": [{"text": each} for each in parts]},
    ]
    held = {"gcp.vertex.agent.llm_request": json.dumps({"contents": contents}), "gcp.vertex.agent.llm_response": "{}"}
    root = span(1, "invocation", scope=SCOPE)
    called = tool(3, "refund", **content({}, {"result": "ok"}))

    (run,) = read(root, span(2, "call_llm", held, parent=1, scope=SCOPE), called)

    assert ([made.name for made in run.calls], run.uncertain) == (["refund"], ())


@pytest.mark.parametrize("answered", [True, False])
def test_under_openinference_a_run_has_gone_on_after_an_agent_that_waited(*, answered: bool) -> None:
    """The span of a run begins before its calls: the messages of its last request show that it was asked again."""
    waits = {"error": "This tool call requires confirmation, please approve or reject."}
    sent = "llm.input_messages"
    held = {"openinference.span.kind": "LLM", f"{sent}.0.message.role": "user", f"{sent}.0.message.content": "refund"}
    held |= {f"{sent}.1.message.role": "model", f"{sent}.1.message.tool_calls.0.tool_call.id": "c3"}
    held |= {f"{sent}.1.message.tool_calls.0.tool_call.function.name": "desk"}
    if answered:
        held |= {f"{sent}.2.message.role": "tool", f"{sent}.2.message.tool_call_id": "c3"}
        held |= {f"{sent}.2.message.content": "It cannot wait."}
    (run,) = read(
        lasting(span(1, "agent_run [main]", {"openinference.span.kind": "AGENT"}, scope=OPENINFERENCE), 90),
        lasting(span(2, "invoke_agent main", held, parent=1, scope=SCOPE), 80),
        lasting(tool(3, "desk", **{"gen_ai.tool.type": "AgentTool"})._replace(parent_span_id=span_id(2)), 40),
        span(4, "agent_run [desk]", {"openinference.span.kind": "AGENT"}, parent=3, scope=OPENINFERENCE),
        tool(5, "refund", **content({}, waits))._replace(parent_span_id=span_id(4)),
    )

    assert ("refund" not in run.completeness.paused) == answered


@pytest.mark.parametrize(
    ("failure", "expected"), [(None, [(6, False), (8, False)]), ("TOOL_ERROR", [(6, True), (8, False)])]
)
def test_a_call_with_which_a_later_run_begins_once_more_is_one_call(
    failure: str | None, expected: list[tuple[int, bool]]
) -> None:
    """Without content no span says that it has waited, or was refused. A model that was asked may ask for it anew."""

    def below(number: int, parent: int, name: str, **attributes: Any) -> Span:
        return span(number, name, attributes, parent=parent, scope=SCOPE)

    def booked(number: int, parent: int, **attributes: Any) -> Span:
        held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.id": "c1"}
        return below(number, parent, "execute_tool book", **held, **attributes)

    run = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    asked = {"gen_ai.operation.name": "generate_content"}
    failed = {} if failure is None else {"error.type": failure}
    repeated = booked(6, 5, **failed)
    (found,) = read(
        span(1, "request"),
        below(2, 1, "invoke_agent planner", **run),
        below(3, 2, "generate_content m", **asked),
        booked(4, 2),
        below(5, 1, "invoke_agent planner", **run),
        repeated if failure is None else repeated._replace(status_code=StatusCode.ERROR),
        below(7, 5, "generate_content m", **asked),
        booked(8, 5),
        below(9, 5, "generate_content m", **asked),
    )

    assert expected == [(int.from_bytes(each.span_id or b""), each.may_be_refused) for each in found.calls]


def test_the_span_of_a_run_has_results_of_its_own_calls() -> None:
    """OpenInference writes all requests of a run into one span; calls of earlier turns are in it as well."""
    sent = ["user", "assistant c1", "tool c1", "user", "assistant c2", "tool c2"]
    held: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant"}
    for place, message in enumerate(sent):
        role, _, call_id = message.partition(" ")
        key = f"llm.input_messages.{place}.message"
        held[f"{key}.role"] = role
        if role == "assistant":
            held[f"{key}.tool_calls.0.tool_call.id"] = call_id
            held[f"{key}.tool_calls.0.tool_call.function.name"] = "book"
        else:
            held |= {f"{key}.content": f"said {call_id}"} | ({f"{key}.tool_call_id": call_id} if call_id else {})
    asked = "llm.output_messages.0.message.tool_calls.0.tool_call"
    held |= {f"{asked}.id": "c2", f"{asked}.function.name": "book"}
    (run,) = read(
        span(1, "agent_run [desk]", {"openinference.span.kind": "AGENT"}, scope=OPENINFERENCE),
        span(2, "invoke_agent desk", held, parent=1, scope="gcp.vertex.agent"),
    )

    assert [(each.call_id, each.result) for each in run.calls if not each.restored] == [("c2", "said c2")]
