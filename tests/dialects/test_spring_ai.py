"""Spring AI, as 1.1.6 and 2.0.1 write it; the names of attributes are those of its source at v2.0.1."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode, Unit

SCOPE = "org.springframework.boot"


def of_kind(number: int, name: str, kind: str, *, parent: int = 0, **fields: Any) -> Span:
    """A span of the framework's own."""
    attributes = {"gen_ai.operation.name": "framework", "gen_ai.system": "spring_ai", "spring.ai.kind": kind}
    return span(number, name, {**attributes, **fields.pop("attributes", {})}, parent=parent, scope=SCOPE, **fields)


def tool(number: int, name: str = "book", *, parent: int = 0, operation: str = "framework", **fields: Any) -> Span:
    """A span of a call: what is given stands below `spring.ai.tool`."""
    held = {f"spring.ai.tool.{key}": value for key, value in fields.pop("attributes", {}).items()}
    attributes = {"gen_ai.operation.name": operation, "spring.ai.tool.definition.name": name, **held}
    prefix = "tool_call" if operation == "framework" else operation
    return of_kind(number, f"{prefix} {name}", "tool_call", parent=parent, attributes=attributes, **fields)


def test_the_first_version_has_no_ids() -> None:
    """Its operation is `framework`, which says nothing: the kind tells that it is a call."""
    content = {"call.arguments": '{"hotel": "Ritz", "nights": 2}', "call.result": '"BK-1"'}

    assert calls(of_kind(1, "spring_ai chat_client", "chat_client"), tool(2, parent=1, attributes=content)) == [
        call(2, "book", {"hotel": "Ritz", "nights": 2}, result="BK-1")
    ]


def test_the_second_version_follows_the_convention_but_for_its_attributes() -> None:
    """The operation is `execute_tool`, and what belongs to it has names of the framework."""
    content = {"call.arguments": "{}", "call.result": "[1, 2]", "call.id": "call_1"}

    assert calls(tool(1, operation="execute_tool", attributes=content)) == [
        call(1, "book", {}, result=[1, 2], call_id="call_1")
    ]


def test_content_is_off_unless_switched_on() -> None:
    """Neither arguments nor result are there then, and an id that was not given is empty."""
    assert calls(tool(1, operation="execute_tool", attributes={"call.id": ""})) == [call(1, "book")]


def test_a_call_without_the_name_of_its_tool_is_named_by_the_span() -> None:
    """A convention of the user's own may leave the attribute out."""
    assert [made.name for made in calls(of_kind(1, "tool_call book", "tool_call"))] == ["book"]


def test_an_exception_shows_where_it_is_thrown_on() -> None:
    """By default it is the result that the model is told, and nothing says that it is none."""
    thrown = {
        "status_code": StatusCode.ERROR,
        "status_message": "no rooms",
        "events": (exception("org.springframework.ai.tool.execution.ToolExecutionException", "no rooms"),),
    }
    told = tool(2, attributes={"call.result": "no rooms"}, status_code=StatusCode.OK)
    kind = "org.springframework.ai.tool.execution.ToolExecutionException"

    assert calls(tool(1, **thrown), told) == [
        call(1, "book", error=f"{kind}: no rooms", error_type=kind),
        call(2, "book", result="no rooms"),
    ]


def test_what_is_no_call_is_none() -> None:
    """Advisors and clients have the same operation."""
    spans = (
        of_kind(1, "spring_ai chat_client", "chat_client"),
        of_kind(2, "tool_call", "advisor", parent=1, attributes={"spring.ai.advisor.name": "tool_call"}),
        span(3, "chat gpt", {"gen_ai.operation.name": "chat"}, parent=2, scope=SCOPE),
    )

    assert calls(*spans) == []


def test_a_conversation_is_that_of_the_client() -> None:
    """It is the parameter of the chat's memory."""
    client = of_kind(
        1, "spring_ai chat_client", "chat_client", attributes={"spring.ai.chat.client.conversation.id": "c-1"}
    )

    (trajectory,) = read(client, tool(2, parent=1))

    assert (trajectory.conversation_id, trajectory.agent) == ("c-1", None)


def test_a_client_that_a_tool_asks_is_a_run_of_its_own() -> None:
    """Neither has a name."""
    spans = (
        of_kind(1, "spring_ai chat_client", "chat_client"),
        tool(2, "ask_expert", parent=1),
        of_kind(3, "spring_ai chat_client", "chat_client", parent=2),
        tool(4, "lookup_policy", parent=3),
    )

    assert [[made.name for made in run.calls] for run in read(*spans, unit=Unit.AGENT)] == [
        ["ask_expert"],
        ["lookup_policy"],
    ]


def test_what_a_tool_takes_stands_in_its_own_span() -> None:
    """No span has what the model was given."""
    schema = '{"type": "object", "properties": {"nights": {"type": "integer"}}}'

    (trajectory,) = read(tool(1, attributes={"definition.schema": schema}), tool(2, "now"))

    assert dict(trajectory.tool_definitions) == {
        "book": {"type": "object", "properties": {"nights": {"type": "integer"}}}
    }


@given(st.text(), st.text())
def test_text_of_any_kind_is_one_call(arguments: str, result: str) -> None:
    """A converter of the user's own may write what it likes."""
    (made,) = calls(tool(1, attributes={"call.arguments": arguments, "call.result": result}))

    assert (made.name, made.error) == ("book", None)
