"""Restores the original attributes of spans that passed the Collector's `gen_ai_normalizer`.

The processor renames attributes of OpenInference and OpenLLMetry to the GenAI semantic conventions. If configured so,
it removes the originals, by which dialects recognise their spans. Its attributes have no more information than the
originals, and sometimes less: a step of a chain becomes an agent's run, and anything with a name an agent of that
name. So originals are restored, and misleading attributes are removed, even if the originals are still present.

The mappings are those in the source of opentelemetry-collector-contrib, processor/genainormalizerprocessor.
"""

from __future__ import annotations

from typing import Final

from spanscore.dialects import gen_ai, openinference, openllmetry
from spanscore.model import Attributes, AttributeValue, Span

_INVOKE_AGENT: Final = "invoke_agent"
_REQUEST_TYPE: Final = "llm.request.type"
_WRITTEN: Final = frozenset({gen_ai.OPERATION, gen_ai.AGENT})
"""Without one of these, nothing was renamed that a dialect asks for."""

_OPENINFERENCE_KINDS: Final = {
    "chat": "LLM",
    "embeddings": "EMBEDDING",
    "retrieval": "RETRIEVER",
    "execute_tool": "TOOL",
    "text_completion": "PROMPT",
}
_NO_AGENTS: Final = frozenset({"CHAIN", "PROMPT"})
_OPENINFERENCE_SCOPES: Final = ("openinference.", "openinference-", "@arizeai/openinference-")
_OPENINFERENCE_NAMES: Final = {
    gen_ai.TOOL_NAME: openinference.TOOL_NAME,
    gen_ai.AGENT: "agent.name",
    gen_ai.CALL_ID: "tool_call.id",
    gen_ai.CONVERSATION: "session.id",
    # By mappings that a user adds: the processor has none for these.
    gen_ai.ARGUMENTS: openinference.INPUT,
    gen_ai.RESULT: openinference.OUTPUT,
}
_AI_SDK_CALL: Final = "ai.toolCall"
"""A span that the AI SDK calls so has an operation's name by OpenInference's processor alone, whatever its content."""
_CORE: Final = "openinference-core"
_ALWAYS_AGENTS: Final = ("claude-agent-sdk", "claude_agent_sdk")

_OPENLLMETRY_SCOPES: Final = ("opentelemetry.instrumentation.", "@traceloop/", "traceloop.")
_OPENLLMETRY_KINDS: Final = {"invoke_workflow": "workflow", "execute_tool": "tool"}
_REQUEST_TYPES: Final = {"chat": "chat", "text_completion": "completion"}
_ENTITY: Final = {gen_ai.INPUT: openllmetry.ENTITY_INPUT, gen_ai.OUTPUT: openllmetry.ENTITY_OUTPUT}
_MOVED: Final = frozenset({*_ENTITY, openllmetry.ENTITY_NAME})
_LEFT: Final = frozenset({openllmetry.ENTITY_NAME, *_ENTITY.values(), "traceloop.workflow.name"})
"""OpenLLMetry's attributes that stay if the target existed already, or if there is none."""


def may_be_renamed(span: Span) -> bool:
    """Return whether a span may come from the processor, by its scope, its name and the keys of its attributes."""
    attributes = span.attributes
    if _WRITTEN.isdisjoint(attributes) or span.is_log:
        return False
    is_openinference = openinference.KIND in attributes or _is_openinference(span)
    return is_openinference or openllmetry.KIND in attributes or _is_openllmetry(span)


def with_originals(span: Span) -> Span:
    """Return a span as it was before the processor, as far as that is known; most spans are returned unchanged."""
    if not may_be_renamed(span):
        return span
    is_openinference = openinference.KIND in span.attributes or _is_openinference(span)
    attributes = _openinference(span) if is_openinference else _openllmetry(span)
    return span if attributes is span.attributes else span._replace(attributes=attributes)


def _text(value: AttributeValue) -> str | None:
    return value if isinstance(value, str) else None


def _is_openinference(span: Span) -> bool:
    if gen_ai.OPERATION not in span.attributes:
        return False
    held = openinference.INPUT in span.attributes or openinference.OUTPUT in span.attributes
    return held or span.scope.startswith(_OPENINFERENCE_SCOPES) or span.name.startswith(_AI_SDK_CALL)


def _openinference(span: Span) -> Attributes:
    attributes = span.attributes
    kind = _text(attributes.get(openinference.KIND))
    operation = _text(attributes.get(gen_ai.OPERATION))
    added: dict[str, AttributeValue] = {}
    if kind is None:
        kind = _openinference_kind(span, operation)
        if kind is None:
            return attributes
        added[openinference.KIND] = kind
        added |= {name: attributes[key] for key, name in _OPENINFERENCE_NAMES.items() if key in attributes}
    # The LangChain instrumentor takes any tool with "agent" in its name for an agent.
    is_tool = kind == "AGENT" and (openinference.TOOL_NAME in attributes or openinference.TOOL_NAME in added)
    if kind == "PROMPT" or (operation == _INVOKE_AGENT and (kind in _NO_AGENTS or is_tool)):
        return _without(attributes, gen_ai.OPERATION, added)
    return {**added, **attributes} if added else attributes


def _openinference_kind(span: Span, operation: str | None) -> str | None:
    if operation is None:
        return None
    if operation != _INVOKE_AGENT:
        # Kinds that the processor does not know are passed on as they are.
        return _OPENINFERENCE_KINDS.get(operation) or (operation if operation.isupper() else None)
    named = (gen_ai.AGENT, gen_ai.TOOL_NAME, *openinference.AGENT_NAME)
    return "AGENT" if any(key in span.attributes for key in named) or _is_named_as_agent(span) else "CHAIN"


def _is_named_as_agent(span: Span) -> bool:
    """Return whether a span is an agent's run and not a step of a chain, by the names that instrumentors give them."""
    match span.scope:
        case "openinference.instrumentation.langchain":
            return "agent" in span.name.lower()
        case "openinference.instrumentation.smolagents":
            return span.name.endswith(".run")
        case scope if scope == _CORE:
            return not span.parent_span_id or "agent" in span.name.lower()
    return span.scope.endswith(_ALWAYS_AGENTS)


def _is_openllmetry(span: Span) -> bool:
    return span.scope.startswith(_OPENLLMETRY_SCOPES) or not _LEFT.isdisjoint(span.attributes)


def _openllmetry(span: Span) -> Attributes:
    attributes = span.attributes
    operation = _text(attributes.get(gen_ai.OPERATION))
    added: dict[str, AttributeValue] = {}
    kind = _text(attributes.get(openllmetry.KIND))
    if kind is None:
        kind = _openllmetry_kind(span, operation)
        if kind is not None:
            added[openllmetry.KIND] = kind
        elif operation in _REQUEST_TYPES and _REQUEST_TYPE not in attributes:
            return {_REQUEST_TYPE: _REQUEST_TYPES[operation], **attributes}
        else:
            return attributes
    named = attributes.get(gen_ai.AGENT)
    if openllmetry.ENTITY_NAME not in attributes and isinstance(named, str) and _is_own_name(span.name, named):
        added[openllmetry.ENTITY_NAME] = named
    added |= {name: attributes[key] for key, name in _ENTITY.items() if key in attributes and name not in attributes}
    entity = attributes.get(openllmetry.ENTITY_NAME, added.get(openllmetry.ENTITY_NAME))
    found: Attributes = {**added, **attributes} if added else attributes
    if entity is None or kind == "agent":
        return found
    is_run = operation == _INVOKE_AGENT and kind != "task"  # by the instrumentation: the processor changes it
    if named == entity and not is_run:
        found = _without(found, gen_ai.AGENT, {})
    return _without(found, gen_ai.OPERATION, {}) if kind == "task" and operation == _INVOKE_AGENT else found


def _openllmetry_kind(span: Span, operation: str | None) -> str | None:
    if operation == _INVOKE_AGENT:
        _, dot, suffix = span.name.rpartition(".")
        return suffix if dot and suffix in {"agent", "task"} else None
    if gen_ai.TOOL_NAME in span.attributes and _MOVED.isdisjoint(span.attributes):
        return None  # it follows the conventions by itself
    return _OPENLLMETRY_KINDS.get(operation or "")


def _is_own_name(span_name: str, name: str) -> bool:
    return span_name == name or span_name.startswith(f"{name}.") or span_name.endswith(f" {name}")


def _without(attributes: Attributes, key: str, added: Attributes) -> Attributes:
    return {name: value for name, value in {**added, **attributes}.items() if name != key}
