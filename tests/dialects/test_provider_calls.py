"""Calls that a model's provider executes, in the wire formats of OpenAI and Anthropic, with and without approval."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, read, span
from spanscore.model import NOT_RECORDED, Span, Trajectory
from traces import agent

USER = {"role": "user", "content": "Refund 40 for A-1."}
LOOKED_UP = {
    "type": "mcp_call",
    "id": "m1",
    "name": "lookup",
    "arguments": '{"order": "A-1"}',
    "output": '{"paid": 40}',
}
ASKS = {
    "type": "mcp_approval_request",
    "id": "r1",
    "name": "refund",
    "arguments": '{"amount": 40}',
    "server_label": "s",
}
MADE = {"type": "mcp_call", "id": "m2", "name": "refund", "arguments": '{"amount": 40}', "output": "ok"}
APPROVED_CALL = {**MADE, "approval_request_id": "r1"}


def decided(*, approve: bool) -> dict[str, Any]:
    """A person's decision."""
    return {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": approve}


def openinference(number: int, sent: list[Any], said: list[Any], **fields: Any) -> Span:
    """A request to OpenAI's Responses API, as OpenInference writes it."""
    attributes = {
        "openinference.span.kind": "LLM",
        "input.value": json.dumps({"model": "gpt", "input": sent}),
        "output.value": json.dumps({"id": f"resp_{number}", "output": said}),
    }
    return span(number, "Response", attributes, **fields)


def semantic(number: int, sent: list[Any], said: list[Any], **fields: Any) -> Span:
    """The same by the GenAI conventions, with items as they come from the API."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(sent),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": said}]),
    }
    return span(number, "chat", attributes, **fields)


both = pytest.mark.parametrize("model", [openinference, semantic])


def run_of(*spans: Span) -> Trajectory:
    """Return the only run of a trace."""
    (found,) = read(*spans)
    return found


def names(run: Trajectory) -> list[tuple[str, bool]]:
    """Return the names of the calls, and whether each was made before the pause."""
    return [(each.name, each.restored) for each in run.calls]


@both
@pytest.mark.parametrize("above", [(), (agent(1),)])
def test_a_run_pauses_for_an_approval(model: Any, above: tuple[Span, ...]) -> None:
    """Also where only the client of the API is instrumented."""
    run = run_of(*above, model(2, [USER], [LOOKED_UP, ASKS], parent=len(above)))

    assert [("lookup", False)] == names(run)
    assert (("refund",), ("refund", "waits")) == (run.completeness.paused, run.withheld[0])


@both
@pytest.mark.parametrize("above", [(), (agent(1),)])
def test_an_approved_call_is_made_once(model: Any, above: tuple[Span, ...]) -> None:
    """The next trace has the call, with the id of its approval, and what was sent has the calls before it."""
    sent = [USER, LOOKED_UP, ASKS, decided(approve=True)]
    run = run_of(*above, model(2, sent, [APPROVED_CALL], parent=len(above)))

    assert [("lookup", True), ("refund", False)] == names(run)
    assert (True, (), ()) == (run.completeness.resumed, run.completeness.paused, run.withheld)
    assert ("r1", {"amount": 40}, "ok") == (run.calls[1].call_id, run.calls[1].arguments, run.calls[1].result)


@both
def test_a_refused_call_is_not_made(model: Any) -> None:
    """In a trace of its own, and in the same trace."""
    asks, refuses = model(2, [USER], [LOOKED_UP, ASKS], parent=1), [USER, LOOKED_UP, ASKS, decided(approve=False)]
    resumed = run_of(agent(1), model(2, refuses, [], parent=1))
    whole = run_of(agent(1), asks, model(9, refuses, [], parent=1))

    assert ([("lookup", True)], [("refund", "refused")]) == (names(resumed), [*resumed.withheld])
    assert ([("lookup", False)], [("refund", "refused")], ()) == (
        names(whole),
        [*whole.withheld],
        whole.completeness.paused,
    )


@both
def test_the_same_trace_goes_on(model: Any) -> None:
    """The approved call is one call, and the run no longer pauses."""
    asks = model(2, [USER], [LOOKED_UP, ASKS], parent=1)
    run = run_of(agent(1), asks, model(9, [USER, LOOKED_UP, ASKS, decided(approve=True)], [APPROVED_CALL], parent=1))

    assert [("lookup", False), ("refund", False)] == names(run)
    assert ((), ()) == (run.withheld, run.completeness.paused)


@both
def test_a_history_at_the_provider_is_unseen(model: Any) -> None:
    """Only the decision is sent, with the id of the previous response."""
    for above in ((), (agent(1),)):
        run = run_of(*above, model(2, [decided(approve=True)], [APPROVED_CALL], parent=len(above)))
        assert (True, [("refund", False)]) == (run.completeness.begin_unseen, names(run))


def test_two_approvals_in_a_row() -> None:
    """The call that the first approval allows was made before the second pause."""
    again = {**ASKS, "id": "r2"}
    sent = [
        USER,
        ASKS,
        decided(approve=True),
        APPROVED_CALL,
        again,
        {**decided(approve=True), "approval_request_id": "r2"},
    ]
    run = run_of(agent(1), openinference(2, sent, [{**MADE, "id": "m3", "approval_request_id": "r2"}], parent=1))

    assert [("refund", True), ("refund", False)] == names(run)


def test_a_decision_of_an_earlier_turn_resumes_nothing() -> None:
    """The user has said something since."""
    sent = [USER, ASKS, decided(approve=True), APPROVED_CALL, {"role": "user", "content": "And A-2?"}]
    run = run_of(agent(1), openinference(2, sent, [LOOKED_UP], parent=1))

    assert ([("lookup", False)], False) == (names(run), run.completeness.resumed)


@pytest.mark.parametrize("error", ["not allowed", {"type": "http_error", "code": 403, "message": "not allowed"}])
def test_a_call_of_openai_that_failed(error: Any) -> None:
    """Its item has an error."""
    item = {**MADE, "output": None, "error": error}
    (made,) = run_of(agent(1), openinference(2, [USER], [item], parent=1)).calls

    assert ("not allowed", {"amount": 40}) == (made.error, made.arguments)


@pytest.mark.parametrize("kind", ["mcp_tool_use", "server_tool_use"])
def test_calls_of_anthropic_s_provider(kind: str) -> None:
    """The result stands in the same answer; no span of the call is missing."""
    blocks = [
        {"type": kind, "id": "t1", "name": "search", "input": {"q": "Bern"}},
        {
            "type": "mcp_tool_result",
            "tool_use_id": "t1",
            "is_error": False,
            "content": [{"type": "text", "text": "sunny"}],
        },
        {"type": kind, "id": "t2", "name": "search", "input": {"q": "?"}},
        {"type": "web_search_tool_result", "tool_use_id": "t2", "is_error": True, "content": "no words"},
        {"type": "text", "text": "It is sunny."},
    ]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([{"role": "a", "content": blocks}]),
    }
    run = run_of(agent(1), span(2, "chat", attributes, parent=1))

    assert run.calls == (
        call(None, "search", {"q": "Bern"}, result="sunny", call_id="t1", agent="planner", at_ms=3),
        call(None, "search", {"q": "?"}, result="no words", error="no words", call_id="t2", agent="planner", at_ms=3),
    )
    assert run.completeness.complete


def test_a_call_without_a_result_was_made() -> None:
    """Its result is null."""
    (made,) = run_of(
        agent(1), semantic(2, [USER], [{"type": "mcp_call", "id": "m1", "name": "lookup"}], parent=1)
    ).calls

    assert (None, NOT_RECORDED, None) == (made.result, made.arguments, made.error)


def test_calls_of_one_answer_are_made_one_after_the_other() -> None:
    """The provider continues with what a call has returned: no two are asked for together."""
    (run,) = read(agent(1), openinference(2, [USER], [LOOKED_UP, MADE], parent=1), model_calls=True)

    assert [("lookup", None), ("refund", None)] == [(each.name, each.turn) for each in run.calls]


def test_a_refused_call_alone() -> None:
    """In a trace of the client's only: nothing else was made, and that is known."""
    run = run_of(openinference(2, [USER, ASKS, decided(approve=False)], [{"type": "message", "role": "assistant"}]))

    assert ((), [("refund", "refused")], None) == (run.calls, [*run.withheld], run.unread)
