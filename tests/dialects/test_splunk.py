"""Splunk's instrumentations of LangChain (0.1.16) and of the OpenAI Agents SDK (0.1.5)."""

from __future__ import annotations

import json
from typing import Any

from dialects.spans import read, span
from spanscore.dialects.splunk import Splunk
from spanscore.model import Span

SCOPE = "opentelemetry.util.genai.handler"


def node(number: int, name: str, operation: str | None = None, parent: int = 1, **attributes: Any) -> Span:
    """A span of an instrumentation; keys are below `gen_ai`."""
    held = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    told = {"gen_ai.operation.name": operation} if operation else {}
    return span(number, name, {"gen_ai.evaluation.sampled": True, **told, **held}, parent=parent, scope=SCOPE)


RUN = node(1, "invoke_agent shop", "invoke_agent", 0, agent__name="shop")
ASKED = {"action_requests": [{"name": "pay", "args": {}}]}


def asks(number: int, name: str) -> Span:
    """A request to a model that asks for a call."""
    part = {"type": "tool_call", "name": name, "id": f"c{number}", "arguments": {}}
    answer = json.dumps([{"role": "assistant", "parts": [part], "finish_reason": "tool_calls"}])
    return node(number, "chat m", "chat", output__messages=answer, framework="openai_agents")


def test_a_step_that_an_interrupt_has_ended() -> None:
    """The step names the calls that a person is asked about, if the middleware asks."""
    chat = node(2, "chat m", "chat")
    for told, expected in ((json.dumps(ASKED), ("pay",)), ("ok?", ("",))):
        step = {"gen_ai.step.status": "interrupted", "gen_ai.finish_reason_description": told}
        (run,) = read(RUN, chat, span(3, "step Approval.after_model", step, parent=1, scope=SCOPE))
        assert run.completeness.paused == expected


def test_a_run_that_is_given_an_answer_continues() -> None:
    """By its command, or as it begins behind a model."""
    made = node(3, "execute_tool pay", "execute_tool", tool__name="pay")
    for root, step, expected in (
        (RUN._replace(attributes={**RUN.attributes, "gen_ai.command": "resume"}), "step tools", True),
        (RUN, "step Approval.after_model", True),
        (RUN, "step tools", False),
    ):
        (run,) = read(root, node(2, step), made)
        assert run.completeness.begin_unseen is expected


def test_a_tool_of_openai_agents_that_waits() -> None:
    """Such a tool has neither a result nor a failure, and no request to a model starts after it."""
    tool: dict[str, Any] = {"tool__name": "pay", "tool__type": "function"}
    waits = node(3, "execute_tool pay", "execute_tool", **tool)
    (paused,) = read(RUN, asks(2, "pay"), waits)
    (whole,) = read(RUN, asks(2, "pay"), waits, node(4, "chat m", "chat"))
    (resumed,) = read(RUN, node(2, "execute_tool pay", "execute_tool", **tool, tool__call__result="ok"), asks(3, "x"))

    assert (paused.calls, paused.completeness.paused) == ((), ("pay",))
    assert (whole.names, whole.completeness.paused) == (("pay",), ())
    assert [each.may_have_failed for each in (*whole.calls, *resumed.calls)] == [True, False]
    assert resumed.completeness.begin_unseen


def test_without_content_a_tool_of_openai_agents_may_wait() -> None:
    """No call has a result then, and the model's request is not known."""
    (run,) = read(
        RUN,
        node(2, "chat m", "chat", framework="openai_agents"),
        node(3, "execute_tool pay", "execute_tool", tool__name="pay", tool__type="function"),
    )
    assert (run.names, run.completeness.paused, run.completeness.may_pause) == (("pay",), (), True)


def test_other_scopes_and_spans_without_a_sign_are_not_read() -> None:
    """The attributes are generic: other programs have them on any span."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "gen_ai.tool.type": "function"}
    others = (
        span(1, "GET /", {"gen_ai.command": "resume"}),
        span(1, "GET /", {"gen_ai.step.status": "interrupted"}),
        span(1, "execute_tool pay", {**tool, "gen_ai.evaluation.sampled": True}),
        node(1, "step tools"),
    )
    assert [Splunk().read(each) for each in others] == [None] * 4
