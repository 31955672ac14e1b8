"""Recognises runs of LangGraph agents, and reads LangChain's metadata; shared by the dialects of both."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Reading
from spanscore.dialects import _content as content
from spanscore.model import Span

AFTER_MODEL: Final = ".after_model"
"""The end of the names of nodes that LangChain's agents run behind a model: a run that begins with one continues."""
_COMMANDS: Final = (frozenset({"goto", "resume", "update"}), frozenset({"goto", "resume", "lg_name"}))
"""The fields of LangGraph's `Command` in Python and JavaScript."""


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
    given = span.attributes.get(key)
    if span.name.endswith(AFTER_MODEL):
        return True
    if span.parent_span_id or not isinstance(given, str) or '"resume"' not in given:
        return False
    command = content.decoded(given)
    if isinstance(command, dict) and len(command) == 1:
        command = command.get("input")
    return isinstance(command, dict) and any(map(command.keys().__ge__, _COMMANDS)) and command["resume"] is not None


def metadata(span: Span, key: str) -> str | None:
    """Return a value of LangChain's metadata, if they are JSON in one attribute."""
    held = span.attributes.get("metadata")
    if isinstance(held, str) and key not in held:  # it is long, and on every span
        return None
    return content.text(content.field(content.decoded(held), key))
