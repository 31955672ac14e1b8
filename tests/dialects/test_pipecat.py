"""Pipecat: its own spans, in which only messages to models have calls, and those of OpenInference."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialects.spans import call, read, span
from spanscore.model import Span

USER = {"role": "user", "content": "Refund A-1."}


def request(number: int, *sent: dict[str, Any], output: str | None = None) -> Span:
    """A request to a model, which records the text of the answer only."""
    held = {"gen_ai.operation.name": "chat", "input": json.dumps([USER, *sent])}
    said = {} if output is None else {"output": output}
    return span(number, "llm", {**held, **said}, parent=1, scope="pipecat")


def asked(call_id: str | None, name: str, result: str) -> list[dict[str, Any]]:
    """A call in the messages to a model, with its result."""
    called = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [{"role": "assistant", "tool_calls": [called]}, {"role": "tool", "content": result, "tool_call_id": call_id}]


CONVERSATION = span(1, "conversation", {"conversation.id": "c"}, scope="pipecat.turn")
FAILURE = "The function `pay` failed and returned no result."


@pytest.mark.parametrize("ids", [("a", "b", "c"), (None, None, None)])
def test_calls_are_what_the_next_request_has_more(ids: tuple[str | None, ...]) -> None:
    """Each call is read once, though all later requests repeat it, also without ids."""
    one, two, three = (asked(call_id, name, '"ok"') for call_id, name in zip(ids, ("look", "pay", "look"), strict=True))
    (run,) = read(
        CONVERSATION,
        request(2),
        request(3, *one, *two),
        request(4, *one, *two, *three, output="Done."),
        request(5, *one, *two, *three, {"role": "assistant", "content": "Done."}, USER, output="Yes."),
    )

    assert [(each.name, each.call_id) for each in run.calls] == list(zip(("look", "pay", "look"), ids, strict=True))
    assert run.unread is None


def test_calls_are_unknown_where_messages_are_not_recorded() -> None:
    """The run is not one without calls."""
    hidden = request(3)._replace(attributes={"gen_ai.operation.name": "chat"})
    (run,) = read(CONVERSATION, request(2), hidden)

    assert run.calls == ()
    assert run.unread is not None


def test_calls_of_earlier_conversations_are_none_of_this_one() -> None:
    """The first request may be sent them."""
    (run,) = read(CONVERSATION, request(2, *asked("a", "look", '"ok"'), USER), request(3, *asked("a", "look", '"ok"')))

    assert run.calls == ()


def test_the_constant_result_of_a_tool_that_raised_is_a_failure() -> None:
    """A tool's own result with such words is none."""
    failed, quoted = asked("a", "pay", json.dumps(FAILURE)), asked("b", "log", json.dumps({"said": FAILURE}))
    (run,) = read(CONVERSATION, request(2), request(3, *failed, *quoted))

    assert [each.error for each in run.calls] == [FAILURE, None]


def test_openinference_writes_the_failure_into_an_attribute() -> None:
    """The type is in front."""
    held = {
        "openinference.span.kind": "TOOL",
        "tool.name": "pay",
        "input.value": '{"n": 1}',
        "frame.error.message": "ValueError: no funds",
    }
    (run,) = read(span(2, "pipecat.tool.pay", held, scope="openinference.instrumentation.pipecat"))

    assert run.calls == (call(2, "pay", {"n": 1}, error="ValueError: no funds", error_type="ValueError"),)
