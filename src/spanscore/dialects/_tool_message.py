"""LangChain's ToolMessage in its many serialisations; shared by the dialects of its instrumentations."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from spanscore.dialects import _content as content
from spanscore.dialects._literals import literal
from spanscore.model import NOT_RECORDED, Recorded

_ENVELOPES: Final = 5
_PRINTED: Final = re.compile(
    r"""content=(?P<content>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[.*?\])(?=\ \w+=|$)""", re.DOTALL | re.VERBOSE
)
_PRINTED_ID: Final = re.compile(r" tool_call_id='([^']+)'")


class ToolMessage(NamedTuple):
    """The answer of a tool to the model."""

    content: Recorded = NOT_RECORDED
    call_id: str | None = None
    name: str | None = None
    error: str | None = None


def tool_message(value: Recorded) -> ToolMessage:
    """Return the message that a value holds; a value that is none is the content itself.

    Known envelopes: `{"output": ...}`, `{"type": "tool", "data": ...}`, `{"lc": 1, "kwargs": ...}`, and the printed
    form `content='...' name='...' tool_call_id='...'`.
    """
    if isinstance(value, str) and value.startswith("content="):
        return _printed(value)
    body = value
    for _ in range(_ENVELOPES):
        if not isinstance(body, dict):
            break
        if "content" in body and ("tool_call_id" in body or body.get("type") == "tool"):
            return _message(body)
        inner = next((body[key] for key in ("output", "data", "kwargs") if isinstance(body.get(key), dict)), None)
        if inner is None:
            break
        body = inner
    return ToolMessage(content=value)


def output_message(value: Recorded) -> ToolMessage:
    """Return the message in what LangChain's callbacks report: `{"output": ...}`, whatever the tool returned."""
    if isinstance(value, dict) and "output" in value and set(value) <= {"output", "kwargs"}:
        return tool_message(value["output"])
    return tool_message(value)


def _message(body: dict[str, Any]) -> ToolMessage:
    said = content.decoded(body["content"])
    failed = body.get("status") == "error"
    return ToolMessage(
        content=said,
        call_id=content.text(body.get("tool_call_id")),
        name=content.text(body.get("name")),
        error=content.short(str(body["content"])) or "error" if failed else None,
    )


def _printed(value: str) -> ToolMessage:
    said = _PRINTED.match(value)
    if said is None:
        return ToolMessage()
    body = literal(said["content"])
    fields = value[said.end() :]
    call_id = _PRINTED_ID.search(fields)
    return ToolMessage(
        content=content.decoded(body) if isinstance(body, str) else body,
        call_id=call_id[1] if call_id else None,
        error=content.short(str(body)) or "error" if " status='error'" in fields else None,
    )
