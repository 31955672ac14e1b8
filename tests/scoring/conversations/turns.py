"""Turns of conversations, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from spanscore.config import loads
from spanscore.config import parts as wiring
from spanscore.model import CloseReason, Completeness, Report, ToolCall, Trajectory
from spanscore.otlp.slices import at_once
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.conversations.held_conversation import ConversationRevision
from spanscore.scoring.conversations.settings import ConversationSettings
from spanscore.scoring.conversations.turns import Turn
from spanscore.scoring.pipeline import Pipeline

CONFIG: Final = """
conversations: {}
evaluators:
  once: {type: tool_policy, over: conversation, max_calls_per_tool: {refund: 1}}
  order: {type: tool_policy, over: conversation, must_precede: [[look, refund]]}
  told: {type: tool_policy, over: conversation, must_follow: [[refund, tell]]}
"""


@cache
def pipeline(text: str = CONFIG) -> Pipeline:
    """Return the pipeline of a configuration."""
    return wiring.pipeline(loads(text, "c.yaml", Path()))


def trace_id(number: int) -> bytes:
    """Return the id of the trace of this number."""
    return number.to_bytes(16, "big")


def turn(
    number: int, *calls: str | ToolCall, of: str | None = "c", service: str | None = "shop", **fields: Any
) -> Turn:
    """Return the turn of a conversation that starts at `number`, and is the trace of this number."""
    made = [each if isinstance(each, ToolCall) else executed(number, place, each) for place, each in enumerate(calls)]
    known = {"trace_id": trace_id(number), "root_span_id": number.to_bytes(8, "big"), "start_ns": number}
    run = Trajectory(calls=tuple(made), conversation_id=of, service=service, **known | fields)
    return Turn(run, number, CloseReason.ROOT_ENDED)


def executed(number: int, place: int, name: str) -> ToolCall:
    """Return a call of a tool without arguments; its id is that of others in other turns."""
    span_id = (number * 100 + place + 1).to_bytes(8, "big")
    return ToolCall(name=name, arguments={}, result="ok", call_id=str(place), span_id=span_id, start_ns=number)


def paused(*tools: str) -> Completeness:
    """Return what is known of a run that waits."""
    return Completeness(paused=tools)


def holding(**settings: Any) -> Conversations:
    """Return what holds conversations for the pipeline."""
    return Conversations(ConversationSettings(**settings), pipeline().turn_needs)


def report(revision: ConversationRevision, by: Pipeline | None = None) -> Report:
    """Return the report of a revision."""
    (made,) = at_once((by or pipeline()).begin_conversation(revision)).reports()
    return made


def add(held: Conversations, *turns: Turn, now: float = 0.0, revision: int = 0) -> list[ConversationRevision]:
    """Add traces, and return all that follows."""
    return [each for one in turns for each in held.add(one.trajectory.trace_id, one, revision, now)]


def labels(made: Report) -> dict[str, str | None]:
    """Return the label of each evaluation."""
    return {each.name: each.label for each in made.evaluations}


def outcome(revisions: Iterable[ConversationRevision]) -> dict[str, str | None]:
    """Return the labels of the last revision."""
    *_, last = revisions
    return labels(report(last))
