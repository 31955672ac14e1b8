"""Recognises runs of LangGraph agents, and reads LangChain's metadata; shared by the dialects of both."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Reading
from spanscore.dialects import _content as content
from spanscore.model import Span

AFTER_MODEL: Final = ".after_model"
"""The end of the names of nodes that LangChain's agents run behind a model: a run that begins with one continues."""
_COMMAND: Final = frozenset({"goto", "resume", "update"})
"""The fields of LangGraph's `Command` in Python; in JavaScript it has its name in it."""


def graph(span_name: str, node: str | None, agent: str | None, *, is_marked: bool) -> Reading:
    """Return the reading of a chain: the run of a graph, which is an agent's, or a step in it.

    Args:
        span_name: of a chain.
        node: the node of the graph around it, as the metadata has it.
        agent: the agent it works for, as the metadata has it; LangChain's own agents are named there.
        is_marked: the instrumentation takes it for an agent, or it is the root. So it does any node with "agent" in
            its name.
    """
    if span_name == agent or (is_marked and span_name != node):
        return Reading(is_agent=True, agent=span_name)
    return Reading(is_agent=False if is_marked else None)


def continues(span: Span, key: str) -> bool:
    """Return whether a span is the node behind a model, or a graph that is given a person's answer.

    Args:
        span: of a graph or a step in it.
        key: the attribute with what it was given: for a graph that continues a `Command` with `resume`.
    """
    if span.name.endswith(AFTER_MODEL):
        return True
    given = span.attributes.get(key)
    command = content.decoded(given) if isinstance(given, str) and '"resume"' in given else None
    if isinstance(command, dict) and len(command) == 1:
        command = command.get("input")
    if not isinstance(command, dict) or command.get("resume") is None:
        return False
    return command.get("lg_name") == "Command" or (not span.parent_span_id and command.keys() >= _COMMAND)


def metadata(span: Span, key: str) -> str | None:
    """Return a value of LangChain's metadata, if they are JSON in one attribute."""
    held = span.attributes.get("metadata")
    if isinstance(held, str) and key not in held:  # it is long, and on every span
        return None
    return content.text(content.field(content.decoded(held), key))
