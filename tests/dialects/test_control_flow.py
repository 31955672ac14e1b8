"""Calls that were not made and failures that are none, whichever dialect reads their span."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from dialects.carriers import CARRIERS, Carrier
from dialects.spans import built_in_reader, calls, exception, span
from spanscore.contracts import CallReading, CallState
from spanscore.dialects import failure_in
from spanscore.model import StatusCode

CARRIED: Final = pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS)

PAUSES: Final = {
    "langgraph.errors.GraphInterrupt": "waits",
    "langgraph.errors.NodeInterrupt": "waits",
    "pydantic_ai.exceptions.ApprovalRequired": "waits",
    "pydantic_ai.exceptions.CallDeferred": "waits",
    "ToolInterruptError": "waits",
    "*ai.toolInterruptError": "waits",
    "workflows.runtime.types.results.WaitingForEvent": "waits",
    "haystack.core.errors.BreakpointException": "waits",
    "crewai.flow.async_feedback.types.HumanFeedbackPending": "waits",
    "langgraph.errors.ParentCommand": "made",
    "langgraph.errors.GraphBubbleUp": "made",
    "langgraph.errors.GraphDrained": "made",
}
ANSWERS: Final[dict[str, CallState]] = {
    "This tool call requires confirmation, please approve or reject.": "waits",
    "This tool call is rejected.": "refused",
    "The tool call was denied.": "refused",
    "Error: Tool call invocation was rejected by user.": "refused",
    "Tool call invocation rejected. Too expensive": "refused",
    "User denied the tool call request": "refused",
    "Tool execution was not approved.": "refused",
    "User rejected the tool call for `refund` with id c1": "refused",
    "Tool execution for 'refund' was rejected by the user.": "refused",
    "Tool execution blocked by hook. Tool: refund": "refused",
}
MCP_FAILURE: Final = {"content": [{"type": "text", "text": "Error executing tool: no such order"}], "isError": True}


def read(carried: Any) -> CallReading:
    """Return the call that is read from a span."""
    reading = built_in_reader().read(carried)
    assert reading is not None
    assert reading.call is not None
    return reading.call


@CARRIED
def test_a_result_is_read_as_that_of_a_call(carry: Carrier) -> None:
    """So that what follows is no accident."""
    call = read(carry(1, {"refunded": 40}))
    assert (call.name, call.state, call.error, call.result) == ("refund", "made", None, {"refunded": 40})


@CARRIED
@pytest.mark.parametrize("kind", PAUSES)
def test_a_pause_that_is_an_exception_is_no_failure(carry: Carrier, kind: str) -> None:
    """The tool's span has the exception, and often the status ERROR with it."""
    raised = exception(kind, "(Interrupt(value='ok?'),)")
    for code, message in ((StatusCode.UNSET, ""), (StatusCode.ERROR, kind)):
        paused = carry(1, None, events=(raised,), status_code=code, status_message=message)
        call = read(paused)
        assert (call.state, call.error, call.error_type) == (PAUSES[kind], None, None)
        assert [each.name for each in calls(paused)] == (["refund"] if PAUSES[kind] == "made" else [])


@CARRIED
@pytest.mark.parametrize(
    "kind", ["shop.errors.GraphInterrupt", "ApprovalRequired", "langgraph.errors.InvalidUpdateError"]
)
def test_an_exception_of_the_users_own_is_a_failure(carry: Carrier, kind: str) -> None:
    """Whatever the last part of its name is."""
    failed = carry(1, None, events=(exception(kind, "no"),), status_code=StatusCode.ERROR)
    assert [(each.name, each.error is not None) for each in calls(failed)] == [("refund", True)]


@CARRIED
def test_javascript_tells_an_interrupt_in_the_message_alone(carry: Carrier) -> None:
    """LangChain.js joins the message and the stack of an exception, whose type is not recorded."""
    told = '[{"value": "ok?"}]\n\nGraphInterrupt: [{"value": "ok?"}]\n    at interrupt (file.js:1:1)'
    for events, message in (
        ((exception("Error", told),), ""),
        ((exception("", told)._replace(attributes={"exception.message": told}),), ""),
        ((), told),
    ):
        paused = carry(1, None, events=events, status_code=StatusCode.ERROR, status_message=message)
        assert read(paused).state == "waits"
        assert calls(paused) == []


@CARRIED
@pytest.mark.parametrize(
    ("told", "state"), [("GraphInterrupt((Interrupt(value='ok?'),))", "waits"), ("Ended(1)", "made")]
)
def test_python_tells_an_interrupt_as_it_is_printed(carry: Carrier, told: str, state: str) -> None:
    """LangSmith has the text of an exception alone."""
    call = read(carry(1, None, events=(exception("Exception", f"{told}Traceback"),), status_code=StatusCode.ERROR))
    assert (call.state, call.error is None) == (state, state == "waits")


@CARRIED
@pytest.mark.parametrize(
    ("told", "state", "failed"),
    [
        ("(Interrupt(value='ok?', id='1'),)", "waits", False),
        ("[Interrupt(value='ok?')]", "waits", False),
        ('[\n  {\n    "id": "1",\n    "value": "ok?"\n  }\n]', "waits", False),
        ('[\n  {\n    "value": "ok?",\n    "when": "during"\n  }\n]', "waits", False),
        ("no", "made", True),
    ],
)
def test_an_interrupt_without_its_module_is_known_by_its_text(
    carry: Carrier,
    told: str,
    state: str,
    failed: bool,  # noqa: FBT001 - a parameter
) -> None:
    """As MLflow and OpenLLMetry write it in an event, and the conventions in `error.type` and the status."""
    event = carry(1, None, events=(exception("GraphInterrupt", told),), status_code=StatusCode.ERROR)
    status = carry(1, None, status_code=StatusCode.ERROR, status_message=told)
    status = status._replace(attributes={**status.attributes, "error.type": "GraphInterrupt"})
    assert [(each.state, each.error is not None) for each in map(read, (event, status))] == [(state, failed)] * 2


@CARRIED
@pytest.mark.parametrize("told", ANSWERS)
def test_a_constant_for_a_result_is_no_call(carry: Carrier, told: str) -> None:
    """A framework gives it in place of the tool: a call that waits, or one that was refused."""
    for answer in (told, {"error": told}):
        assert read(carry(1, answer)).state == ANSWERS[told]
        assert calls(carry(1, answer)) == []


@CARRIED
@pytest.mark.parametrize(
    "told",
    [
        "The customer says: This tool call is rejected.",
        {"error": "This tool call is rejected.", "order": "A-1"},
        {"message": "The tool call was denied."},
        {"type": "denied"},
    ],
)
def test_what_a_tool_says_in_its_own_words_is_a_result(carry: Carrier, told: Any) -> None:
    """A tool that refuses by itself was executed."""
    assert read(carry(1, told)).state == "made"


@CARRIED
def test_a_result_of_mcp_that_is_an_error_fails_the_call(carry: Carrier) -> None:
    """As an object, as JSON text, and as JSON text of that; the call is made, and failed."""
    written = {"is_error": True, "content": MCP_FAILURE["content"]}
    for told in (
        MCP_FAILURE,
        json.dumps(MCP_FAILURE),
        json.dumps(json.dumps(MCP_FAILURE)),
        {"result": MCP_FAILURE},
        {"output": json.dumps(written)},
    ):
        call = read(carry(1, told))
        assert (call.state, call.error) == ("made", "Error executing tool: no such order")


@CARRIED
def test_a_result_of_mcp_as_python_prints_it_fails_the_call(carry: Carrier) -> None:
    """With its text, unless the instrumentation changes its quotes."""
    block = "TextContent(type='text', text='no such order', annotations=None)"
    printed = f"meta=None content=[{block}] structuredContent=None isError=True"
    for told in (
        printed,
        f"CallToolResult({printed.replace('] ', '], ').replace('None ', 'None, ')})",
        {"result": printed},
    ):
        call = read(carry(1, told))
        assert call.state == "made"
        assert call.error in {"no such order", "error"}
    assert failure_in(printed) == "no such order"


@CARRIED
def test_a_result_of_mcp_under_the_names_of_python_fails_the_call(carry: Carrier) -> None:
    """LlamaIndex's own results have the same name for their mark."""
    assert read(carry(1, {"is_error": True, "content": MCP_FAILURE["content"]})).error is not None


@CARRIED
@pytest.mark.parametrize(
    "told",
    [
        {**MCP_FAILURE, "isError": False},
        {**MCP_FAILURE, "isError": "true"},
        {"isError": True},
        {"isError": True, "content": "text"},
        {"isError": True, "content": ["text"]},
        {"answer": MCP_FAILURE},
        {"result": MCP_FAILURE, "order": 1},
        "the tool printed content=[] isError=True",
        "content=[TextContent(type='text', text='found')] isError=False",
        [MCP_FAILURE],
    ],
)
def test_is_error_elsewhere_is_a_part_of_the_result(carry: Carrier, told: Any) -> None:
    """Only the result that an MCP server gives has it beside its list of content blocks."""
    assert read(carry(1, told)).error is None


@CARRIED
def test_a_deferral_of_pydantic_ai_is_named_by_an_attribute(carry: Carrier) -> None:
    """Since version 5 of its instrumentation by that alone."""
    deferred = carry(1, None)
    deferred = deferred._replace(attributes={**deferred.attributes, "pydantic_ai.tool.deferral.name": "CallDeferred"})
    assert read(deferred).state == "waits"


@CARRIED
def test_a_status_that_says_not_approved_is_a_refusal(carry: Carrier) -> None:
    """As openai-agents has it in JavaScript."""
    refused = carry(1, None, status_code=StatusCode.ERROR, status_message="Tool execution was not approved. Too much.")
    assert read(refused).state == "refused"


def test_a_span_around_a_call_says_that_the_run_waits() -> None:
    """A step of a graph ends with the exception of the tool in it."""
    raised = exception("langgraph.errors.GraphInterrupt", "()")
    step = span(1, "tools", {"openinference.span.kind": "CHAIN"}, events=(raised,))
    reading = built_in_reader().read(step)
    assert reading is not None
    assert [each.name for each in reading.waits] == [""]
