from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialects.spans import built_in_reader, call, calls, event, exception, read, span
from spanscore import evaluator
from spanscore.config import loads
from spanscore.config.parts import root_condition
from spanscore.model import NOT_RECORDED, Score, Skipped, Span, StatusCode, Trajectory
from spanscore.recordings.files import Recording

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book"}
RUN = span(1, "invoke_agent planner", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"})


def test_a_call_by_the_convention() -> None:
    """JSON text in attributes, as agent-framework, semantic-kernel and others write it."""
    attributes = {
        **TOOL,
        "gen_ai.tool.call.arguments": '{"nights": 2, "rooms": [{"beds": 1.5}]}',
        "gen_ai.tool.call.result": '{"id": "BK-1"}',
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": "s-1",
    }

    (trajectory,) = read(RUN, span(2, "execute_tool book", attributes, parent=1))

    assert trajectory.calls == (
        call(
            2,
            "book",
            {"nights": 2, "rooms": [{"beds": 1.5}]},
            result={"id": "BK-1"},
            call_id="c1",
            agent="planner",
        ),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_the_creation_of_an_agent_is_no_run() -> None:
    """OpenLLMetry writes a trace of one span whenever LangChain creates an agent."""
    creation = {"gen_ai.operation.name": "create_agent", "gen_ai.agent.name": "assistant"}
    made = span(1, "create_agent assistant", creation)

    (alone,) = read(made)
    (beside,) = read(RUN, span(2, "create_agent assistant", creation, parent=1))

    assert not alone.recognised
    assert (True, "planner") == (beside.recognised, beside.agent)


def test_structured_attributes_need_no_parsing() -> None:
    """OTLP carries maps and lists; what is in them stays as it is, numbers in text too."""
    attributes = {
        **TOOL,
        "gen_ai.tool.call.arguments": {"nights": 2, "code": "007", "tags": ["a", True, None]},
        "gen_ai.tool.call.result": [{"text": '{"a": 1}'}],
    }

    assert calls(span(1, "execute_tool book", attributes)) == [
        call(1, "book", {"nights": 2, "code": "007", "tags": ["a", True, None]}, result=[{"text": '{"a": 1}'}])
    ]


def test_empty_is_not_missing() -> None:
    """A call without arguments has none; a call whose arguments are not recorded may have any."""
    empty = {**TOOL, "gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "null"}

    assert calls(span(1, "execute_tool book", empty), span(2, "execute_tool book", TOOL)) == [
        call(1, "book", {}, result=None),
        call(2, "book"),
    ]


def test_a_tool_span_without_attributes_is_named_by_its_name() -> None:
    """Attributes that an instrumentation sets at the end never come when the tool raises."""
    failed = span(1, "execute_tool book", status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),))

    assert calls(failed) == [call(1, "book", error="ValueError: full")]


def test_other_spans_with_a_tool_s_name_are_no_calls() -> None:
    """Some put the name and arguments of what a model asked for on the model's span."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.tool.name": "book", "gen_ai.tool.call.arguments": "{}"}

    assert calls(RUN, span(2, "chat", chat, parent=1)) == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"status_code": StatusCode.ERROR, "status_message": "no rooms\nTraceback"}, "no rooms"),
        ({"status_code": StatusCode.ERROR}, "error"),
        ({"status_code": StatusCode.OK, "events": (exception("ValueError", "full"),)}, "ValueError: full"),
        ({"events": (event("exception", {"exception.message": "full"}),)}, "full"),
        ({"events": (exception("ValueError", "full"), exception("ToolError", "book failed"))}, "ValueError: full"),
        ({"events": (event("exception"),)}, "exception"),
        ({"status_code": StatusCode.OK}, None),
        ({}, None),
    ],
)
def test_failures(fields: dict[str, Any], error: str | None) -> None:
    """By status, exception event or `error.type`; in one line, the cause before what wraps it."""
    assert calls(span(1, "execute_tool book", TOOL, **fields)) == [call(1, "book", error=error)]


def failed(message: str) -> dict[str, Any]:
    """Return the status of a span that failed."""
    return {"status_code": StatusCode.ERROR, "status_message": message}


@pytest.mark.parametrize(
    ("kind", "fields", "error", "error_type"),
    [
        ("TimeoutError", failed("issue_refund: no answer"), "TimeoutError: issue_refund: no answer", "TimeoutError"),
        ("TimeoutError", failed(""), "TimeoutError", "TimeoutError"),
        ("TimeoutError", failed("TimeoutError: no answer"), "TimeoutError: no answer", "TimeoutError"),
        ("TimeoutError", failed("TimeoutError('no answer')"), "TimeoutError('no answer')", "TimeoutError"),
        ("Time", failed("Timed out"), "Time: Timed out", "Time"),
        ("Error", failed("Errors"), "Error: Errors", "Error"),
        ("HTTPError", {"events": (exception("requests.HTTPError", "404"),)}, "HTTPError: 404", "HTTPError"),
        ("ToolError", {"events": (exception("ValueError", "full"),)}, "ToolError: ValueError: full", "ToolError"),
        ("ToolError", {"events": (event("exception"),)}, "ToolError", "ToolError"),
        ("unknown", {"events": (exception("ValueError", "full"),)}, "ValueError: full", "ValueError"),
        ("_OTHER", failed("issue_refund: full"), "issue_refund: full", None),
        ("_OTHER", {}, "_OTHER", None),
        (None, {"events": (exception("ValueError", "x"), exception("ToolError", ""))}, "ValueError: x", "ValueError"),
        (None, {"events": (event("exception", {"exception.message": "a: b"}),)}, "a: b", None),
        (None, failed("issue_refund: no answer"), "issue_refund: no answer", None),
        (None, {}, None, None),
    ],
)
def test_the_type_of_an_error(
    kind: str | None, fields: dict[str, Any], error: str | None, error_type: str | None
) -> None:
    """An error begins with the type that the span, or else its first exception, names; a message names none."""
    attributes = TOOL if kind is None else {**TOOL, "error.type": kind}

    (made,) = calls(span(1, "execute_tool book", attributes, **fields))

    assert (error, error_type) == (made.error, made.error_type)


def test_an_error_type_alone_is_a_failure() -> None:
    """The convention asks for it on failed operations."""
    assert calls(span(1, "execute_tool book", {**TOOL, "error.type": "Timeout"})) == [call(1, "book", error="Timeout")]


def test_a_placeholder_is_no_call_id() -> None:
    """Some write that there was none."""
    assert calls(span(1, "execute_tool book", {**TOOL, "gen_ai.tool.call.id": "<not specified>"})) == [call(1, "book")]


def part(name: str, arguments: Any, call_id: str) -> dict[str, Any]:
    """A request in the convention's messages."""
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


@pytest.mark.parametrize("arguments", [{"nights": 2}, '{"nights": 2}'])
@pytest.mark.parametrize("encode", [json.dumps, lambda messages: messages])
def test_requests_in_attributes(arguments: Any, encode: Any) -> None:
    """Messages and arguments are JSON text or structured."""
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "ok"}, part("book", arguments, "c1")]}]
    told = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": '{"id": "BK-1"}'}]}]
    asking = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": encode(said)}
    hearing = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": encode([*said, *told])}

    assert calls(RUN, span(2, "chat", asking, parent=1), span(4, "chat", hearing, parent=1)) == [
        call(None, "book", {"nights": 2}, at_ms=3, call_id="c1", result={"id": "BK-1"}, agent="planner")
    ]


def openai_request(name: str, arguments: str) -> dict[str, Any]:
    """A request as OpenAI's messages have it."""
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    "choice",
    [
        {"index": 0, "message": json.dumps({"tool_calls": [openai_request("book", '{"nights": 2}')]})},
        {"index": 0, "message": {"tool_calls": [openai_request("book", '{"nights": 2}')]}},
        {"gen_ai.event.content": json.dumps({"message": {"tool_calls": [openai_request("book", '{"nights": 2}')]}})},
    ],
)
def test_requests_in_one_event_a_message(choice: dict[str, Any]) -> None:
    """The convention's former way, and Azure's."""
    answer = event("gen_ai.tool.message", {"id": "c1", "content": "BK-1"})
    asking = span(2, "chat", {"gen_ai.operation.name": "chat"}, parent=1, events=(event("gen_ai.choice", choice),))
    hearing = span(4, "chat", {"gen_ai.operation.name": "chat"}, parent=1, events=(answer,))

    assert calls(RUN, asking, hearing) == [
        call(None, "book", {"nights": 2}, at_ms=3, call_id="c1", result="BK-1", agent="planner")
    ]


def test_content_in_the_event_of_the_operation() -> None:
    """The convention's newest way; tool spans have one, too."""
    said = {"gen_ai.output.messages": [{"role": "assistant", "parts": [part("book", {"nights": 2}, "c1")]}]}
    details = "gen_ai.client.inference.operation.details"
    asking = span(2, "chat", {"gen_ai.operation.name": "chat"}, parent=1, events=(event(details, said),))
    content = {"gen_ai.tool.call.arguments": '{"nights": 3}', "gen_ai.tool.call.result": "BK-1"}
    made = span(3, "execute_tool book", TOOL, parent=1, events=(event(details, content),))

    assert calls(RUN, asking) == [
        call(None, "book", {"nights": 2}, at_ms=3, call_id="c1", agent="planner"),
    ]
    assert calls(RUN, made) == [call(3, "book", {"nights": 3}, result="BK-1", agent="planner")]


def test_requests_of_the_history_are_not_the_model_s() -> None:
    """Every later request repeats the messages before it."""
    past = [{"role": "assistant", "parts": [part("book", {"nights": 2}, "c0")]}]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(past)}

    assert calls(RUN, span(2, "chat", chat, parent=1)) == []


WORKFLOW = span(
    1, "invoke_workflow triage", {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "triage"}
)


def test_calls_that_the_provider_executes() -> None:
    """The answer that asks for them holds their results, or only says that they were made. An approval is no call."""

    def asked(name: str, given: Any = None) -> dict[str, Any]:
        held = {} if given is None else {"server_tool_call": given}
        return {"type": "server_tool_call", "id": f"s-{name}", "name": name, **held}

    found = {"type": "mcp", "output": [{"order": "A-1"}]}
    parts = [
        asked("web_search", {"type": "web_search", "query": "Bern"}),
        asked("find_order", {"type": "mcp", "server_name": "shop", "arguments": {"name": "Ada"}}),
        {"type": "server_tool_call_response", "id": "s-find_order", "server_tool_call_response": found},
        asked("image_generation"),
        asked("refund", {"type": "mcp_approval_request", "arguments": {}}),
        {"type": "text", "content": "Done."},
    ]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([{"parts": parts}])}
    spans = [RUN, span(2, "execute_tool book", TOOL, parent=1), span(4, "chat", chat, parent=1)]

    assert [(each.name, each.arguments, each.result) for each in calls(*spans)[1:]] == [
        ("web_search", {"query": "Bern"}, None),
        ("find_order", {"name": "Ada"}, [{"order": "A-1"}]),
        ("image_generation", NOT_RECORDED, None),
    ]


def test_a_workflow_is_no_call() -> None:
    """It is a run, whose name stands for an agent's where none is named."""
    (trajectory,) = read(WORKFLOW, span(2, "execute_tool book", TOOL, parent=1))

    assert ["book"] == [made.name for made in trajectory.calls]
    assert ("triage", None) == (trajectory.agent, trajectory.invocations)


@pytest.mark.parametrize("operation", ["invoke_agent", "chat"])
def test_an_agent_in_a_workflow_is_the_agent(operation: str) -> None:
    """Whether its run has a span, or only its model's span names it."""
    named = {"gen_ai.operation.name": operation, "gen_ai.agent.name": "planner"}
    (trajectory,) = read(WORKFLOW, span(2, operation, named, parent=1), span(3, "execute_tool book", TOOL, parent=2))

    assert "planner" == trajectory.agent


def test_a_workflow_completes_its_trace() -> None:
    """With `traces.root: agent`, as an agent does."""
    config = loads("traces: {root: agent}", "c.yaml", Path())
    is_root = root_condition(config, built_in_reader())

    assert is_root(span(2, "invoke_workflow", dict(WORKFLOW.attributes), parent=1))
    assert not is_root(span(2, "execute_tool book", TOOL, parent=1))


def test_the_type_of_a_tool() -> None:
    """It goes into the metric of durations, and is no part of what a call is compared by."""
    (made,) = calls(span(1, "execute_tool book", {**TOOL, "gen_ai.tool.type": "datastore"}))

    assert "datastore" == made.tool_type
    assert call(1, "book") == made


@pytest.mark.parametrize(
    "key",
    ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"],
)
def test_content_elsewhere(key: str) -> None:
    """Where content is uploaded and the span only refers to it, that is the reason to skip."""
    chat = span(1, "chat", {"gen_ai.operation.name": "chat", f"{key}_ref": "gs://bucket/1.jsonl"})
    (referring,) = read(chat, span(2, "execute_tool book", TOOL))
    (silent,) = read(span(2, "execute_tool book", TOOL))
    wanted = evaluator("tool_call_args", {"tool_calls": [{"name": "book", "args": {"nights": 2}}]})
    lacking = "arguments of 1 call of 'book'"

    expected = f"content elsewhere: {lacking} are kept outside the telemetry, which only refers to them"
    assert Skipped(expected) == wanted.evaluate(referring)
    assert Skipped(f"{lacking} were not recorded") == wanted.evaluate(silent)


def test_content_that_is_here_as_well() -> None:
    """What is recorded is compared, whatever else is kept elsewhere."""
    attributes = {**TOOL, "gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.arguments_ref": "gs://bucket/1.jsonl"}
    (trajectory,) = read(span(2, "execute_tool book", attributes))
    wanted = evaluator("tool_call_args", {"tool_calls": [{"name": "book", "args": {}}]})

    assert isinstance(wanted.evaluate(trajectory), Score)


def recorded(name: str) -> dict[str, list[Trajectory]]:
    """Return the runs of a recording by the name of their root span."""
    path = Path(__file__).parents[1] / "corpus" / f"{name}.jsonl.gz"
    by_trace: dict[bytes, list[Span]] = {}
    for batch in Recording([path]).read():
        for each in batch.spans:
            by_trace.setdefault(each.trace_id, []).append(each)
    found: dict[str, list[Trajectory]] = {}
    for spans in by_trace.values():
        for trajectory in read(*spans):
            found.setdefault(str(trajectory.attributes["span.name"]), []).append(trajectory)
    return found


@pytest.mark.parametrize("name", ["langchain-genai", "langchain-genai-upload"])
def test_a_recorded_workflow(name: str) -> None:
    """LangGraph under OpenTelemetry's own instrumentation: agents one after the other, as steps of a graph."""
    (workflow,) = recorded(name)["invoke_workflow trip_planning"]

    assert ["get_weather", "lookup_policy", "book_hotel"] == [made.name for made in workflow.calls]
    assert ("scout", (("scout", 2), ("booker", 1))) == (workflow.agent, workflow.invocations)
    assert {"function"} == {made.tool_type for made in workflow.calls}


def test_recorded_uploads() -> None:
    """The upload hook of opentelemetry-util-genai leaves addresses in place of messages."""
    runs = [run for runs in recorded("langchain-genai-upload").values() for run in runs]
    here = [run for runs in recorded("langchain-genai").values() for run in runs]

    assert 4 == len(runs) == len(here)
    assert {True} == {run.completeness.content_elsewhere for run in runs}
    assert {False} == {run.completeness.content_elsewhere for run in here}


def test_a_tool_and_a_call_id_are_a_call() -> None:
    """Also where the operation is not named; a request to a model may name its tool as well."""
    held = {"gen_ai.tool.name": "book", "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": "{}"}

    assert calls(span(1, "tool.book", held)) == [call(1, "book", {}, call_id="c1")]
    assert calls(span(1, "chat", {**held, "gen_ai.operation.name": "chat"})) == []
    assert calls(span(1, "tool", {"gen_ai.tool.name": "book"}), RUN._replace(span_id=bytes(7) + b"\x02")) == []


CHAT = {"gen_ai.operation.name": "chat"}


def told_in(spanned: Span) -> tuple[tuple[str, ...], list[str], int]:
    """Return the user's words, the calls that were asked for, and the number of texts of a user in the history."""
    reader = built_in_reader()
    reading, model_call = reader.read_model(spanned), reader.read_model_call(spanned)
    assert model_call is not None
    user = sum(message.is_user_text for message in reading.history)
    return model_call.user_text, [request.name for request in reading.requests], user


def test_messages_of_several_events_are_one_list() -> None:
    """Each event may hold some of them; an attribute of the span itself wins."""
    said = [{"role": "user", "parts": [{"type": "text", "content": each}]} for each in ("Hello.", "Well?")]
    events = tuple(event("details", {"gen_ai.input.messages": each}) for each in (said[:1], json.dumps(said[1:])))
    own = {**CHAT, "gen_ai.input.messages": json.dumps(said[1:])}

    assert told_in(span(1, "chat", CHAT, events=events))[0] == ("Hello.", "Well?")
    assert told_in(span(1, "chat", own, events=events))[0] == ("Well?",)


@pytest.mark.parametrize("words", ["42", "null", '{"city": "Bern"}', '{"parts": 1}'])
def test_what_a_user_says_may_look_like_json(words: str) -> None:
    """A text that looks like JSON is a text all the same, and begins a turn."""
    assert told_in(span(1, "chat", CHAT, events=(event("gen_ai.user.message", {"content": words}),))) == (
        (words,),
        [],
        1,
    )


def test_messages_that_google_s_frameworks_wrap() -> None:
    """With the role in the content, whatever the event is called; each call is read once, though none has an id."""
    parts = [{"functionCall": {"name": "book", "args": {"nights": 2}}}]
    sent = [{"role": "user", "parts": [{"text": "Book it."}]}, {"role": "model", "parts": parts}]
    choice = event("gen_ai.choice", {"content": {"role": "model", "parts": parts}})
    events = (*(event("gen_ai.user.message", {"content": each}) for each in sent), choice)

    assert told_in(span(1, "chat", CHAT, events=events)) == (("Book it.",), ["book"], 1)


def test_a_message_that_is_a_text_is_read_once() -> None:
    """Azure's SDKs have an attribute for it; its calls may have no ids."""
    choice = {"message": {"tool_calls": [{"type": "function", "function": {"name": "book", "arguments": "{}"}}]}}
    held = event("gen_ai.choice", {"gen_ai.event.content": json.dumps(choice)})

    assert told_in(span(1, "chat", CHAT, events=(held,)))[1] == ["book"]


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ("content='BK-1' name='book' tool_call_id='c1'", None),
        ('{"name": "book", "tool_call_id": "c1", "content": "BK-1"}', None),
        ("content='BK-1' name='book' tool_call_id='c1' status='error'", "BK-1"),
    ],
)
def test_a_result_that_is_the_message_to_the_model(told: str, error: str | None) -> None:
    """Instrumentations of LangChain write it, printed or as JSON: it has the call's id."""
    known = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.result": told}
    assert calls(span(1, "execute_tool book", known)) == [
        call(1, "book", result="BK-1", error=error, call_id="c1"),
    ]


@pytest.mark.parametrize(
    "told",
    [
        {"content": "x", "tool_call_id": "c1", "total": 5},
        {"data": {"content": "x", "tool_call_id": "c1"}, "next": "p2"},
        {"output": {"content": None, "tool_call_id": "c1"}},
        {"content": None, "tool_call_id": "c1"},
        "content=summary of tool_call_id handling",
        {"output": {"type": "tool", "content": "screw"}, "note": "no tool_call_id"},
        {"content": "x", "tool_call_id": "other"},
        "content='x' tool_call_id='other'",
    ],
)
def test_a_tool_s_own_result_that_looks_like_a_message(told: Any) -> None:
    """A message has no other fields and the id of the call: any other result stays as it is."""
    known = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.id": "c1"}
    result = told if isinstance(told, str) else json.dumps(told)
    made = span(1, "execute_tool book", {**known, "gen_ai.tool.call.result": result})
    assert calls(made) == [call(1, "book", result=told, call_id="c1")]


@pytest.mark.parametrize(
    "told",
    [
        "An error occurred while running the tool. Please try again.",
        "An error occurred while running the tool. Please try again. Error: full",
        "An error occurred when calling tool `book`:\nValueError: full",
    ],
)
def test_a_framework_s_text_of_a_tool_that_raised(told: str) -> None:
    """The OpenAI Agents SDK and Qwen-Agent hand it to the model; some instrumentations write no other sign."""
    known = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.result": told}
    (made,) = calls(span(1, "execute_tool book", known))
    assert made.error == told.partition("\n")[0]


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ("An error occurred while running the tool. Please try again. Error: full", True),
        ("An error occurred while running the tool. Please try again. It was in the log.", False),
        ("An error occurred when calling tool `book`", False),
    ],
)
def test_a_failure_is_one_in_a_span_and_in_messages(told: str, *, error: bool) -> None:
    """A text of a tool's own that begins in the same way is a result."""
    asked = {"type": "tool_call", "id": "c1", "name": "book", "arguments": {}}
    answer = {"type": "tool_call_response", "id": "c1", "response": told}
    output = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asked]}])}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.result": told}
    turns = (
        span(2, "chat", {**CHAT, **output}, parent=1),
        span(4, "chat", {**CHAT, "gen_ai.input.messages": json.dumps([{"role": "tool", "parts": [answer]}])}, parent=1),
    )
    run = span(1, "invoke_agent shop", {"gen_ai.operation.name": "invoke_agent"})
    for spans in (turns, (*turns, span(3, "execute_tool book", tool, parent=1))):
        (made,) = calls(run, *spans)
        assert (made.error is not None) is error
