from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import Phase, example, find, given, settings
from hypothesis import strategies as st

from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _walked_messages as walked_messages
from spanscore.model import JSON, NOT_RECORDED, Later

WORDS = st.sampled_from(
    [
        "type",
        "role",
        "name",
        "id",
        "content",
        "parts",
        "result",
        "arguments",
        "parameters",
        "function",
        "tool",
        "object",
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=30,
)


@given(ANYTHING)
def test_whatever_messages_hold_is_read(written: JSON) -> None:
    """Any value may stand at any key."""
    assert all(isinstance(each.name, str) for each in messages.requests(written))
    assert all(isinstance(each, str) for each in messages.answers(written))
    assert all(isinstance(each, str) for each in messages.definitions(written))


KINDS = st.sampled_from([*walked_messages.REQUEST_TYPES, *messages._ANSWER_TYPES, "text", "tool_calls", "functionCall"])
PARTS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("type", "role", "finish_reason", "finishReason"), KINDS),
            **{
                key: st.just("x")
                for key in (*messages._NAME, *messages._ID, *walked_messages.NAMES_OF_ARGUMENTS, *messages._ANSWER)
            },
        },
    ),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(
            st.sampled_from([*walked_messages._WRAPPED, *messages._LISTS, *messages._ANSWER_WRAPPERS]), inner
        )
    ),
    max_leaves=5,
)


@given(PARTS, st.booleans())
@example(written={"functionResponse": {"id": "c1", "response": "x"}}, escaped=True)
@example(written={"function_response": {"id": "c1", "response": "x"}}, escaped=True)
def test_a_text_without_the_words_holds_nothing(written: JSON, escaped: bool) -> None:  # noqa: FBT001 - is drawn
    """So that it need not be parsed, nor kept."""
    text = json.dumps(written, ensure_ascii=escaped)
    if messages.requests(written) or finish_reasons.asked_in(written):
        assert messages.may_ask(text)
    if messages.answers(written):
        assert any(word in text for word in messages.WORDS_OF_ANSWERS)


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "tool_result", "tool_use_id": "c1", "content": "no rooms", "is_error": True},
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "no rooms"}], "status": "error"}},
        {"role": "tool", "tool_call_id": "c1", "content": "no rooms", "status": "error"},
        {"tool_call_result": {"result": "no rooms", "origin": {"tool_name": "book", "id": "c1"}, "error": True}},
    ],
)
def test_a_result_says_that_its_call_failed(answer: dict[str, JSON]) -> None:
    """The shapes of Anthropic, Bedrock, LangChain and Haystack; without the mark the text is a result as any other."""
    fine = json.loads(json.dumps(answer).replace("true", "false").replace('"error"}', '"success"}'))

    assert messages.failures([{"role": "user", "content": [answer]}]) == {"c1": "no rooms"}
    assert messages.failures([{"role": "user", "content": [fine]}]) == {}
    assert messages.answers([fine]) == messages.answers([answer]) == {"c1": "no rooms"}


@pytest.mark.parametrize("found", [messages.requests, finish_reasons.asked_in, messages.answers])
def test_what_is_drawn_above_holds_something(found: Callable[[JSON], object]) -> None:
    """Else that checked nothing."""
    first = settings(max_examples=2_000, phases=[Phase.generate])  # any will do: none is made smaller
    assert find(PARTS, lambda written: bool(found(written)), settings=first)


def test_the_type_of_a_schema_may_be_a_list() -> None:
    """It costs neither this tool nor another."""
    schemas = [
        {"type": kind, "properties": {"x": {"type": ["string", "null"]}}} for kind in (["object", "null"], "object")
    ]
    tools = [{"name": name, "parameters": schema} for name, schema in zip("ab", schemas, strict=True)]
    assert dict(zip("ab", schemas, strict=True)) == messages.definitions(tools)


def test_a_listed_tool_without_a_schema_is_declared() -> None:
    """A name within a schema declares nothing, and a schema is kept where the list has the tool twice."""
    schema = {"type": "object", "properties": {"x": {"name": "inner", "type": "string"}}}
    tools = [
        {"type": "function", "function": {"name": "a", "parameters": schema}},
        {"type": "function", "function": {"name": "b"}},
        {"type": "provider", "name": "c", "args": {"name": "inner"}},
        {"function_declarations": [{"name": "d", "parameters": None}]},
        {"toolSpec": {"name": "e", "inputSchema": {"json": schema}}},
        {"toolSpec": {"name": "f", "inputSchema": {"json": {}}}},
        {"name": "a"},
    ]

    assert {"a": schema, "b": None, "c": None, "d": None, "e": schema, "f": None} == messages.definitions(tools)


def test_what_is_found_later_is_found_once_and_only_where_it_is_looked_at() -> None:
    """A model is sent the whole conversation each time, and hardly a trace needs to know what of it are answers."""
    looked: list[int] = []

    def find() -> dict[str, JSON]:
        looked.append(1)
        return {"call_1": "sunny"}

    found = Later(find)
    assert [] == looked
    assert {"call_1": "sunny"} == found
    assert ("call_1" in found, len(found), found["call_1"]) == (True, 1, "sunny")
    assert [1] == looked


@pytest.mark.parametrize(("request_id", "found"), [("c1", [("book", "c1")]), (None, [])])
def test_an_id_tells_a_request_without_arguments_from_a_definition(request_id: str | None, found: list[object]) -> None:
    """OpenTelemetry's instrumentors leave the arguments out if content is not captured, or if there are none."""
    written = {"type": "function", "function": {"name": "book"}} | ({"id": request_id} if request_id else {})

    asked = messages.requests([{"role": "assistant", "tool_calls": [written]}])

    assert [(each.name, each.call_id) for each in asked] == found
    assert all(each.arguments is NOT_RECORDED for each in asked)
