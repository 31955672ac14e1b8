"""Scores single traces as configured, with every built-in dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from dialects.spans import TRACE_ID, span
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import CloseReason, Outcome, Report, Span, Trace
from traces import agent

HEALTH = "health: {type: tool_call_trajectory}"


def report_of(spans: Iterable[Span], evaluators: str = HEALTH) -> Report:
    """Return the report of a trace; `evaluators` is what stands below `evaluators:` in a configuration."""
    loaded = config.loads(f"evaluators: {{{evaluators}}}", "test.yaml", Path())
    trace = Trace(trace_id=TRACE_ID, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED)
    (report,) = wiring.pipeline(loaded).run(trace)
    return report


def outcome_of(spans: Iterable[Span], evaluator: str) -> Outcome:
    """Return what one evaluator says about a trace."""
    (evaluation,) = report_of(spans, f"it: {evaluator}").evaluations
    return evaluation.outcome


def tool_span(number: int, name: str = "search", *, arguments: Any = None, **fields: Any) -> Span:
    """Return the execution of a tool below span 1, with arguments as they stand in the attribute."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = arguments
    return span(number, f"execute_tool {name}", attributes, **{"parent": 1} | fields)


def a_run(*tools: Span) -> Sequence[Span]:
    """Return a trace: a root, and what is below it."""
    return (agent(1), *tools)
