"""Ragas' two metrics of tool calls that need no model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from ragas.messages import AIMessage, ToolCall
from ragas.metrics.collections import ToolCallAccuracy, ToolCallF1
from worker import Evaluate, Task, again, serve

warnings.simplefilter("ignore")


def _task(score: Callable[..., Coroutine[Any, Any, Any]]) -> Task:
    def prepare(case: dict[str, Any]) -> Iterator[Evaluate]:
        messages = [AIMessage(content="", tool_calls=_calls(case["made"]))]
        expected = _calls(case["expected"])
        return again(lambda: _finished(score(messages, expected)))

    return prepare


def _finished(coroutine: Coroutine[Any, Any, Any]) -> float:
    """Run a coroutine that waits for nothing; an event loop would only add to its cost."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value.value
    message = "it waits for something"
    raise RuntimeError(message)


def _calls(calls: list[dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(name=call["name"], args=call["arguments"]) for call in calls]


serve({"tool_call_f1": _task(ToolCallF1().ascore), "tool_call_accuracy": _task(ToolCallAccuracy().ascore)})
