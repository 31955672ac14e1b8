"""The messages that a model was sent, one by one, as frameworks write them down."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import pytest

from dialects.spans import built_in_reader, event, span
from spanscore.contracts import SentMessage
from spanscore.dialects._content import decoded
from spanscore.dialects._literals import MAX_PARSED_CHARS
from spanscore.dialects._model_messages import answers_in_messages
from spanscore.dialects._sent_messages import answers_in
from spanscore.model import JSON, Span

CALL: Final = {"name": "refund", "id": "c1", "arguments": {"amount": 40}}


def lc(kind: str, **fields: Any) -> dict[str, Any]:
    """A message as LangChain serialises it."""
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": fields}


def flat(**messages: str) -> dict[str, str]:
    """Messages in the attributes of OpenInference."""
    return {f"llm.input_messages.{key.replace('__', '.')}": value for key, value in messages.items()}


def events(*messages: tuple[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Messages in span events."""
    return [(f"gen_ai.{role}.message", {"content": json.dumps(content)}) for role, content in messages]


GEN_AI: Final = [
    {"role": "user", "parts": [{"type": "text", "content": "refund it"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", **CALL}]},
    {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": "ok"}]},
]
PRINTED: Final = [
    GEN_AI[0],
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "name": "'refund'", "id": "c1", "arguments": "'{\"amount\": 40}'"}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "ok"}]},
]
RESPONSES: Final = [
    {"role": "user", "content": "refund it"},
    {"type": "function_call", "name": "refund", "call_id": "c1", "arguments": '{"amount": 40}'},
    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
]
CHAT: Final = [
    {"role": "user", "content": "refund it"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"amount": 40}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
]
VERCEL: Final = [
    {"role": "user", "content": [{"type": "text", "text": "refund it"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "refund", "input": {"amount": 40}}],
    },
    {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "refund", "output": "ok"}],
    },
]
LANGCHAIN: Final = [
    lc("HumanMessage", content="refund it", type="human"),
    lc(
        "AIMessage",
        content="",
        tool_calls=[{"name": "refund", "args": {"amount": 40}, "id": "c1", "type": "tool_call"}],
    ),
    lc("ToolMessage", content="ok", type="tool", tool_call_id="c1"),
]
HAYSTACK: Final = [
    {"role": "user", "content": [{"text": "refund it"}]},
    {
        "role": "assistant",
        "content": [{"tool_call": {"tool_name": "refund", "arguments": {"amount": 40}, "id": "c1"}}],
    },
    {"role": "tool", "content": [{"tool_call_result": {"result": "ok", "origin": {"id": "c1"}}}]},
]
GENKIT: Final = [
    {"role": "user", "content": [{"text": "refund it"}]},
    {"role": "model", "content": [{"toolRequest": {"name": "refund", "ref": "c1", "input": {"amount": 40}}}]},
    {"role": "tool", "content": [{"toolResponse": {"name": "refund", "ref": "c1", "output": "ok"}}]},
]
STRANDS: Final = events(
    ("user", [{"text": "refund it"}]),
    ("assistant", [{"toolUse": {"toolUseId": "c1", "name": "refund", "input": {"amount": 40}}}]),
    ("tool", [{"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"text": "ok"}]}}]),
)
PYDANTIC_AI: Final = [
    {"event.name": "gen_ai.user.message", "role": "user", "content": "refund it"},
    {"event.name": "gen_ai.assistant.message", **CHAT[1]},
    {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": "ok"},
    {"event.name": "gen_ai.choice", "message": {"role": "assistant", "tool_calls": [{"id": "c2"}]}},
]
FLAT: Final = {
    "0__message__role": "user",
    "0__message__content": "refund it",
    "1__message__role": "assistant",
    "1__message__tool_calls__0__tool_call__id": "c1",
    "1__message__tool_calls__0__tool_call__function__name": "refund",
    "1__message__tool_calls__0__tool_call__function__arguments": '{"amount": 40}',
    "2__message__role": "tool",
    "2__message__tool_call_id": "c1",
    "2__message__content": "ok",
}
WITHOUT_CALLS: Final = {key: value for key, value in FLAT.items() if "tool_call" not in key}
CHAT_SPAN: Final = {"gen_ai.operation.name": "chat"}
LANGGRAPH: Final = "openinference.instrumentation.langchain"
CLAUDE_CODE: Final = "com.anthropic.claude_code.tracing"
OF_LLM: Final = {"openinference.span.kind": "LLM"}


def written(attributes: dict[str, Any], told: Sequence[tuple[str, dict[str, Any]]] = (), scope: str = "") -> Span:
    """A span with these attributes, as JSON, and events."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in attributes.items()}
    return span(1, "chat", texts, scope=scope, events=tuple(event(*each) for each in told))


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(written({**CHAT_SPAN, "gen_ai.input.messages": GEN_AI}), id="gen_ai"),
        pytest.param(written({**CHAT_SPAN, "gen_ai.input.messages": PRINTED, "crewai.event_name": "x"}), id="crewai"),
        pytest.param(written(CHAT_SPAN, STRANDS, "strands.telemetry.tracer"), id="strands"),
        pytest.param(written({"events": PYDANTIC_AI}, scope="pydantic-ai"), id="pydantic_ai 1"),
        pytest.param(written({**OF_LLM, **flat(**FLAT)}), id="openinference"),
        pytest.param(
            written({**OF_LLM, **flat(**WITHOUT_CALLS), "input.value": {"messages": [LANGCHAIN]}}), id="langchain.js"
        ),
        pytest.param(written({**OF_LLM, **flat(**WITHOUT_CALLS), "input.value": RESPONSES}), id="responses"),
        pytest.param(written({**OF_LLM, **flat(**WITHOUT_CALLS), "input.value": {"messages": CHAT}}), id="chat"),
        pytest.param(
            written({"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": VERCEL}), id="vercel"
        ),
        pytest.param(
            written(
                {"haystack.component.type": "OpenAIChatGenerator", "haystack.component.input": {"messages": HAYSTACK}}
            ),
            id="haystack",
        ),
        pytest.param(written({"genkit:metadata:subtype": "model", "genkit:input": {"messages": GENKIT}}), id="genkit"),
    ],
)
def test_every_form_is_read_alike(request_: Span) -> None:
    """A text of the user, a call, and its result."""
    user, asking, told = built_in_reader().read_model(request_).history

    assert SentMessage(is_user_text=True) == user
    ((call,),) = (asking.requests,)
    assert ("refund", "c1", {"amount": 40}) == (call.name, call.call_id, call.arguments)
    assert ((), False) == (asking.answers, asking.is_user_text)
    (answer,) = told.answers
    assert ("c1", "ok", ()) == (answer.call_id, answer.result, told.requests)
    assert not told.is_user_text


def test_a_text_without_a_call_is_not_read() -> None:
    """It holds a message, of which nothing is known."""
    (only,) = built_in_reader().read_model(written({**CHAT_SPAN, "gen_ai.input.messages": GEN_AI[:1]})).history

    assert SentMessage() == only


LISTED: Final = [
    GEN_AI,
    [*GEN_AI, *PRINTED, GEN_AI[2] | {"parts": [{"type": "tool_call_response", "id": "c1", "result": "again"}]}],
    [{"messages": CHAT}, [RESPONSES], "tool", None, 1],
    [*CHAT, {"role": "tool", "tool_call_id": "c2", "content": "x" * 5_000, "status": "error"}],
    [*CHAT, {"role": "tool", "tool_call_id": "c2", "content": {"nested": [{}] * 20_000}}, *RESPONSES],
    [{"type": "mcp_approval_response", "approval_request_id": "c3", "approve": False, "reason": "no"}],
    {"messages": CHAT},
    [],
]


@pytest.mark.parametrize("messages", LISTED)
@pytest.mark.parametrize(
    "encode", [json.dumps, partial(json.dumps, indent=2, ensure_ascii=False), lambda value: f"{json.dumps(value)} x"]
)
def test_answers_are_the_same_message_by_message(messages: JSON, encode: Callable[[JSON], str]) -> None:
    """Also of those that come again, with the same id, are too many or have another form."""
    whole = answers_in_messages(decoded(encode(messages)))
    for _ in range(2):  # the second one is remembered
        assert whole == (answers_in(encode(messages)) or whole)


@pytest.mark.parametrize(
    ("text", "is_listed"),
    [
        (json.dumps(CHAT), True),
        (f" {json.dumps(CHAT)}\n", True),
        (json.dumps(CHAT)[:-1], False),
        (json.dumps([*CHAT, "\ud800"]), False),
        (f"[1e999, {json.dumps(CHAT)[1:]}", False),
        (str(CHAT), False),
        (json.dumps(CHAT[0]), False),
        (json.dumps([*CHAT, "x" * MAX_PARSED_CHARS]), False),
        (None, False),
    ],
)
def test_only_a_list_in_json_is_read_message_by_message(text: str | None, *, is_listed: bool) -> None:
    """Any other text is parsed as a whole, in another way."""
    assert is_listed is (answers_in(text) is not None)


def test_redacted_messages_are_none() -> None:
    """Their span may be around one that has them."""
    assert not built_in_reader().read_model(written({**CHAT_SPAN, "gen_ai.input.messages": "[REDACTED]"})).history


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (written({"input.value": {"goto": [], "resume": "yes", "update": None, "graph": None}}, scope=LANGGRAPH), True),
        (written({"input.value": {"goto": [], "resume": None, "update": None}}, scope=LANGGRAPH), False),
        (written({"input.value": {"question": 'how do I "resume" and "goto" or "update"?'}}, scope=LANGGRAPH), False),
        (written({"mastra.span.type": "agent_run", "mastra.metadata.resumed": "true"}), True),
        (written({"mastra.span.type": "agent_run"}), False),
        (written({"genkit:metadata:subtype": "flow", "genkit:input": {"resume": {"respond": []}}}), True),
        (written({"genkit:metadata:subtype": "flow", "genkit:input": {"resume": "my CV"}}), False),
        (
            written(
                {"span.type": "interaction", "user_prompt": "Continue from where you left off."}, scope=CLAUDE_CODE
            ),
            True,
        ),
        (written({"span.type": "interaction", "user_prompt": "Go on."}, scope=CLAUDE_CODE), False),
        (written({"flow.node.type": "listen"}), True),
        (written({"flow.node.type": "start"}), False),
    ],
)
def test_frameworks_say_that_a_run_continues(root: Span, *, expected: bool) -> None:
    """By the root of the trace."""
    reading = built_in_reader().read(root)

    assert expected is (reading is not None and reading.resumes)
