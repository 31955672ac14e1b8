from __future__ import annotations

import json
from typing import Any

from dialects.spans import built_in_dialects, call, calls, span
from spanscore.model import Span
from spanscore.otlp.slices import at_once
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.wanted import UnusedTexts

RESULT = "gen_ai.tool.call.result"


def tool(number: int, text: str, **fields: Any) -> Span:
    """A call with the result that a tool of AgentScope returns."""
    result = {"content": [{"type": "text", "text": text, "id": "b1"}], "metadata": {}, "id": "c1", **fields}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": "{}",
        RESULT: json.dumps(result),
    }
    return span(number, "execute_tool book", attributes, parent=1, scope="agentscope")


def test_the_state_of_the_result_tells_a_failure() -> None:
    """The status of the span does not."""
    assert calls(tool(2, "full", state="error")) == [call(2, "book", {}, result="full", error="full", call_id="c1")]
    assert calls(tool(2, '{"id": 7}', state="success")) == [call(2, "book", {}, result={"id": 7}, call_id="c1")]


def test_a_tool_may_say_error_itself() -> None:
    """A tool's own result is no failure, whatever its keys are."""
    assert [None] == [made.error for made in calls(tool(2, '{"state": "error"}', state="success"))]


def test_a_failure_is_kept_where_nothing_looks_at_results() -> None:
    """Of other results nothing is."""
    failed, fine = (
        each._replace(attributes=dict(each.attributes))
        for each in (tool(2, "full", state="error"), tool(3, "ok", state="success"))
    )
    at_once(UnusedTexts(DialectReader(built_in_dialects(), results=False)).taking_out([failed, fine], [1000, 1000]))

    assert (RESULT in failed.attributes, RESULT in fine.attributes) == (True, False)
    assert [["full"], [None]] == [[made.error for made in calls(each)] for each in (failed, fine)]


def test_all_results_are_kept_where_something_looks_at_them() -> None:
    """Whatever their state."""
    fine = tool(2, "ok", state="success")
    fine = fine._replace(attributes=dict(fine.attributes))
    at_once(UnusedTexts(DialectReader(built_in_dialects())).taking_out([fine], [1000]))

    assert RESULT in fine.attributes
