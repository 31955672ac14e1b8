"""What ADOT moves out of spans: read as if it were still there.

As its LLOHandler does it in aws-opentelemetry-distro 0.21.0, and between the commits b183e876 and d7e49b5c, which took
`gen_ai.tool.call.arguments` and `gen_ai.tool.call.result` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import TRACE_ID, call, calls, span, span_id, start_ns
from spanscore.dialects.aws_adot import AwsAdot
from spanscore.model import LOG_RECORD, Span

PARIS = {"city": "Paris", "nights": 2, "guest": {"name": "Zoë"}}
AS_JSON = '{"city": "Paris", "nights": 2, "guest": {"name": "Zoë"}}'
CONVENTION = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "book", "gen_ai.tool.call.id": "c1"}
OPENINFERENCE = {"openinference.span.kind": "TOOL", "tool.name": "book", "tool_call.id": "c1"}
TRACELOOP = {"traceloop.span.kind": "tool", "traceloop.entity.name": "book"}


def messages(role: str, *contents: Any) -> dict[str, Any]:
    """Return one side of an event's body."""
    return {"messages": [{"role": role, "content": content} for content in contents]}


def moved(parent: int, scope: str, at_ms: int = 9, **body: Any) -> Span:
    """Return the log record of a span, as it is received."""
    at_ns = start_ns(at_ms)
    held = {"event.name": scope, **body}
    identity = (at_ms * 256 + parent).to_bytes(8, "little")
    return Span(TRACE_ID, identity, span_id(parent), scope, at_ns, at_ns, LOG_RECORD, attributes=held, scope=scope)


@pytest.mark.parametrize(
    ("attributes", "scope", "asked", "told"),
    [
        (CONVENTION, "gcp.vertex.agent", messages("tool", AS_JSON), messages("tool", '{"id": 1}')),
        (
            CONVENTION,
            "strands.telemetry.tracer",
            messages("tool", {"role": "tool", "content": AS_JSON, "id": "c1"}),
            messages("assistant", {"message": '{"id": 1}', "id": "c1"}),
        ),
        (
            OPENINFERENCE,
            "openinference.instrumentation.agno",
            messages("user", AS_JSON),
            messages("assistant", '{"id": 1}'),
        ),
        (
            TRACELOOP,
            "opentelemetry.instrumentation.crewai",
            messages("user", f'{{"args": [], "kwargs": {AS_JSON}}}'),
            messages("assistant", '{"id": 1}'),
        ),
    ],
)
def test_a_span_and_its_event_are_one_call(
    attributes: Mapping[str, Any], scope: str, asked: dict[str, Any], told: dict[str, Any]
) -> None:
    """With the arguments and the result that the event has, whichever comes first."""
    tool = span(2, "book", attributes, parent=1, scope=scope)
    record = moved(2, scope, input=asked, output=told)
    call_id = attributes.get("gen_ai.tool.call.id") or attributes.get("tool_call.id")

    for arrived in ((span(1, "run"), tool, record), (record, tool, span(1, "run"))):
        assert calls(*arrived) == [call(2, "book", PARIS, result={"id": 1}, call_id=call_id)]


def test_what_a_step_inside_a_tool_moved_is_not_the_tools() -> None:
    """An event belongs to the span in which it was written, and to no other."""
    scope = "openinference.instrumentation.langchain"
    inner = span(3, "step", {"openinference.span.kind": "CHAIN"}, parent=2)
    found = calls(
        span(2, "book", OPENINFERENCE), inner, moved(3, scope, 3, input=messages("user", '{"other": 1}')),
        moved(2, scope, 9, input=messages("user", AS_JSON)),
    )  # fmt: skip

    assert [each.arguments for each in found] == [PARIS]


def test_what_the_span_kept_counts() -> None:
    """An event adds what is missing only."""
    kept = span(2, "book", {**CONVENTION, "gen_ai.tool.call.arguments": AS_JSON})
    record = moved(2, "strands.telemetry.tracer", input=messages("tool", '{"other": 1}'))

    assert [each.arguments for each in calls(kept, record)] == [PARIS]


def test_the_calls_that_a_model_asked_for() -> None:
    """Messages of the conventions, which stand in an event like all other content."""
    scope = "opentelemetry.instrumentation.genai"
    asked = (
        '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "book", "arguments": {"n": 1}}]}]'
    )
    found = calls(
        span(1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}),
        span(2, "chat", {"gen_ai.operation.name": "chat"}, parent=1),
        span(3, "book", CONVENTION, parent=1),
        moved(2, scope, input=messages("user", "hello"), output=messages("assistant", asked)),
    )

    assert [(each.call_id, each.arguments) for each in found] == [("c1", {"n": 1})]


def test_an_event_without_its_span_is_no_call() -> None:
    """It does not even tell the tool's name."""
    assert [] == calls(span(1, "run"), moved(7, "strands.telemetry.tracer", input=messages("tool", AS_JSON)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["messages", "role", "content"]), inner)
    ),
    max_leaves=8,
)


@given(asked=JSON, told=JSON)
def test_any_body_is_read_or_passed_over(asked: Any, told: Any) -> None:
    """Other emitters log under such names, too."""
    reading = AwsAdot().read(moved(2, "strands.x", input=asked, output=told))
    assert reading is None or (reading.of_span and reading.call is None)
