from __future__ import annotations

import pytest

from dialects.spans import calls, span
from spanscore.model import Span


def traced(**held: str) -> tuple[Span, ...]:
    """A call within which a person was asked."""
    named = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund", "ag2.span.type": "tool", **held}
    asked = {"gen_ai.operation.name": "await_human_input", "ag2.span.type": "human_input"}
    return (
        span(1, "invoke_agent shop", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}),
        span(2, "execute_tool refund", named, parent=1),
        span(3, "await_human_input shop", asked, parent=2),
    )


@pytest.mark.parametrize(("held", "doubted"), [({}, True), ({"gen_ai.tool.call.result": "done"}, False)])
def test_without_its_result_a_call_about_which_a_person_was_asked_is_in_doubt(
    held: dict[str, str],
    doubted: bool,  # noqa: FBT001 - the expectation
) -> None:
    """The result alone shows whether the person denied it."""
    assert [(each.name, each.may_be_refused) for each in calls(*traced(**held))] == [("refund", doubted)]


def test_a_denied_call_is_none() -> None:
    """Its result is a constant."""
    assert calls(*traced(**{"gen_ai.tool.call.result": "User denied the tool call request"})) == []
