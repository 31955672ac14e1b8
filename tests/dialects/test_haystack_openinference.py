from __future__ import annotations

import json

from dialects.spans import call, calls, read, span

SCOPE = "openinference.instrumentation.haystack"
USER = "ChatMessage(_role=<ChatRole.USER: 'user'>, _content=[TextContent(text='trip')], _name=None, _meta={})"


def asks(call_id: str, city: str) -> str:
    """A message of the model as it is printed."""
    tool_call = f"ToolCall(tool_name='get_weather', arguments={{'city': '{city}'}}, id='{call_id}', extra=None)"
    return f"ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[{tool_call}], _name=None, _meta={{}})"


def answer(call_id: str, result: str, *, error: bool = False) -> str:
    """A message of a tool as it is printed."""
    origin = f"ToolCall(tool_name='get_weather', arguments={{}}, id='{call_id}', extra=None)"
    content = f"ToolCallResult(result={result!r}, origin={origin}, error={error})"
    return f"ChatMessage(_role=<ChatRole.TOOL: 'tool'>, _content=[{content}], _name=None, _meta={{}})"


def test_calls_come_from_the_messages_that_the_run_added() -> None:
    """No span stands for a call, but the agent's run prints its messages: those it was given are older calls."""
    given = [USER, asks("c0", "Bern"), answer("c0", "rain"), USER]
    said = [*given, asks("c1", "Paris"), answer("c1", '{"sky": "clear"}')]
    said += [asks("c2", "Rome"), answer("c2", "Failed to invoke", error=True)]
    attributes = {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"messages": given}),
        "output.value": json.dumps({"messages": said}),
    }
    pipeline = span(1, "Pipeline.run", {"openinference.span.kind": "CHAIN"}, scope=SCOPE)

    assert calls(pipeline, span(2, "Agent.run", attributes, parent=1, scope=SCOPE)) == [
        call(None, "get_weather", {"city": "Paris"}, at_ms=3, call_id="c1", result={"sky": "clear"}),
        call(
            None,
            "get_weather",
            {"city": "Rome"},
            at_ms=3,
            call_id="c2",
            result="Failed to invoke",
            error="Failed to invoke",
        ),
    ]


def test_a_number_that_cannot_be_written_in_digits_costs_only_itself() -> None:
    """Python prints no integer of more than 4,300 digits, but an object may print a hexadecimal one."""
    said = [asks("c1", "Paris").replace("_meta={}", f"_meta={{'seed': 0x{'f' * 5_000}}}"), answer("c1", "sunny")]
    attributes = {"openinference.span.kind": "CHAIN", "output.value": json.dumps({"messages": said})}

    assert calls(span(1, "Agent.run", attributes, scope=SCOPE)) == [
        call(None, "get_weather", {"city": "Paris"}, at_ms=2, call_id="c1", result="sunny")
    ]


def test_hidden_messages_may_hold_calls() -> None:
    """A run whose conversation is hidden or cut off is skipped: it may have needed tools."""
    hidden = {"openinference.span.kind": "CHAIN", "output.value": "__REDACTED__"}

    assert [True] == [bool(run.unread) for run in read(span(1, "Agent.run", hidden, scope=SCOPE))]
