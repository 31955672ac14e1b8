"""TanStack AI's OpenTelemetry middleware, as version 0.58.0 writes it."""

from __future__ import annotations

import json

import pytest

from dialects.spans import call, exception, read, span
from spanscore.model import Span, StatusCode


def tool(number: int, outcome: str, said: str | None = None, answer: str | None = None) -> Span:
    """A tool span; without content if nothing is said."""
    texts = {"gen_ai.input.messages": said, "gen_ai.output.messages": answer}
    told = {key: json.dumps([{"role": "tool", "content": text}]) for key, text in texts.items() if text is not None}
    known = {"gen_ai.tool.name": "book", "gen_ai.tool.call.id": f"c{number}", "tanstack.ai.tool.outcome": outcome}
    return span(number, "execute_tool book", {**known, **told}, parent=1)


def test_content_is_in_messages_of_the_tool() -> None:
    """A failed call has a result of the middleware's; without content nothing but the names is known."""
    raised = tool(3, "error", '{"n": 2}', "null")
    (trajectory,) = read(
        span(1, "chat m", {"tanstack.ai.iterations": 2}),
        tool(2, "success", '{"n": 1}', '{"id": "BK-1"}'),
        raised._replace(status_code=StatusCode.ERROR, events=(exception("Error", "full"),)),
        tool(4, "error"),
        tool(5, "success"),
    )

    assert trajectory.calls == (
        call(2, "book", {"n": 1}, result={"id": "BK-1"}, call_id="c2"),
        call(3, "book", {"n": 2}, error="Error: full", error_type="Error", call_id="c3"),
        call(4, "book", error="error", call_id="c4"),
        call(5, "book", call_id="c5"),
    )


def test_without_messages_the_attributes_of_the_conventions_count() -> None:
    """A later version may write them."""
    held = {"gen_ai.tool.call.arguments": '{"n": 1}', "gen_ai.tool.call.result": '{"id": "BK-1"}'}
    made = tool(2, "success")
    (run,) = read(
        span(1, "chat m", {"tanstack.ai.iterations": 1}), made._replace(attributes={**made.attributes, **held})
    )
    assert run.calls == (call(2, "book", {"n": 1}, result={"id": "BK-1"}, call_id="c2"),)


def iteration(number: int, index: int, reason: str, last: str = "user") -> Span:
    """A request to a model."""
    messages = json.dumps([{"role": "user", "content": "Book."}, {"role": last, "content": "said"}])
    told = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": (reason,)}
    return span(number, "chat m", {**told, "tanstack.ai.iteration": index, "gen_ai.input.messages": messages}, parent=1)


@pytest.mark.parametrize(
    ("root", "expected"), [([], True), ([span(1, "chat m", {"tanstack.ai.iterations": 1})], False)]
)
def test_a_run_whose_span_never_ends_may_pause(root: list[Span], *, expected: bool) -> None:
    """One that waits writes neither its own span nor that of its last request; one that has reached its limit does."""
    (run,) = read(*root, iteration(2, 0, "tool_calls"), tool(3, "success"))

    assert expected is run.completeness.may_pause


@pytest.mark.parametrize(
    ("index", "last", "expected"), [(0, "tool", True), (0, "user", False), (1, "tool", False), (0, "assistant", False)]
)
def test_a_run_that_begins_with_a_result_continues(index: int, last: str, *, expected: bool) -> None:
    """The messages leave the calls out."""
    (run,) = read(span(1, "chat m", {"tanstack.ai.iterations": 1}), iteration(2, index, "stop", last))

    assert expected is run.completeness.begin_unseen


@pytest.mark.parametrize(("is_told", "expected"), [(False, True), (True, False)])
def test_without_content_a_run_without_calls_may_continue_after_a_refusal(*, is_told: bool, expected: bool) -> None:
    """TanStack AI writes no span of a refused call."""
    asked = iteration(2, 0, "stop")
    kept = {key: value for key, value in asked.attributes.items() if is_told or key != "gen_ai.input.messages"}
    (run,) = read(span(1, "chat m", {"tanstack.ai.iterations": 1}), asked._replace(attributes=kept))

    assert expected is run.completeness.may_continue


def test_a_lost_call_is_missed() -> None:
    """The request that asked for it does not show it, though a run may wait with one."""
    (run,) = read(
        span(1, "chat m", {"tanstack.ai.iterations": 3}),
        iteration(2, 0, "tool_calls"),
        tool(3, "success"),
        iteration(5, 1, "tool_calls", "tool"),
        iteration(9, 2, "stop", "tool"),
    )

    assert 1 == run.completeness.spans_missing
