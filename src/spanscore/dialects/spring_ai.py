"""Spring AI."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, CaptureSetting, Markers, ModelReading, Reading
from spanscore.dialects import _content as content
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import Span

_KIND: Final = "spring.ai.kind"
_NAME: Final = "spring.ai.tool.definition.name"
_SCHEMA: Final = "spring.ai.tool.definition.schema"
_ARGUMENTS: Final = "spring.ai.tool.call.arguments"
_RESULT: Final = "spring.ai.tool.call.result"
_ID: Final = "spring.ai.tool.call.id"
_CONVERSATION: Final = "spring.ai.chat.client.conversation.id"


class SpringAi(FrameworkDialect):
    """Spans of Spring AI from 1.0 on, over Micrometer's tracing (recorded with 1.1.6 and 2.0.1).

    A call has a span of kind `tool_call`. A span of a chat client is an agent's run; agents have no names.
    Arguments and results are recorded with `spring.ai.tools.observations.include-content`, call ids from 2.0 on.
    The text of an exception is the result that the model gets; the span does not show the failure unless
    `spring.ai.tools.throw-exception-on-error` is set.
    """

    markers = Markers(attributes=frozenset({_KIND}))
    reads = content.READS | {_NAME, _SCHEMA, _ARGUMENTS, _RESULT, _ID, _CONVERSATION}
    capture_settings = (CaptureSetting("spring.ai.tools.observations.include-content=true", ("arguments", "results")),)

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        kind = attributes.get(_KIND)
        return Reading(
            call=_call(span) if kind == "tool_call" else None,
            is_agent=True if kind == "chat_client" else None,
            conversation_id=content.text(attributes.get(_CONVERSATION)),
        )

    def read_model(self, span: Span) -> ModelReading | None:
        # Models are given the tools in requests that no span holds: each tool's own spans say what it takes.
        name = content.text(span.attributes.get(_NAME))
        schema = content.decoded(span.attributes.get(_SCHEMA))
        return ModelReading(tool_definitions={name: schema} if name and isinstance(schema, dict) else {})


def _call(span: Span) -> CallReading:
    attributes = span.attributes
    # The name of the span is the operation, `tool_call` or `execute_tool`, and the tool.
    name = content.text(attributes.get(_NAME)) or span.name.partition(" ")[2] or None
    return content.call(span, name, attributes.get(_ARGUMENTS), attributes.get(_RESULT), attributes.get(_ID))
