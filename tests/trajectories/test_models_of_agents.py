"""The calls of models and their texts, of each agent's run in a trace."""

from __future__ import annotations

from dialects.spans import read, span
from spanscore.model import Span, Unit
from traces import agent, tool


def chat(number: int, parent: int) -> Span:
    """A model span with tokens and texts of its own."""
    asks = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": number,
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": f"q{number}"}]}],
        "gen_ai.system_instructions": [{"type": "text", "content": f"s{number}"}],
    }
    return span(number, "chat", asks, parent=parent)


def test_each_agent_has_those_below_it() -> None:
    """Those of a nested agent are its own alone."""
    spans = (agent(1), chat(2, 1), tool(3, "ask", parent=1), agent(4, "helper", parent=3), chat(5, 4), chat(6, 4))
    runs = read(*spans, unit=Unit.AGENT, model_calls=True)
    assert [("planner", [2], ("q2",), ("s2",)), ("helper", [5, 6], ("q5", "q6"), ("s5", "s6"))] == [
        (run.agent, [call.input_tokens for call in run.model_calls], run.user_text, run.system_text) for run in runs
    ]
