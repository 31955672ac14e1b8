"""LiveKit Agents, as versions 1.3 and 1.8 write it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, read, span
from spanscore.model import Span

SCOPE = "livekit-agents"


def tool(number: int, prefix: str, output: str, *, failed: bool = False, **others: Any) -> Span:
    """A tool span."""
    held = {
        "lk.function_tool.id": f"c{number}",
        "lk.function_tool.name": "pay",
        f"{prefix}function_tool.arguments": '{"n": 1}',
        f"{prefix}function_tool.output": output,
        "lk.function_tool.is_error": failed,
        **others,
    }
    return span(number, "function_tool", held, parent=1, scope=SCOPE)


@pytest.mark.parametrize("prefix", ["lk.", "lk.pii."])
def test_calls_are_read_without_the_conventions(prefix: str) -> None:
    """Later versions mark content as personal."""
    (run,) = read(
        span(1, "agent_session", {"lk.agent_label": "desk"}, scope=SCOPE),
        tool(2, prefix, '{"id": 7}'),
        tool(3, prefix, "no funds", failed=True, **{"error.type": "tool_error"}),
    )

    assert run.agent == "desk"
    assert run.calls == (
        call(2, "pay", {"n": 1}, result={"id": 7}, call_id="c2", agent="desk"),
        call(
            3,
            "pay",
            {"n": 1},
            result="no funds",
            error="tool_error: no funds",
            error_type="tool_error",
            call_id="c3",
            agent="desk",
        ),
    )


def test_a_call_with_wrong_arguments_has_no_span_and_is_not_lost() -> None:
    """The answer is that of every exception."""
    asked = [{"id": "i/f", "call_id": "c0", "name": "pay", "arguments": '{"n": "x"}'}]
    sent = {
        "items": [
            {"type": "function_call", "call_id": "c0", "name": "pay", "arguments": '{"n": "x"}'},
            {"type": "function_call_output", "call_id": "c0", "output": "An internal error occurred", "is_error": True},
        ]
    }
    again = [{"id": "i/g", "call_id": "c5", "name": "pay", "arguments": '{"n": 1}'}]
    later = {"lk.response.function_calls": json.dumps(again), "lk.chat_ctx": json.dumps(sent)}
    (run,) = read(
        span(1, "agent_session", {"lk.agent_label": "desk"}, scope=SCOPE),
        span(2, "llm_node", {"lk.response.function_calls": json.dumps(asked)}, parent=1, scope=SCOPE),
        span(4, "llm_node", later, parent=1, scope=SCOPE),
        tool(5, "lk.", "ok"),
    )

    assert [(each.name, each.arguments, each.error) for each in run.calls] == [
        ("pay", {"n": "x"}, "An internal error occurred"),
        ("pay", {"n": 1}, None),
    ]
    assert run.completeness.complete
