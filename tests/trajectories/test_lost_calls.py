"""A run lacks the span of a tool if a later message holds the result of its call, and nobody else gave that result."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from catalogue.bounds import costs_at_most
from corpora import NAMES, recorded
from dialects.spans import built_in_reader, read, span
from spanscore.model import Span, StatusCode, Unit
from spanscore.trajectories.lost_calls import RUN_THEIR_TOOLS
from spanscore.trajectories.readings import Readings
from spanscore.trajectories.tree import SpanTree
from traces import BERN, PARIS, agent, asked, having, model, tool

SAYS: Final = {"c1": "12 degrees", "c2": "9 degrees"}
ROOT: Final = agent(1, scope="shop")
BEGIN: Final = (
    ROOT,
    model(2, asked("weather", PARIS, "c1"), parent=1, scope="shop"),
    tool(3, "weather", PARIS, "c1", parent=1, scope="shop"),
)
"""A run whose emitter writes spans of tools."""
END: Final = model(8, told=SAYS, parent=1, scope="shop")
"""The model is sent the results of two calls."""


def missing(*spans: Span) -> int:
    """Return how many spans a run lacks."""
    (run,) = read(*spans)
    assert run.completeness.complete is (run.completeness.spans_missing == 0)
    return run.completeness.spans_missing


def asking(name: str, arguments: Any, **fields: Any) -> Span:
    """Return the request for a second call."""
    fields = {"parent": 1, "scope": "shop", **fields}
    return model(5, asked(name, arguments, "c2"), told={"c1": SAYS["c1"]}, **fields)


def answered(result: Any) -> Span:
    """Return the model's span that was sent this result of the second call."""
    return model(8, told={**SAYS, "c2": result}, parent=1, scope="shop")


def test_the_call_is_known_and_its_span_is_missing() -> None:
    """Another call of the tool has a span, so that this one had one; what the messages say of it stays."""
    (run,) = read(*BEGIN, asking("weather", BERN), END)

    assert [("weather", PARIS, "c1"), ("weather", BERN, "c2")] == [
        (call.name, call.arguments, call.call_id) for call in run.calls
    ]
    assert (1, False) == (run.completeness.spans_missing, run.completeness.complete)


def test_a_span_that_comes_late_mends_it() -> None:
    """With or without its own id, a call that has a span is not missing."""
    for call_id in ("c2", None):
        assert 0 == missing(*BEGIN, asking("weather", BERN), tool(6, "weather", BERN, call_id, parent=1), END)


@pytest.mark.parametrize(
    "result",
    [
        "",
        "BK-1",
        {"error": "policy not found"},
        [{"text": '{"ok": true}', "input": None}],
        "card declined: insufficient funds",
        "An error occurred while running the tool. Please try again.",
        "Error: Function failed.",
        "Tool error: timed out",
        "Tool with name 'book' failed to execute due to the error: no such room",
    ],
)
def test_a_tool_has_answered(result: Any) -> None:
    """Whatever the tool is, and whatever it returned or failed with."""
    assert 1 == missing(*BEGIN, asking("book", {"days": "many"}), answered(result))


@pytest.mark.parametrize(
    "result",
    [
        "Error: book is not a valid tool, try one of [weather].",
        "Unknown tool name: 'book'. Available tools: 'weather'",
        "ToolNotFoundError: The tool named 'book' doesn't exist.",
        "<tool_use_error>Error: No such tool available: book</tool_use_error>",
        "Error: Argument parsing failed.",
        "Input validation failed for tool 'book': 'many' is not of type 'integer' (at $.days)",
        "1 validation error: days: Input should be a valid integer",
        [{"type": "int_parsing", "loc": ["days"], "msg": "Input should be a valid integer"}],
        {"error": "Invoking `book()` failed as the following mandatory input parameters are not present: city"},
        {"type": "error-text", "value": "Model tried to call unavailable tool 'book'."},
    ],
)
def test_a_framework_has_answered(result: Any) -> None:
    """It answers for a tool that it does not know, and for arguments that it refuses, without a span."""
    assert 0 == missing(*BEGIN, asking("book", {"days": "many"}), answered(result))


def test_a_provider_has_answered() -> None:
    """A provider's own tools have their result in the message of the model, beside the request."""
    call = {"type": "tool-call", "toolCallId": "c2", "toolName": "search", "input": {"query": "Bern"}}
    result = {"type": "tool-result", "toolCallId": "c2", "toolName": "search", "output": {"hits": []}}
    step = {"ai.operationId": "ai.generateText.doGenerate"}
    asks = having(model(5, parent=1), {**step, "ai.response.toolCalls": json.dumps([call])})

    def told(*messages: Any) -> Span:
        return having(model(8, parent=1), {**step, "ai.prompt.messages": json.dumps(messages)})

    assert 0 == missing(*BEGIN, asks, told({"role": "assistant", "content": [call, result]}))
    tool_message = {"role": "tool", "content": [result]}
    assert 1 == missing(*BEGIN, asks, told({"role": "assistant", "content": [call]}, tool_message))


def test_an_emitter_without_spans_of_tools() -> None:
    """All calls are known from messages: none of them is missing."""
    (run,) = read(ROOT, BEGIN[1], asking("weather", BERN), END)

    assert (["c1", "c2"], 0) == ([call.call_id for call in run.calls], run.completeness.spans_missing)


def test_a_framework_that_records_each_execution() -> None:
    """The span of the only call is missed, too, where the framework of the agent's span writes one for each."""
    (run,) = read(agent(1, scope="pydantic-ai"), BEGIN[1], asking("weather", BERN), END)

    assert (["c1", "c2"], 2) == ([call.call_id for call in run.calls], run.completeness.spans_missing)


def test_scopes_that_record_each_execution() -> None:
    """They are known by recordings: of each there are agents and their tools."""
    unseen = set(RUN_THEIR_TOOLS)
    for spans in (tuple(each) for name in NAMES for each in recorded(name).values()):
        if not unseen.isdisjoint(each.scope for each in spans):
            tree = SpanTree(Readings.of(spans, built_in_reader()))
            unseen.difference_update(tree.spans[index].scope for index in tree.calls if tree.agents)

    assert set() == unseen


def test_a_request_without_an_answer() -> None:
    """The run has ended, or a client has to run it."""
    assert 0 == missing(*BEGIN, asking("weather", BERN))


def test_what_no_request_asks_for() -> None:
    """Messages of earlier turns hold results of calls that are not of this run."""
    assert 0 == missing(*BEGIN, model(5, told={**SAYS, "c0": "3 degrees"}, parent=1, scope="shop"))


def test_an_id_that_an_earlier_turn_had_as_well() -> None:
    """Providers that count from 0 use it again: the result was sent before the call was asked for."""
    earlier = model(4, told={"c2": "1 degree"}, parent=1, scope="shop")

    assert 0 == missing(*BEGIN, earlier, asking("weather", BERN), END)


def test_a_call_that_another_run_was_sent_the_result_of() -> None:
    """A client, or a person, may have run it between two runs of one conversation."""
    second = [agent(7, parent=9), END._replace(parent_span_id=agent(7).span_id)]
    root = Span(ROOT.trace_id, agent(9).span_id, b"", "app", ROOT.start_ns, ROOT.end_ns)
    first = [each._replace(parent_span_id=root.span_id) if each is ROOT else each for each in BEGIN]

    assert 0 == missing(root, *first, asking("weather", BERN), *second)


def test_a_call_that_waits_or_was_refused() -> None:
    """Such a call was not made."""
    told = model(8, told={**SAYS, "c2": "The tool call was denied."}, parent=1, scope="shop")

    assert 0 == missing(*BEGIN, asking("weather", BERN), told)


HANDS_OVER: Final = {"gen_ai.operation.name": "handoff", "gen_ai.agent.handoff.target.name": "writer"}


@pytest.mark.parametrize(
    ("between", "later", "lacking"),
    [
        ([], {}, 1),
        ([], None, 0),
        ([], {"parent": 20}, 0),
        ([tool(6, "weather", parent=1)], {}, 0),
        ([agent(6, "writer", parent=1)], {}, 0),
        ([span(6, "writer", HANDS_OVER, parent=1)], {}, 0),
    ],
    ids=["a call is not shown", "the run ends", "another run goes on", "a call", "a sub-agent", "a hand-over"],
)
def test_what_was_asked_for_is_not_recorded(between: list[Span], later: dict[str, Any] | None, lacking: int) -> None:
    """The finish reason says that a model asked for calls, and it was asked again, with their results."""

    def hidden(number: int, reason: str, **fields: Any) -> Span:
        answer = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": [reason]}
        return span(number, "chat", answer, **{"parent": 1, **fields})

    asking = [hidden(2, "tool_calls"), tool(3, "weather", parent=1), hidden(5, "tool_calls")]
    end = [] if later is None else [agent(20, parent=9, at_ms=30), hidden(8, "stop", **later)]

    assert lacking == missing(span(9, "app", at_ms=0), agent(1, parent=9), *asking, *between, *end)


def test_only_the_run_that_asked_lacks_it() -> None:
    """With one trajectory for each run of an agent, the others are whole."""
    other = [
        agent(10, "writer", parent=1),
        model(11, asked("write", PARIS, "c3"), parent=10),
        tool(12, "write", PARIS, "c3", parent=10),
    ]
    runs = read(*BEGIN, asking("weather", BERN), END, *other, unit=Unit.AGENT)

    assert {"planner": 1, "writer": 0} == {str(run.agent): run.completeness.spans_missing for run in runs}


@pytest.mark.parametrize(
    ("scope", "beside", "expected"),
    [
        ("pydantic-ai", (), 1),
        ("agent_framework", (tool(3, "weather", BERN, "c2", parent=1),), 1),
        ("pydantic-ai", (model(4, parent=1, at_ms=1),), 0),
        ("pydantic-ai", (span(4, "cached answer", parent=1),), 0),
        ("pydantic-ai", (span(4, "POST /weather", parent=2),), 1),
        ("openinference.instrumentation.langchain", (), 0),
        ("opentelemetry.instrumentation.agno", (), 0),
        ("crewai", (), 0),
    ],
)
def test_a_call_for_which_no_model_asked(scope: str, beside: tuple[Span, ...], expected: int) -> None:
    """The framework writes a span for each request to a model; other spans beside the calls may stand for these."""
    run = (agent(1, scope=scope), tool(2, "weather", PARIS, "c1", parent=1, scope=scope))

    assert expected == missing(*run, *(each._replace(scope=scope) for each in beside))
    assert 0 == missing(run[0]._replace(status_code=StatusCode.ERROR), *run[1:], *beside)


@pytest.mark.parametrize(("metadata", "expected"), [({"lc_agent_name": "planner"}, 1), ({}, 0)])
def test_a_graph_may_call_tools_without_a_model(metadata: dict[str, str], expected: int) -> None:
    """An agent of LangChain does not."""
    kinds = {"openinference.span.kind": "AGENT"}, {"openinference.span.kind": "CHAIN"}
    called = {"openinference.span.kind": "TOOL", "tool.name": "weather", "metadata": json.dumps(metadata)}
    scope = "openinference.instrumentation.langchain"
    graph = [span(1, "planner", kinds[0], scope=scope), span(2, "tools", kinds[1], parent=1, scope=scope)]

    assert expected == missing(*graph, span(3, "weather", called, parent=2, scope=scope))


@pytest.mark.parametrize(("told", "expected"), [("gone", 1), ("tool `delete` not found", 0)])
def test_a_call_without_an_id(told: str, expected: int) -> None:
    """Gemini's calls have none: the next model is sent the results in their order."""
    requests = [asked("weather", PARIS), asked("delete", {"order": 1})]
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": "Go."}]},
        {"role": "assistant", "parts": requests},
        *({"role": "tool", "parts": [{"type": "tool_call_response", "response": each}]} for each in ("fine", told)),
    ]
    run = (
        ROOT,
        model(2, *requests, parent=1, scope="shop"),
        tool(3, "weather", PARIS, "made-up", parent=1, scope="shop"),
    )
    after = having(model(8, parent=1, scope="shop"), {"gen_ai.input.messages": json.dumps(sent)})

    assert (expected, 0) == (missing(*run, after), missing(*run))


def test_many_calls_without_ids() -> None:
    """Of 2,000 in one answer each is told by what the next model was sent, which is looked at once: within 1 s."""
    requests = [asked("weather", {"day": number}) for number in range(2_000)]
    results = [{"type": "tool_call_response", "response": f"{number} degrees"} for number in range(2_000)]
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": "Go."}]},
        {"role": "assistant", "parts": requests},
        {"role": "tool", "parts": results},
    ]
    asks = model(2, *requests, parent=1, scope="shop")
    after = having(model(8, parent=1, scope="shop"), {"gen_ai.input.messages": json.dumps(sent)})

    with costs_at_most(cpu_s=1):
        assert 1_999 == missing(ROOT, asks, tool(3, "weather", {"day": 0}, "made-up", parent=1, scope="shop"), after)
