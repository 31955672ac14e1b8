"""VoltAgent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from spanscore.contracts import CallReading, Markers, ModelReading, Reading, SentMessage
from spanscore.dialects import _content as content
from spanscore.dialects import _finish_reasons as finish_reasons
from spanscore.dialects import _sent_messages as sent_messages
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import AttributeValue, LaterList, Span, changed

_ENTITY: Final = "entity.type"
_RUN: Final = "operation.id"
_FINISH_REASON: Final = "llm.finish_reason"
_END: Final = "ai.response.finish_reason"
_SENT: Final = "llm.messages"
_APPROVAL: Final = "tool-approval-response"
_AGENT: Final = "entity.name"
_SUBAGENT: Final = "subagent.name"
_TOOL_NAME: Final = ("tool.name", gen_ai.TOOL_NAME)
"""The second is what the Collector's `gen_ai_normalizer` makes of the first."""


class Voltagent(FrameworkDialect):
    """Tool spans of VoltAgent (recorded with @voltagent/core 2.10.0).

    A call has the `span.type` `tool`, the name in `tool.name`, the arguments in `input` and the result in `output`;
    `tool.parameters` is the tool's schema. The application chooses the name of the scope.

    One span of a model is around all steps of its loop, and has only the last ten messages that the first step was
    sent. Approvals are in these, though the calls are made within the span. A run that ends with the finish reason
    `tool-calls` may wait for an approval, or has reached its limit. A sub-agent that waits is not continued.
    """

    markers = Markers(attributes=frozenset({_ENTITY}))
    reads = content.READS.union(
        {
            _ENTITY,
            _RUN,
            _AGENT,
            _SUBAGENT,
            _FINISH_REASON,
            _END,
            _SENT,
            "span.type",
            *_TOOL_NAME,
            "conversation.id",
            "input",
            "output",
            "tool.call.id",
        }
    )

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if _RUN not in attributes:
            return None
        kind = attributes.get("span.type")
        is_agent = kind is None and attributes.get(_ENTITY) == "agent"
        return Reading(
            call=_call(span) if kind == "tool" and any(key in attributes for key in _TOOL_NAME) else None,
            is_model=kind == "llm",
            is_agent=is_agent or None,
            ends_asking=is_agent and _SUBAGENT not in attributes and finish_reasons.asks(attributes, (_END,)),
            refuses_silently=True,
            resumes=kind == "llm" and _is_approval(attributes.get(_SENT)),
            agent=content.first_text(attributes, (_SUBAGENT, _AGENT)),
            conversation_id=content.text(attributes.get("conversation.id")),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        sent = span.attributes.get(_SENT)
        return ModelReading(
            asks=finish_reasons.asks(span.attributes, (_FINISH_REASON,)), history=LaterList(lambda: _history(sent))
        )


def _is_approval(sent: AttributeValue) -> bool:
    """Return whether a model's last message is a person's decision about a call."""
    match content.decoded(sent) if isinstance(sent, str) and _APPROVAL in sent else None:
        case [*_, last]:
            return bool(_parts(last, _APPROVAL))
    return False


def _history(sent: AttributeValue) -> Sequence[SentMessage]:
    """Return the messages, with decisions about calls: a call that was approved waits until it has a result."""
    if not isinstance(sent, str) or _APPROVAL not in sent:
        return sent_messages.history_in(sent)
    told = content.decoded(sent)
    nodes = told if isinstance(told, list) else []
    asked = [part for node in nodes for part in _parts(node, "tool-approval-request")]
    ids = {content.text(part.get("approvalId")): content.text(part.get("toolCallId")) for part in asked}
    return [
        changed(message, answers=(*_decisions(node, ids), *message.answers))
        for node in nodes
        for message in sent_messages.history([node])
    ]


def _decisions(node: Any, ids: Mapping[str | None, str | None]) -> Iterator[CallReading]:
    for part in _parts(node, _APPROVAL):
        if call_id := ids.get(content.text(part.get("approvalId"))):
            yield CallReading(call_id=call_id, state="waits" if part.get("approved") is True else "refused")


def _parts(node: Any, kind: str) -> list[dict[str, Any]]:
    """Return the parts of a message that are of this type."""
    match node:
        case {"content": list(parts)}:
            return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]
    return []


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    name = content.first_text(attributes, _TOOL_NAME)
    return content.call(span, name, attributes.get("input"), attributes.get("output"), attributes.get("tool.call.id"))
