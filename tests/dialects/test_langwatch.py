from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, exception, read, span
from spanscore.model import Span, StatusCode


def entity(number: int, name: str, kind: str, parent: int = 1, **written: Any) -> Span:
    """A span of LangWatch, with its `input` and `output` as pairs of type and value."""
    told = {f"langwatch.{key}": json.dumps({"type": form, "value": value}) for key, (form, value) in written.items()}
    return span(number, name, {"langwatch.span.type": kind, **told}, parent=parent, scope="langwatch")


def test_decorated_functions() -> None:
    """A call without arguments has no input, as one whose input is not captured."""
    failed = entity(4, "pay", "tool", input=("json", {"amount": 5}))

    (trajectory,) = read(
        entity(1, "planner", "agent", parent=0),
        entity(2, "book", "tool", input=("json", {"nights": 2}), output=("json", {"id": "BK-1"})),
        entity(3, "ping", "tool", output=("text", "pong")),
        failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),)),
    )

    assert trajectory.agent == "planner"
    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result={"id": "BK-1"}, agent="planner"),
        call(3, "ping", result="pong", agent="planner"),
        call(4, "pay", {"amount": 5}, error="ValueError: full", agent="planner"),
    )


def test_the_callback_for_langchain() -> None:
    """Arguments are printed, a result is the content of a message, and no message of a model has calls."""
    (trajectory,) = read(
        entity(1, "travel", "chain", parent=0),
        entity(2, "llm", "llm", output=("chat_messages", [{"role": "assistant", "content": ""}])),
        entity(
            3,
            "book",
            "tool",
            input=("text", "{'city': 'Zürich'}"),
            output=("chat_messages", [{"role": "unknown", "content": '{"id": "BK-1"}'}]),
        ),
        entity(4, "look", "tool", input=("text", "Zürich")),
    )

    assert trajectory.calls == (
        call(3, "book", {"city": "Zürich"}, result={"id": "BK-1"}),
        call(4, "look"),
    )
