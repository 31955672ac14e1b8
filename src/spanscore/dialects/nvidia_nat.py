"""NVIDIA's NeMo Agent Toolkit."""

from __future__ import annotations

from typing import Final

from spanscore.contracts import CallReading, Markers, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import openinference
from spanscore.dialects._framework import FrameworkDialect
from spanscore.model import AttributeValue, Span, changed

_PREFIXES: Final = ("nat", "aiq")
"""Of its attributes; the second is that of the versions before 1.3."""
_KIND: Final = "span.kind"
_FUNCTION: Final = "function.name"
_PARENT: Final = "function.parent_name"
_CONVERSATION: Final = "conversation.id"
_WORKFLOW: Final = "<workflow>"
_UNKNOWN: Final = "unknown"


class NvidiaNat(FrameworkDialect):
    """Spans of NVIDIA's NeMo Agent Toolkit (NAT), AIQ before version 1.3 (recorded with 1.9.0).

    Each function has a span with the `nat.span.kind` `FUNCTION`, the workflow included; to OpenInference it is a
    CHAIN. If the framework within is instrumented, a span of kind `TOOL` is around the function. The name of a
    function is in `nat.function.name`, a span of kind `TOOL` is named after the tool; the arguments are in
    `input.value`, the result is in `output.value`. A failed call has no result, and no other sign of the failure.
    """

    markers = Markers(attributes=frozenset(f"{prefix}.{_KIND}" for prefix in _PREFIXES))
    reads = openinference.READS | {
        f"{prefix}.{key}" for prefix in _PREFIXES for key in (_FUNCTION, _PARENT, _CONVERSATION)
    }

    def read(self, span: Span) -> Reading | None:
        kind = _own(span, _KIND)
        return Reading(
            call=_call(span) if kind == "TOOL" or (kind == "FUNCTION" and _is_called(span)) else None,
            is_workflow=kind == "WORKFLOW",
            conversation_id=_own(span, _CONVERSATION),
        )


def _is_called(span: Span) -> bool:
    return _own(span, _FUNCTION) != _WORKFLOW and _own(span, _PARENT) not in {None, "root"}


def _call(span: Span) -> CallReading:
    named = None if _own(span, _KIND) == "TOOL" else _own(span, _FUNCTION)
    return changed(openinference.call(span), name=named or span.name)


def _own(span: Span, key: str) -> str | None:
    """Return one of its own attributes; None where it is missing or not known."""
    found: AttributeValue = content.first(*(span.attributes.get(f"{prefix}.{key}") for prefix in _PREFIXES))
    told = content.text(found)
    return None if told == _UNKNOWN else told
