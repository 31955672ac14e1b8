"""Microsoft Agent 365."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import gen_ai
from spanscore.dialects._framework import FrameworkDialect
from spanscore.dialects._langgraph import AFTER_MODEL
from spanscore.model import Span, changed

_SESSION: Final = "microsoft.session.id"
_RUN: Final = "invoke_agent "


class Agent365(FrameworkDialect):
    """LangChain and the OpenAI Agents SDK under Microsoft Agent 365's observability (recorded with 2.0.0).

    They follow the GenAI conventions, but the agent's name is only in the name of its span. Under LangChain that is
    the root, which has a session. A tool of the OpenAI Agents SDK that waits for approval has a span with arguments and
    without a result.
    """

    markers = Markers(scopes=frozenset({"microsoft_agents_a365.observability.core.config"}))
    reads = gen_ai.READS | {_SESSION}

    def read(self, span: Span) -> Reading | None:
        attributes = span.attributes
        operation = attributes.get(gen_ai.OPERATION)
        if operation == gen_ai.EXECUTE_TOOL:
            call = gen_ai.call(span)
            # Without content, a call that has ended has no result either.
            is_open = gen_ai.ARGUMENTS in attributes and gen_ai.RESULT not in attributes and call.error is None
            return Reading(call=changed(call, state="uncertain") if is_open else call, only_if_asked=True)
        conversation = content.text(attributes.get(_SESSION))
        is_graph = operation is None and not span.parent_span_id and conversation is not None
        is_run = is_graph or span.name.startswith(_RUN)
        return Reading(
            is_agent=True if is_graph else None,
            agent=content.text(attributes.get(gen_ai.AGENT)) or span.name.removeprefix(_RUN) if is_run else None,
            resumes=span.name.endswith(AFTER_MODEL),
            refuses_silently=True,
            conversation_id=conversation,
        )
