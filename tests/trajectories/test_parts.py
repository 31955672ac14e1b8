"""A trace that holds a part of a run: the run pauses at its end, or continues after a pause."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from corpora import CORPUS, NAMES, recorded
from dialects.spans import TRACE_ID, built_in_reader, exception, span
from spanscore.model import CloseReason, Completeness, Span, Trace, Unit
from spanscore.trajectories.trajectory import trajectories
from traces import agent, asked, having, lasting, model, tool

REFUND: Final = asked("issue_refund", {"amount": 40}, "c2")
INTERRUPT: Final = (exception("langgraph.errors.GraphInterrupt", "()"),)

APPROVALS: Final = [name for name in NAMES if any(word in name for word in ("approval", "confirmation", "interrupt"))]
WITH_APPROVALS: Final = {
    "agno-tl",
    "langchain-a365",
    "langchain-splunk",
    "openai-agents-a365",
    "openai-agents-splunk",
    "openai-agents-traceai",
    "openai-agents-weave",
}
"""Other recordings in which some runs wait for an approval."""
WITH_OTHER_PAUSES: Final = {
    *WITH_APPROVALS,
    "genkit-go",
    "vercel-ai-4",
    "vercel-ai-6",
    "vercel-ai-6-oi",
    "vercel-ai-6-traceloop",
    "vercel-ai-7",
}
"""Recordings in which a run asks its user, or leaves a call to its client."""
_DECIDED: Final = ("approved", "rejected")
_SEVERAL: Final = ("two-", "two-resumed-", "twice-", "sub-", "sub-refused-")
_FLOWS: Final = ("approved-", "rejected-", "parallel-", "flow-", "flow-rejected-")
_AGAIN: Final = ("two-resumed-asks", "two-again-resumed", "twice-resumed", "twice-again-resumed")
NOT_SEEN: Final = {
    # Without content no span says that the call was refused.
    *(("pydantic-ai-approval-nocontent", f"{scenario}-resumed") for scenario in ("denied", "raised-denied")),
    # The span of the model's request is the agent's, and lasts longer than the tool: earlier calls are uncertain.
    *(("google-adk-confirmation-oi", f"{scenario}-resumed") for scenario in ("confirmed", "parallel", "no-ids")),
    # The application has refused in its own words.
    *(
        (f"{name}-approval{of}", "reason-resumed")
        for name, of in (("openai-agents", "-client"), ("logfire-openai-agents", ""), ("agno", ""))
    ),
    ("openai-agents-approval-nocontent", "rejected-resumed"),
    ("openai-agents-js-approval-sub", "chat-sub-root"),
    # The person has: it looks like a result.
    ("langgraph-js-approval", "mw-reason-resumed"),
    # A run of VoltAgent that waits ends like one that has reached its limit; one of TanStack AI has no end.
    *(("voltagent-approval", f"{each}-asks") for each in ("approved", "two-resumed", "parallel")),
    *(("tanstack-ai-approval", f"{each}-asks") for each in ("approved", "two-resumed", "parallel")),
    # No span names the call.
    ("agno-approval-genai", "alone-approved-asks"),
    *(("agno-approval-tl", f"{each}-asks") for each in ("approved", "team")),
    *(
        ("google-adk-confirmation-oi-again", f"{scenario}-resumed{end}")
        for scenario, end in (
            ("two", "-asks"),
            *((each, "") for each in ("two-again", "twice", "twice-again", "transfer")),
        )
    ),
    # No model is asked while one of two calls still waits.
    ("langgraph-approval-langsmith", "both-resumed-asks"),
    # Content is hidden.
    ("mastra-approval-nocontent", "never-asks"),
    *(("langgraph-approval-nocontent", f"{each}-asks") for each in ("approved", "rejected", "parallel")),
    *(("langgraph-approval-twice-nocontent", f"mw-{each}asks") for each in _SEVERAL),
    *(("agent-framework-approval-nocontent", f"{each}asks") for each in (*_FLOWS, *_SEVERAL[:3])),
    *(("agent-framework-approval-nocontent", f"{each}rejected-resumed") for each in ("", "flow-")),
    ("vercel-ai-7-approval", "hidden-approved-asks"),
    ("openai-agents-js-approval", "hidden-approved-asks"),
}
"""The known limits, by recording and scenario."""
BEGINS_UNSEEN: Final = {
    # The history is at the provider.
    ("openai-agents-approval-client", "conv-resumed"),
    ("openai-agents-approval-client", "conv-rejected-resumed"),
    ("openai-agents-approval-genai", "conv-resumed"),
    # Messages leave the calls out, or are not recorded.
    ("llama-index-approval-nocontent", "approved-resumed"),
    *(("llama-index-approval-tl", f"{scenario}-resumed") for scenario in ("approved", "declined", "parallel")),
    *(("openai-agents-approval-v2", f"{scenario}-resumed") for scenario in ("approved", "parallel")),
    *(("openai-agents-approval-nocontent", f"{scenario}-resumed") for scenario in ("approved", "parallel", "sub")),
    *(("agno-approval-genai", f"alone-{each}-resumed") for each in _DECIDED),
    *(("agno-approval-tl", f"{each}-resumed") for each in ("approved", "team")),
    *(
        (f"{name}-approval-openlit", f"{each}-resumed")
        for name in ("openai-agents", "pydantic-ai")
        for each in (*_DECIDED, "parallel")
    ),
    # The calls are those of another agent.
    *(("llama-index-approval-steps", f"{each}-resumed") for each in ("approved", "refused")),
    ("llama-index-approval-genai", "alone-approved-resumed"),
    *(("langgraph-approval-openlit", f"{each}-resumed") for each in (*_DECIDED, "parallel")),
    *((f"openai-agents-approval-{name}", "hidden-approved-resumed") for name in ("genai", "tl")),
    ("openai-agents-js-approval", "hidden-approved-resumed"),
    *((name, f"hidden-{each}-resumed") for name in ("agno-approval", "langgraph-approval-tl") for each in _DECIDED),
    *(("langgraph-approval-nocontent", f"{each}-resumed") for each in (*_DECIDED, "parallel", "interrupt-approved")),
    *(
        ("langgraph-approval-twice-nocontent", f"{style}-{each}")
        for style in ("mw", "interrupt")
        for each in (*_AGAIN, "sub-resumed", "sub-refused-resumed", "declined-resumed", "parallel-resumed")
    ),
    *(
        (f"{name}-nocontent", each)
        for name, others in (
            ("agent-framework-approval", ("approved", "parallel", "flow")),
            ("google-adk-confirmation", ("confirmed", "transfer", "single")),
        )
        for each in (*_AGAIN, *(f"{other}-resumed" for other in others))
    ),
    *(("langgraph-approval-before", f"refused-resumed{each}") for each in ("", "-update")),
    *(("traceai-langgraph-approval", f"mw-{each}-resumed") for each in _DECIDED),
    *(
        ("traceai-langgraph-approval", f"{each}-resumed")
        for each in ("interrupt-approved", "interrupt-declined", "parallel")
    ),
    *((f"mastra-approval{name}", "context-resumed") for name in ("", "-nocontent")),
    ("voltagent-approval", "long-resumed"),
    *(("tanstack-ai-approval", f"{each}-resumed") for each in ("approved", "denied", "parallel", "two-again")),
    ("tanstack-ai-approval", "both-one-refused-resumed"),
}
"""Parts that continue, of which the earlier calls are not recorded."""


def parts(name: str) -> dict[str, Completeness]:
    """Return what is known of each run of a recording, by trace id."""
    return {trace_id: seen_of(*spans) for trace_id, spans in recorded(name).items()}


def seen_of(*spans: Span) -> Completeness:
    """Return what is known of the only run of a trace."""
    (run,) = trajectories(Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED), built_in_reader())
    return run.completeness


@pytest.mark.parametrize("name", APPROVALS)
def test_recorded_approvals(name: str) -> None:
    """The first part pauses for the refund. The second one continues if the refund was made in it, or was refused."""
    seen = parts(name)
    wrong = []
    for trace in json.loads((CORPUS / f"{name}.truth.json").read_text())["traces"]:
        scenario = trace["scenario"]
        if (name, scenario) in NOT_SEEN:
            continue
        asks = scenario.endswith("-asks")
        made = any(call["name"] == "issue_refund" for call in trace["tool_calls"])
        for trace_id in trace["trace_ids"]:
            found = seen[trace_id]
            refused = any(word in scenario for word in ("denied", "reject", "refused", "reason"))
            continues = "resumed" in scenario and (made or refused)
            unseen = (name, scenario) in BEGINS_UNSEEN
            if ("issue_refund" in found.paused, found.resumed, found.begin_unseen) != (asks, continues, unseen):
                wrong.append((scenario, found.paused, found.resumed, found.begin_unseen))

    assert [] == wrong


@pytest.mark.parametrize("share", range(2))
def test_other_recordings_hold_whole_runs(share: int) -> None:
    """No ordinary run is taken for a part of one."""
    others = {name: parts(name).values() for name in NAMES[share::2] if name not in APPROVALS}
    found = {name for name, runs in others.items() if any(each.paused for each in runs)}
    unseen = {name for name, runs in others.items() if any(each.resumed or each.uncertain for each in runs)}

    assert (WITH_OTHER_PAUSES & others.keys(), WITH_APPROVALS & others.keys()) == (found, unseen)


def test_a_run_that_goes_on_does_not_pause() -> None:
    """Its agent asked a model after the call that waits had ended."""
    waits = having(tool(3, "issue_refund", {}, "c2", parent=1, events=INTERRUPT), {})
    spans = (lasting(agent(1), 90), model(2, REFUND, parent=1), waits)

    assert ("issue_refund",) == seen_of(*spans).paused
    assert () == seen_of(*spans, model(40, parent=1)).paused
    # JavaScript cuts times to milliseconds.
    assert ("issue_refund",) == seen_of(*spans, model(40, parent=1)._replace(start_ns=waits.end_ns)).paused


@pytest.mark.parametrize(("name", "expected"), [("two", ("issue_refund",)), ("one", ()), (None, ())])
def test_a_run_pauses_beside_other_conversations(name: str | None, expected: tuple[str, ...]) -> None:
    """A model of the same agent that is asked in another conversation does not continue it."""
    named = {"one": {"gen_ai.conversation.id": "one"}, name: {"gen_ai.conversation.id": name} if name else {}}
    other = having(agent(70, parent=90), {"gen_ai.conversation.id": "three"})
    spans = (
        lasting(agent(90, "batch", at_ms=0), 99),
        having(lasting(agent(1, parent=90), 30), named["one"]),
        model(2, REFUND, parent=1),
        tool(3, "issue_refund", {}, "c2", parent=1, events=INTERRUPT),
        having(lasting(agent(50, parent=90), 20), named[name]),
        model(51, parent=50),
    )
    runs = trajectories(
        Trace(trace_id=TRACE_ID, spans=(*spans, other), close_reason=CloseReason.ROOT_ENDED),
        built_in_reader(),
        Unit.AGENT,
    )

    assert expected == next(run for run in runs if run.root_span_id == spans[1].span_id).completeness.paused


@pytest.mark.parametrize(
    ("spans", "reason", "expected"),
    [
        ([], CloseReason.TIMED_OUT, ("issue_refund",)),
        ([], CloseReason.SHUTDOWN, ()),
        ([agent(1)], CloseReason.ROOT_ENDED, ()),
        ([lasting(agent(1, parent=9), 90)], CloseReason.TIMED_OUT, ()),
        ([agent(1)._replace(end_ns=0)], CloseReason.TIMED_OUT, ("issue_refund",)),
        ([tool(5, "issue_refund", {"amount": 40}, "c2", parent=1)], CloseReason.TIMED_OUT, ()),
        ([model(9, told={"c2": "done"}, parent=1)], CloseReason.TIMED_OUT, ()),
        ([model(9, parent=1)], CloseReason.TIMED_OUT, ()),
    ],
    ids=["blocks", "stopped", "root ended", "agent ended", "agent runs", "executed", "answered", "a later answer"],
)
def test_a_run_that_blocks(spans: list[Span], reason: CloseReason, expected: tuple[str, ...]) -> None:
    """Its trace timed out, its root has not ended, and its last answer asks for a call that has no span."""
    before = [model(2, asked("lookup_order", {}, "c1"), parent=1), tool(3, "lookup_order", {}, "c1", parent=1)]
    trace = Trace(
        trace_id=TRACE_ID,
        spans=(*before, model(4, REFUND, told={"c1": "A-1"}, parent=1), *spans),
        close_reason=reason,
    )
    (run,) = trajectories(trace, built_in_reader())

    assert expected == run.completeness.paused
    assert expected == tuple(call.name for call in run.withheld)


def test_a_run_that_blocks_for_its_first_call() -> None:
    """The call is not made, though no span shows an execution. A trace of one step of a run does not block."""
    node = span(3, "node", {"gen_ai.operation.name": "invoke_workflow"}, parent=1)
    for spans, expected in (([node], ("issue_refund",)), ([], ())):
        trace = Trace(trace_id=TRACE_ID, spans=(*spans, model(4, REFUND, parent=1)), close_reason=CloseReason.TIMED_OUT)
        (run,) = trajectories(trace, built_in_reader())

        assert ((), expected) == (run.calls, run.completeness.paused)


def test_a_run_above_waits_too() -> None:
    """Each of the runs of agents around a call that waits is a part."""
    spans = (
        lasting(agent(1, "planner"), 90),
        lasting(agent(2, "refunds", parent=1), 80),
        model(3, REFUND, parent=2),
        tool(4, "issue_refund", {}, "c2", parent=2, events=INTERRUPT),
    )
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    runs = trajectories(trace, built_in_reader(), Unit.AGENT)

    assert [("planner", ("issue_refund",)), ("refunds", ("issue_refund",))] == [
        (run.agent, run.completeness.paused) for run in runs
    ]


def test_paused_runs_are_not_complete() -> None:
    """Neither is one whose beginning is in another trace."""
    assert Completeness().complete
    assert not Completeness(paused=("issue_refund",)).complete
    assert not Completeness(begin_unseen=True).complete


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([tool(2, "issue_refund", {}, "c2", parent=1), model(3, parent=1)], True),
        ([model(2, REFUND, parent=1), tool(3, "issue_refund", {}, "c2", parent=1)], False),
        ([tool(2, "load_user", {}, parent=1), model(3, parent=1)], False),
        ([tool(2, "issue_refund", {}, parent=1), model(3, told={"c2": "done"}, parent=1)], True),
        ([tool(2, "issue_refund", {}, "c2", parent=1)._replace(resource={"host": "b"}), model(3, parent=1)], False),
        ([tool(2, "issue_refund", {}, "c2", parent=1), model(3, parent=2), model(4, parent=1)], True),
        ([tool(2, "issue_refund", {}, "c2", parent=1)], False),
    ],
    ids=[
        "executed first",
        "asked for first",
        "a workflow calls a tool first",
        "the model is sent results",
        "another process",
        "a model below the call",
        "no model",
    ],
)
def test_a_run_that_continues(spans: list[Span], *, expected: bool) -> None:
    """Its first call was made before the first model of the trace was asked, in the same process."""
    assert expected is seen_of(lasting(agent(1), 90), *spans).begin_unseen


def test_a_call_that_was_only_answered_is_no_execution() -> None:
    """Its id may be one of an earlier turn, as providers count from 0."""
    turns = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "response": "of an earlier turn"}]}]
    turns += [{"role": "user", "parts": [{"type": "text", "content": "and now?"}]}]
    spans = [
        having(model(2, asked("no_such_tool", {}, "c0"), parent=1), {"gen_ai.input.messages": json.dumps(turns)}),
        model(4, asked("search", {}, "c1"), told={"c0": "unknown tool"}, parent=1),
        tool(5, "search", {}, "c1", parent=1),
    ]

    assert not seen_of(lasting(agent(1), 90), *spans).begin_unseen


@pytest.mark.parametrize(("told", "expected"), [({"c2": "done"}, True), ({}, False)])
def test_times_that_tie(told: dict[str, Any], *, expected: bool) -> None:
    """JavaScript cuts times to milliseconds: then the model has to be sent the result of the call."""
    call = tool(2, "issue_refund", {}, "c2", parent=1)
    first = model(3, told=told, parent=1)._replace(start_ns=call.start_ns)

    assert expected is seen_of(lasting(agent(1), 90), call, first).begin_unseen
