"""Calls that were not made and failures that are none, as frameworks write them: shared by all dialects.

A run that pauses for a person leaves a tool's span with an exception, or with a constant for a result. Both come from
the framework and not from the instrumentation, so that every dialect that reads its spans meets them. The same holds
for a result that says that the tool failed: an MCP server's, or the constant text of a framework.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from spanscore.contracts import CallReading, CallRequest, CallState, Reading
from spanscore.dialects import _content as content
from spanscore.dialects import _model_messages as messages
from spanscore.dialects._literals import literal, parsed_text
from spanscore.model import Attributes, Recorded, Span, StatusCode, changed

_ERROR: Final = StatusCode.ERROR.value
"""Looked up once: each span is asked for it."""

DEFERRAL: Final = "pydantic_ai.tool.deferral.name"

_RAISED: Final[dict[str, CallState]] = {
    "langgraph.errors.GraphInterrupt": "waits",
    "langgraph.errors.NodeInterrupt": "waits",
    # The call hands over to another node, or the graph stops after it: it was made and has not failed.
    "langgraph.errors.ParentCommand": "made",
    "langgraph.errors.GraphBubbleUp": "made",
    "langgraph.errors.GraphDelegate": "made",
    "langgraph.errors.GraphDrained": "made",
    "pydantic_ai.exceptions.ApprovalRequired": "waits",
    "pydantic_ai.exceptions.CallDeferred": "waits",
    "haystack.core.errors.BreakpointException": "waits",
    "crewai.flow.async_feedback.types.HumanFeedbackPending": "waits",
}
"""By the whole type of an exception: an exception of the user's may have the same last name."""
_RAISED_BY_TOOLS: Final = frozenset({"toolinterrupterror", "waitingforevent"})
"""The last names of types whose module has moved: Genkit's, in JavaScript and Go, and LlamaIndex's."""
_UNTYPED: Final = frozenset({"Error", "Exception"})
"""Types that an instrumentation writes if it has only the text of an exception."""
_STACKS: Final[dict[str, CallState]] = {
    "\n\nGraphInterrupt: ": "waits",
    "\n\nNodeInterrupt: ": "waits",
    "\n\nParentCommand: ": "made",
}
"""Texts that LangChain.js writes between the message of an exception and its stack."""
_PRINTED: Final[dict[str, CallState]] = {
    "GraphInterrupt(": "waits",
    "NodeInterrupt(": "waits",
    "ParentCommand(": "made",
}
"""Beginnings of the text of such an exception as Python prints it."""

_NOT_MADE: Final = frozenset({"waits", "refused"})
INTERRUPTS: Final = ("(Interrupt(", "[Interrupt(")
"""Beginnings of the text of an interrupt of LangGraph in Python."""
INTERRUPTS_IN_JSON: Final = ('[\n  {\n    "id": ', '[\n  {\n    "value": ')
"""Beginnings of the text of an interrupt of LangGraph in JavaScript."""
_WITHOUT_MODULE: Final[dict[str, tuple[tuple[str, ...], CallState]]] = {
    "GraphInterrupt": ((*INTERRUPTS, *INTERRUPTS_IN_JSON), "waits"),
    "NodeInterrupt": ((*INTERRUPTS, *INTERRUPTS_IN_JSON), "waits"),
    "ParentCommand": (("Command(",), "made"),
}
"""Types that instrumentations write without the module. A user's type may have the same name: the text decides."""

_ASKS: Final = "This tool call requires confirmation, please approve or reject."
_REFUSALS: Final = frozenset(
    {
        "This tool call is rejected.",
        "The tool call was denied.",
        "Error: Tool call invocation was rejected by user.",
        "User denied the tool call request",
        "Function call was rejected by the user",
        "Tool call was not approved by the user",
    }
)
_NOT_APPROVED: Final = "Tool execution was not approved."
_REFUSED_TOOL: Final = (
    "User rejected the tool call for ",
    "Tool execution blocked by hook. Tool: ",
    "Tool call invocation rejected.",  # Agent Framework in .NET and Go
    _NOT_APPROVED,
)
"""Beginnings of a refusal that continues with the tool, or the reason."""
_HAYSTACK: Final = ("Tool execution for '", "' was rejected by the user.")
_DENIED: Final = "execution-denied"
_LONGEST: Final = 4_096
"""Characters of a refusal with a reason; a longer text is a result."""

_ANSWERS: Final = ("gen_ai.output.messages", "output.value", "langfuse.observation.output", "traceloop.entity.output")
"""The attributes in which instrumentations write the answer of a model."""

_FAILED: Final = ("isError", "is_error")
"""Names of the mark of a failure: MCP's own, and that of its Python classes."""
_AROUND_RESULTS: Final = ("result", "output", "response")
"""Keys under which frameworks put a result that is an object of their own."""
_PRINTED_RESULT: Final = re.compile(
    r"\s*(?:CallToolResult\()?(?:_?meta=|content=\[).*\bis(?:E|_e)rror=True\)?\s*", re.DOTALL
)
"""A result as Python prints it."""
_PRINTED_TEXT: Final = re.compile(r"""TextContent\(type='text', text=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""")

_AN_ERROR: Final = "An error occurred "
_RAISED_TEXT: Final = re.compile(
    rf"{_AN_ERROR}(?:while running the tool\. Please try again\.(?:$| Error: )|when calling tool `[^`\n]+`:\n)"
)
"""The result that the OpenAI Agents SDK, with or without the error, and Qwen-Agent give for a tool that raises."""

WORDS: Final = (*_FAILED, _AN_ERROR, "reject", "denied", "not approved", "blocked by hook")
"""Words of which every relevant result has one: no encoder escapes letters. Each is looked for in every result."""


def with_control_flow(span: Span, reading: Reading) -> Reading:
    """Return a reading completed with control flow that the framework, not the instrumentation, writes.

    A call that waits or was refused has not failed; a call that the result of an MCP server calls failed has.
    """
    call = reading.call
    may_have_raised = bool(span.events) or span.status_code == _ERROR
    if call is None and not (may_have_raised or reading.is_model):
        return reading
    raised = _raised(span) if may_have_raised else None
    if call is None:
        # A span around the call, or of a step before it.
        is_pause = raised == "waits" and not reading.waits and not any(map(_is_of_a_tool, _exceptions(span)))
        waits = (CallRequest(name=""),) if is_pause else _unapproved(span) if reading.is_model else ()
        return changed(reading, waits=waits) if waits and not reading.waits else reading
    state = raised or (call.state if call.state in _NOT_MADE else _written(span, call))
    if state is not None:
        call = changed(call, state=state, error=None, error_type=None)
    elif call.error is None and (failure := failure_in(call.result)) is not None:
        call = changed(call, error=failure)
    return reading if call is reading.call else changed(reading, call=call)


def state_of_result(result: Recorded) -> CallState | None:
    """Return whether the call with this result waits or was refused; None if the result is a tool's."""
    if isinstance(result, str):
        return _state_of_text(result)
    match result:
        case {"error": str(told), **others} if not others:
            return _state_of_text(told)
        case {"type": str(kind)} if kind == _DENIED:
            return "refused"
    return None


def failure_in(result: Recorded) -> str | None:
    """Return a short text if a result is a report of a failed tool, by an MCP server or the framework."""
    if isinstance(result, str) and _RAISED_TEXT.match(result):
        return content.short(result)
    return _mcp_failure(result)


def _mcp_failure(result: Recorded) -> str | None:
    """Return a short text if a result is an MCP server's report of a failed tool (`CallToolResult`)."""
    if isinstance(result, dict) and len(result) == 1:
        result = next((result[key] for key in _AROUND_RESULTS if key in result), result)
    if isinstance(result, str):
        if not any(map(result.__contains__, _FAILED)):
            return None
        if _PRINTED_RESULT.fullmatch(result):
            told = content.text(literal(found[1])) if (found := _PRINTED_TEXT.search(result)) else None
            return content.short(told or "") or "error"
        result = parsed_text(result) if result.lstrip().startswith("{") else result  # JSON text within JSON text
    if not isinstance(result, dict) or not any(result.get(key) is True for key in _FAILED):
        return None
    parts = result.get("content")
    if not isinstance(parts, list) or not all(isinstance(part, dict) and "type" in part for part in parts):
        return None
    texts = (text for part in parts if isinstance(part, dict) and (text := content.text(part.get("text"))))
    return content.short(next(texts, "")) or "error"


def _unapproved(span: Span) -> tuple[CallRequest, ...]:
    """Return the calls that a model's provider asks a person to approve."""
    for key in _ANSWERS:
        said = span.attributes.get(key)
        if said is not None and (asked := messages.approvals(said)):
            return asked
    return ()


def _raised(span: Span) -> CallState | None:
    """Return the state of a call by the exceptions of its span; None if they are failures, or if there are none."""
    states = {state for raised in _exceptions(span) if (state := _state_of_exception(raised)) is not None}
    return "waits" if "waits" in states else next(iter(states), None)


def _exceptions(span: Span) -> Iterator[Attributes]:
    raised = [event.attributes for event in span.events if event.name == "exception"]
    yield from raised
    if not raised and span.status_code == _ERROR:
        yield {"exception.type": span.attributes.get("error.type"), "exception.message": span.status_message}


def _state_of_exception(raised: Attributes) -> CallState | None:
    kind = content.text(raised.get("exception.type"))
    told = content.text(raised.get("exception.message")) or ""
    begins, state = _WITHOUT_MODULE.get(kind or "", ((), None))
    if told.startswith(begins):
        return state
    if kind is None or kind in _UNTYPED:
        printed = (state for begin, state in _PRINTED.items() if told.startswith(begin))
        return next(printed, None) or next((state for stack, state in _STACKS.items() if stack in told), None)
    return "waits" if _is_of_a_tool(raised) else _RAISED.get(kind)


def _is_of_a_tool(raised: Attributes) -> bool:
    """Return whether an exception shows that a person is asked only in a tool; elsewhere it is part of a workflow."""
    kind = content.text(raised.get("exception.type")) or ""
    return kind.rpartition(".")[2].lower() in _RAISED_BY_TOOLS


def _written(span: Span, call: CallReading) -> CallState | None:
    """Return the state of a call by its result, the status or an attribute."""
    if content.text(span.attributes.get(DEFERRAL)) is not None:
        return "waits"
    if span.status_code == _ERROR and span.status_message.startswith(_NOT_APPROVED):
        return "refused"
    return state_of_result(call.result)


def _state_of_text(told: str) -> CallState | None:
    if len(told) > _LONGEST:
        return None
    told = told.strip()
    if told == _ASKS:
        return "waits"
    begin, end = _HAYSTACK
    is_refusal = told in _REFUSALS or told.startswith(_REFUSED_TOOL) or (told.startswith(begin) and end in told)
    return "refused" if is_refusal else None
