"""Recognises runs of LangGraph agents, and reads LangChain's metadata; shared by the dialects of both."""

from __future__ import annotations

import re
from typing import Final

from spanscore.contracts import Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.model import AttributeValue, Span

AFTER_MODEL: Final = ".after_model"
"""The end of the names of nodes that LangChain's agents run behind a model: a run that begins with one continues."""
_UPDATE: Final = "UpdateState"
"""The end of the name of a change of a graph's state from outside, as by a person: its trace is no run by itself."""
INTEGRATION: Final = "ls_integration"
"""The key of the metadata that says what made a graph."""
_CREATE_AGENT: Final = "langchain_create_agent"
_NOTHING: Final = re.compile(r'null\Z|\{"inputs?": ?null[,}]')
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


def continues(span: Span, key: str, integration: str | None) -> bool:
    """Return whether a span is the node behind a model, or a graph that is given a person's answer.

    Args:
        span: of a graph or a step in it.
        key: the attribute with what it was given: for a graph that continues a `Command` with `resume`, or nothing for
            an agent of LangChain's that has stopped before a node.
        integration: what made the graph, as the metadata has it.
    """
    if span.name.endswith(AFTER_MODEL):
        return True
    given = span.attributes.get(key)
    if not span.parent_span_id and span.name.removesuffix(".workflow").endswith(_UPDATE):
        return True
    if isinstance(given, str) and _NOTHING.match(given):
        return integration == _CREATE_AGENT
    command = content.decoded(given) if isinstance(given, str) and '"resume"' in given else None
    if isinstance(command, dict) and len(command) == 1:
        command = command.get("input")
    if not isinstance(command, dict) or command.get("resume") is None:
        return False
    return command.get("lg_name") == "Command" or (not span.parent_span_id and command.keys() >= _COMMAND)


def stops_before_tools(integration: str | None, output: AttributeValue) -> bool:
    """Return whether an agent of LangChain's ends with an answer that asks for tools: its graph stops before them.

    Such an agent executes the tools that its model asks for, unless it was told to stop, by `interrupt_before` or by a
    step after the model. A request whose arguments are malformed it leaves out, and ends.

    Args:
        integration: what made the graph, as the metadata has it. A graph of the user's own may end so.
        output: the state in which the graph has ended.
    """
    if integration != _CREATE_AGENT or not isinstance(output, str):
        return False
    place = output.rfind('"tool_calls"')
    if place < 0 or '"tool_call_id"' in output[place:]:
        return False
    match content.decoded(output):
        case {"messages": [*_, last]} | {"outputs": {"messages": [*_, last]}}:
            inner = (content.field(last, "kwargs"), content.field(last, "data"), last)
            message = next(each for each in inner if isinstance(each, dict) or each is last)
            made = content.field(message, "tool_calls")
            return isinstance(made, list) and bool(made and messages.requests([last]))
    return False


def metadata(span: Span, key: str) -> str | None:
    """Return a value of LangChain's metadata, if they are JSON in one attribute."""
    held = span.attributes.get("metadata")
    if isinstance(held, str) and key not in held:  # it is long, and on every span
        return None
    return content.text(content.field(content.decoded(held), key))
