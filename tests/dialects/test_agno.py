from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, calls, read, span
from spanscore.model import Span, StatusCode

SCOPE = "openinference.instrumentation.agno"


def tool(number: int, **attributes: Any) -> Span:
    """A tool span."""
    held = {"openinference.span.kind": "TOOL", "tool.name": "book", **attributes}
    return span(number, "book", held, parent=1, scope=SCOPE)


def test_results_are_python_reprs() -> None:
    """Arguments are JSON, results are printed; the session stands on the agent's span alone."""
    run = {"openinference.span.kind": "AGENT", "agent.name": "planner", "session.id": "s-1"}
    booked = tool(2, **{"input.value": '{"hotel": "Ritz"}', "output.value": "{'id': 'BK-1', 'paid': True}"})

    (trajectory,) = read(span(1, "planner.run", run, scope=SCOPE), booked)

    assert trajectory.calls == (
        call(2, "book", {"hotel": "Ritz"}, result={"id": "BK-1", "paid": True}, agent="planner"),
    )
    assert (trajectory.agent, trajectory.conversation_id) == ("planner", "s-1")


def test_tool_parameters_are_the_arguments() -> None:
    """Other instrumentors keep the tool's schema there."""
    assert calls(tool(2, **{"tool.parameters": '{"hotel": "Ritz"}'})) == [call(2, "book", {"hotel": "Ritz"})]


def test_a_failure_is_a_status_and_the_text_for_the_model() -> None:
    """There is no exception event."""
    failed = tool(2, **{"input.value": "{}", "output.value": "no rooms"})
    failed = failed._replace(status_code=StatusCode.ERROR, status_message="no rooms")

    assert calls(failed) == [call(2, "book", {}, result="no rooms", error="no rooms")]


def test_under_openllmetry() -> None:
    """The execution is printed as a whole, and a failure stands in it alone; without content nobody knows of it."""
    rest = "updated_session_state=None images=None videos=None audios=None files=None"

    def executed(number: int, output: str | None) -> Span:
        held = {"traceloop.span.kind": "tool", "gen_ai.tool.name": "book", "traceloop.entity.input": '{"nights": 2}'}
        told = {} if output is None else {"traceloop.entity.output": f"{output} {rest}"}
        scope = "opentelemetry.instrumentation.agno"
        return span(number, "book.tool", {**held, **told}, parent=1, scope=scope, status_code=StatusCode.OK)

    agent = span(1, "planner.agent", {"traceloop.span.kind": "agent", "gen_ai.agent.name": "planner"})
    nights: dict[str, Any] = {"nights": 2}

    assert calls(
        agent,
        executed(2, "status='success' result={'id': 'BK-1'} error=None"),
        executed(3, "status='success' result=an error=None of mine error=None"),
        executed(4, "status='failure' result=None error='no \"rooms\"'"),
        executed(5, None),
    ) == [
        call(2, "book", nights, result={"id": "BK-1"}, agent="planner"),
        call(3, "book", nights, result="an error=None of mine", agent="planner"),
        call(4, "book", nights, error='no "rooms"', agent="planner"),
        call(5, "book", nights, agent="planner"),
    ]


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("clerk.run", "I have tools to execute, but I need confirmation.", (("",), False)),
        ("clerk.run", "done", ((), False)),
        ("clerk.continue_run", "done", ((), True)),
        ("clerk.acontinue_run", "Team run paused. The following require input:", (("",), True)),
    ],
)
def test_a_run_that_waits_or_continues(name: str, said: str, expected: tuple[tuple[str, ...], bool]) -> None:
    """Agno's own result says that it waits; the name of its method, that it continues."""
    attributes = {"openinference.span.kind": "AGENT", "agent.name": "clerk", "output.value": said}
    (run,) = read(span(1, name, attributes, scope="openinference.instrumentation.agno"))

    assert expected == (run.completeness.paused, run.completeness.begin_unseen)


def test_a_team_under_openllmetry_begins_its_run() -> None:
    """Its span is a workflow's: the tools below are not those with which a run continues."""
    scope = "opentelemetry.instrumentation.agno"
    held = {"traceloop.span.kind": "workflow", "agno.team.name": "desk", "traceloop.entity.output": "Team run paused."}
    made = {"traceloop.span.kind": "tool", "gen_ai.tool.name": "book", "traceloop.entity.input": "{}"}
    (run,) = read(span(1, "desk.team", held, scope=scope), span(2, "book.tool", made, parent=1, scope=scope))

    assert ("desk", ("",), False) == (run.agent, run.completeness.paused, run.completeness.resumed)


@pytest.mark.parametrize(("given", "expected"), [("go", False), (None, True)])
def test_a_team_that_streams_writes_no_output(given: str | None, *, expected: bool) -> None:
    """With its content recorded, that is no sign of a pause."""
    scope = "opentelemetry.instrumentation.agno"
    held = {"traceloop.span.kind": "workflow", "agno.team.name": "desk", "traceloop.entity.input": given}
    known = {key: value for key, value in held.items() if value is not None}
    (run,) = read(span(1, "desk.team", known, scope=scope))

    assert expected is run.completeness.may_pause


@pytest.mark.parametrize(
    ("said", "paused"),
    [("I have tools to execute, but I need confirmation.", ("",)), ("Booked: I have tools to execute, but ", ())],
)
def test_opentelemetrys_run_ends_with_a_constant_if_it_waits(said: str, paused: tuple[str, ...]) -> None:
    """The answer of the agent's span is what Agno gives the run."""
    parts = [{"role": "assistant", "parts": [{"type": "text", "content": said}]}]

    (trajectory,) = read(opentelemetrys_run(**{"gen_ai.output.messages": json.dumps(parts)}))

    assert trajectory.completeness.paused == paused


@pytest.mark.parametrize("confirmed", [True, False])
def test_opentelemetrys_run_that_continues_is_given_the_persons_answer(*, confirmed: bool) -> None:
    """The answer stands where the result of the call would."""
    part = {"type": "tool_call_response", "id": "c1", "response": {"confirmed": confirmed}}
    given = [{"role": "tool", "parts": [part]}]

    (trajectory,) = read(opentelemetrys_run(**{"gen_ai.input.messages": json.dumps(given)}))

    assert trajectory.completeness.begin_unseen


def opentelemetrys_run(**attributes: Any) -> Span:
    """The span of an agent's run."""
    held = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner", **attributes}
    return span(1, "invoke_agent planner", held, scope="opentelemetry.instrumentation.genai.agno")
