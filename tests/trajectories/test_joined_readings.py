"""What several dialects say of one span, joined."""

from __future__ import annotations

from typing import Any

import pytest

from catalogue.scoring import report_of
from dialects.spans import span
from spanscore.model import ToolCall

OPENINFERENCE = {"openinference.span.kind": "TOOL", "tool.name": "search", "input.value": '{"a": 1}'}
CONVENTIONS = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


def call_of(attributes: dict[str, Any]) -> ToolCall:
    """Return the only call of a run."""
    root = span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"})
    (call,) = report_of([root, span(2, "execute_tool search", attributes, parent=1)]).trajectory.calls
    return call


@pytest.mark.parametrize("kind", ["function", "extension", None])
def test_the_type_of_a_tool_is_that_of_the_conventions(kind: str | None) -> None:
    """Also where another dialect says all else of the call."""
    conventions = CONVENTIONS if kind is None else CONVENTIONS | {"gen_ai.tool.type": kind}
    call = call_of(OPENINFERENCE | conventions)
    assert ("search", {"a": 1}, kind) == (call.name, call.arguments, call.tool_type)
