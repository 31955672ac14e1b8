from __future__ import annotations

from typing import Any

from dialects.spans import call, calls, exception, read, span
from spanscore.model import Span, StatusCode

SCOPE = "uipath.core.tracing.decorators"


def traced(number: int, name: str, kind: str | None, parent: int = 0, **attributes: Any) -> Span:
    """A span of a decorated function; without a type it is any function."""
    held = {} if kind is None else {"span_type": kind, "run_type": kind.lower()}
    return span(number, name, {**held, **attributes}, parent=parent, scope=SCOPE)


def test_traced_tools() -> None:
    """The name is the span's, with or without the product's habit."""
    told = {"openinference.span.kind": "TOOL", "input.value": '{"nights": 2}', "output.value": '{"id": "BK-1"}'}
    failed = traced(4, "pay", "tool", 1, **{"tool.name": "pay", "input.value": "{}"})

    (trajectory,) = read(
        traced(1, "planner", "agent"),
        traced(2, "book", "TOOL", 1, **told, **{"tool.name": "book"}),
        traced(3, "Tool call - book", "TOOL", 1, **told, **{"tool.name": "Tool call - book"}),
        failed._replace(status_code=StatusCode.ERROR, events=(exception("ValueError", "full"),)),
    )

    assert trajectory.calls == (
        call(2, "book", {"nights": 2}, result={"id": "BK-1"}, agent="planner"),
        call(3, "book", {"nights": 2}, result={"id": "BK-1"}, agent="planner"),
        call(4, "pay", {}, error="ValueError: full", agent="planner"),
    )
    assert trajectory.agent == "planner"


def test_functions_without_a_type_are_not_known_to_be_tools() -> None:
    """Nothing marks them."""
    assert calls(traced(1, "book", None, **{"input.value": '{"nights": 2}'})) == []
