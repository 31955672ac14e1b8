from __future__ import annotations

import json
from typing import Any

from dialects.spans import call, calls, read, span
from spanscore.model import NOT_RECORDED, Span, StatusCode

MESSAGES = [
    {"role": "user", "content": "trip"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": json.dumps({"city": "Zürich"}, ensure_ascii=False)},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "get_weather", "content": "it's sunny"},
]


def test_calls_come_from_what_the_crew_printed() -> None:
    """No span stands for a call under OpenLLMetry, but the crew's repeats the messages of its tasks."""
    printed = f"[TaskOutput(raw='ok', pydantic=None, output_format=<OutputFormat.RAW: 'raw'>, messages={MESSAGES!r})]"
    crew = {"gen_ai.operation.name": "invoke_agent", "crewai.crew.tasks_output": printed}
    run = {"gen_ai.operation.name": "invoke_agent", "crewai.agent.role": "planner", "traceloop.span.kind": "agent"}

    (trajectory,) = read(span(1, "crewai.workflow", crew), span(2, "planner.agent", run, parent=1))

    assert trajectory.calls == (
        call(None, "get_weather", {"city": "Zürich"}, at_ms=2, call_id="c1", result="it's sunny"),
    )
    assert trajectory.agent == "planner"


def test_a_cut_print_tells_nothing() -> None:
    """Long attributes are cut, and half an object is none: the run is skipped, as it may have needed tools."""
    cut = f"[TaskOutput(raw='ok', messages={MESSAGES!r})]"[:200]

    (run,) = read(span(1, "crewai.workflow", {"crewai.crew.tasks_output": cut}), span(2, "step", parent=1))
    assert ((), True) == (run.calls, bool(run.unread))


def test_under_openinference_the_convention_is_enough() -> None:
    """`tool.parameters` holds the tool's schema there, and no argument."""
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get_weather",
        "tool.parameters": '{"properties": {"city": {"type": "string"}}}',
        "input.value": '{"city": "Paris"}',
        "output.value": "sunny",
    }
    kicked = span(2, "get_weather.run", attributes, scope="openinference.instrumentation.crewai")

    assert calls(kicked) == [call(2, "get_weather", {"city": "Paris"}, result="sunny")]


def native(number: int, event: str, name: str = "book", **attributes: Any) -> Span:
    """A span of CrewAI's own."""
    held = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": '{"n": 1}',
        "crewai.event_name": event,
    }
    return span(number, "call tool", {**held, **attributes}, parent=1)


def test_a_failure_is_a_second_span_beside_the_call() -> None:
    """The failure span may be the only sign that a tool which returned has failed: it belongs to the call before it."""
    failure = native(3, "tool_failure_detected", **{"error.type": "_OTHER"})._replace(
        status_code=StatusCode.ERROR, status_message="declined"
    )
    raised = native(2, "tool_usage_error", **{"error.type": "ValueError"})._replace(status_code=StatusCode.ERROR)

    (one,) = calls(raised, failure)
    assert (one.error, one.error_type) == ("ValueError", "ValueError")
    (one,) = calls(native(2, "tool_usage_finished"), failure)
    assert one.error == "declined"
    first, second, other = calls(
        native(2, "tool_usage_error", **{"error.type": "ValueError"}),
        failure,
        native(4, "tool_usage_finished"),
        native(5, "tool_usage_finished", "pay"),
    )
    assert (first.error, second.error, other.error) == ("ValueError", None, None)


def test_openllmetry_prints_the_agent_and_the_failures_of_each_task() -> None:
    """A failure belongs to the call whose result has its message: a retry that succeeds has not failed."""
    asked = [{"id": f"c{n}", "function": {"name": "pay", "arguments": "{}"}} for n in (2, 3)]
    said = [{"role": "assistant", "tool_calls": [each]} for each in asked]
    told = [
        {"role": "tool", "tool_call_id": "c2", "content": "Error executing tool: declined"},
        {"role": "tool", "tool_call_id": "c3", "content": "paid"},
    ]
    printed = [said[0], told[0], said[1], told[1]]
    reason = "<ToolFailureReason.EXCEPTION: 'exception'>"
    failure = f"ToolFailure(message='declined', reason={reason}, code='CardError', details={{}})"
    record = f"ToolFailureRecord(tool_name='pay', failure={failure}, tool_args={{}}, agent_role='payer')"
    tasks = (
        f"TaskOutput(raw='', agent='payer', messages={printed!r}, tool_failures=[{record}])",
        f"TaskOutput(raw='', agent='planner', messages={MESSAGES!r}, tool_failures=[])",
    )

    made = calls(span(1, "crewai.workflow", {"crewai.crew.tasks_output": f"[{', '.join(tasks)}]"}), span(2, "task"))

    assert [("pay", "payer", "CardError: declined"), ("pay", "payer", None), ("get_weather", "planner", None)] == [
        (each.name, each.agent, each.error) for each in made
    ]


def test_what_is_below_a_delegation_is_the_work_of_the_coworker() -> None:
    """OpenInference writes no span for the coworker's run."""
    scope = "openinference.instrumentation.crewai"

    def tool(number: int, name: str, given: dict[str, Any], parent: int) -> Span:
        held = {"openinference.span.kind": "TOOL", "tool.name": name, "input.value": json.dumps(given)}
        return span(number, f"{name}.run", held, parent=parent, scope=scope)

    run = {"openinference.span.kind": "AGENT", "graph.node.id": "boss"}
    spans = (
        span(1, "boss._execute_core", run, scope=scope),
        tool(2, "Delegate work to coworker", {"task": "pay", "coworker": "payer"}, 1),
        tool(3, "pay", {}, 2),
        tool(4, "check", {}, 1),
    )

    assert [("Delegate work to coworker", "boss"), ("pay", "payer"), ("check", "boss")] == [
        (each.name, each.agent) for each in calls(*spans)
    ]


def test_usages_of_earlier_versions() -> None:
    """OpenInference then wrote the arguments as printed text; CrewAI adds a reminder to some results."""
    reminder = "\n\n\nYou ONLY have access to the following tools, and should NEVER make up tools"
    failed = "\nI encountered an error while trying to use the tool. This was the error: full.\n Tool book accepts"

    def usage(number: int, arguments: str, result: str) -> Span:
        given = {"tool_string": "Action: book", "tool": "book", "calling": f"tool_name='book' arguments={arguments}"}
        kind = {"openinference.span.kind": "TOOL", "tool.name": "book"}
        told = {"input.value": json.dumps(given), "output.value": result}
        return span(number, "ToolUsage._use", {**kind, **told}, scope="openinference.instrumentation.crewai")

    assert [
        (each.name, each.arguments, each.result, each.error)
        for written in (
            usage(1, "{'city': 'Zürich'}", "{'id': 'BK-1'}" + reminder),
            usage(1, "None", failed),
            usage(1, "{'city': 'Zü", "done"),
        )
        for each in calls(written)
    ] == [
        ("book", {"city": "Zürich"}, {"id": "BK-1"}, None),
        ("book", {}, failed, "full"),
        ("book", NOT_RECORDED, "done", None),
    ]
