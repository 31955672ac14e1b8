"""The calls in the messages that a model was sent, with their answers."""

from __future__ import annotations

from typing import Any, Final

import pytest

from spanscore.contracts import CallReading, CallRequest, ModelReading, SentMessage
from spanscore.model import NOT_RECORDED, ToolCall
from spanscore.trajectories.sent_calls import SentCall, after_user, asked_since, content_of, restored, sent_calls

DENIED: Final = "The tool call was denied."
FAILED: Final = {"content": [{"type": "text", "text": "bad"}], "isError": True}
USER: Final = SentMessage(is_user_text=True)
NOTHING: Final = SentMessage()


def asks(*calls: str) -> SentMessage:
    """Return a message that asks for calls: `name id`, or `name`."""
    return SentMessage(requests=tuple(map(request, calls)))


def request(told: str) -> CallRequest:
    """Return the request for a call."""
    name, _, call_id = told.partition(" ")
    return CallRequest(name=name, call_id=call_id or None)


def answers(*results: str, **fields: Any) -> SentMessage:
    """Return a message with results: `result id`, or `result`."""
    parts = [each.partition(" ") for each in results]
    return SentMessage(
        answers=tuple(CallReading(result=result, call_id=call_id or None, **fields) for result, _, call_id in parts)
    )


def shown(calls: list[SentCall]) -> list[str]:
    """Return each call with its result and its state."""
    found = []
    for call in calls:
        name = " ".join(filter(None, (call.request.name, call.request.call_id)))
        result = "" if call.answer is None or call.answer.result is NOT_RECORDED else call.answer.result
        found.append(f"{name}: {result} {call.state}")
    return found


@pytest.mark.parametrize(
    ("case", "messages", "expected"),
    [
        ("nothing", [], []),
        ("no calls", [USER, NOTHING, answers("r 1")], []),
        ("one call", [asks("f 1"), answers("r 1")], [["f 1: r made"]]),
        ("a request at the end", [asks("f 1")], [["f 1:  None"]]),
        ("a text behind the request", [asks("f 1"), NOTHING], [["f 1:  made"]]),
        ("two answers", [asks("f 1"), answers("r 1"), asks("g 2"), answers("s 2")], [["f 1: r made"], ["g 2: s made"]]),
        (
            "one answer in two messages",
            [asks("f 1"), asks("g 2"), answers("r 1", "s 2")],
            [["f 1: r made", "g 2: s made"]],
        ),
        ("results left out", [asks("f 1"), NOTHING, asks("g 2"), answers("s 2")], [["f 1:  made"], ["g 2: s made"]]),
        (
            "some results left out",
            [asks("f 1", "g 2"), answers("s 2"), asks("h 3")],
            [["f 1:  made", "g 2: s made"], ["h 3:  None"]],
        ),
        ("some results of the last", [asks("f 1", "g 2"), answers("s 2")], [["f 1:  None", "g 2: s made"]]),
        (
            "results in two messages",
            [asks("f 1", "g 2"), answers("s 2"), answers("r 1")],
            [["f 1: r made", "g 2: s made"]],
        ),
        ("an answer before all requests", [answers("x 9"), asks("f 1"), answers("r 1")], [["f 1: r made"]]),
        ("answers without ids", [asks("f", "g"), answers("r", "s")], [["f: r made", "g: s made"]]),
        ("an id and none", [asks("f 1", "g"), answers("s", "r 1")], [["f 1: r made", "g: s made"]]),
        ("an empty text between two answers", [NOTHING, asks("f 1"), answers("r 1"), NOTHING], [["f 1: r made"]]),
        # An item has an id of its own.
        ("another id", [asks("f 1"), answers("r 9")], [["f 9: r made"]]),
        ("another id beside an own one", [asks("f 1", "g 2"), answers("s 2", "r 9")], [["f 9: r made", "g 2: s made"]]),
        ("two other ids", [asks("f 1", "g 2"), answers("r 8", "s 9")], [["f:  made", "g:  made"]]),
        (
            "two other ids and none",
            [asks("f 1", "g 2", "h"), answers("r 8", "s 9", "t")],
            [["f:  made", "g:  made", "h:  made"]],
        ),
        ("no id for a request with one", [asks("f 1"), answers("r")], [["f 1: r made"]]),
    ],
)
def test_the_calls_of_each_answer(case: str, messages: list[SentMessage], expected: list[list[str]]) -> None:
    """By id, else in their order; a model is asked again only when all calls of its answer have a result."""
    assert expected == [shown(calls) for calls in sent_calls(messages, ModelReading())], case


@pytest.mark.parametrize(
    ("answer", "reading", "state", "error"),
    [
        (CallReading(call_id="1", result="ok"), ModelReading(), "made", None),
        (CallReading(call_id="1", result=DENIED), ModelReading(), "refused", None),
        (CallReading(call_id="1", result="ok"), ModelReading(refused={"1": None}), "uncertain", None),
        (CallReading(call_id="1", result="ok"), ModelReading(refused={"2": None}), "made", None),
        (CallReading(call_id="1", result=DENIED), ModelReading(refused={"1": None}), "refused", None),
        (CallReading(call_id="1", result=DENIED, state="waits"), ModelReading(), "waits", None),
        (CallReading(call_id="1", result="boom: x"), ModelReading(failures={"1": "boom"}), "made", "boom"),
        (CallReading(call_id="1", result=" boom: x"), ModelReading(failures={"1": "boom"}), "made", "boom"),
        (CallReading(call_id="1", result="x boom"), ModelReading(failures={"1": "boom"}), "made", None),
        (CallReading(call_id="1", result="boom"), ModelReading(failures={"2": "boom"}), "made", None),
        (CallReading(call_id="1", result="boom"), ModelReading(failures={"1": None}), "made", None),
        (CallReading(call_id="1", result={"a": "boom"}), ModelReading(failures={"1": "boom"}), "made", None),
        (CallReading(result="boom"), ModelReading(failures={"": "boom"}), "made", "boom"),
        (CallReading(call_id="1", result="boom", error="own"), ModelReading(failures={"1": "boom"}), "made", "own"),
        (CallReading(call_id="1", result=FAILED), ModelReading(), "made", "bad"),
        (CallReading(call_id="1", result=FAILED, error="own"), ModelReading(), "made", "own"),
    ],
)
def test_the_state_and_the_failure_of_an_answer(
    answer: CallReading, reading: ModelReading, state: str, error: str | None
) -> None:
    """By the answer itself, then by marks elsewhere, which count if the answer begins with them."""
    messages = [SentMessage(requests=(CallRequest(name="f", call_id=answer.call_id),)), SentMessage(answers=(answer,))]
    ((call,),) = sent_calls(messages, reading)
    assert call.answer is not None
    assert (state, error) == (call.state, call.answer.error)


def test_states_of_answers_whose_calls_are_not_known() -> None:
    """The state that all of them have, else none is sure."""
    asked = asks("f 1", "g 2")
    both = SentMessage(answers=(CallReading(call_id="8", state="refused"), CallReading(call_id="9", state="refused")))
    one = SentMessage(answers=(CallReading(call_id="8", state="refused"), CallReading(call_id="9", result="ok")))
    for message, state in ((both, "refused"), (one, "uncertain")):
        ((first, second),) = sent_calls([asked, message], ModelReading())
        assert (state, state) == (first.state, second.state)


REFUSED: Final = CallReading(state="refused")


@pytest.mark.parametrize(
    ("messages", "left"),
    [
        ([], 0),
        ([asks("f"), answers("r")], 2),
        ([USER, asks("f")], 1),
        ([USER], 0),
        ([USER, asks("f"), USER, asks("g"), answers("r")], 2),
        ([USER, asks("f"), SentMessage(is_user_text=True, answers=(REFUSED,)), asks("g")], 3),
        ([USER, asks("f"), SentMessage(is_user_text=True, answers=(CallReading(result=DENIED),))], 2),
        ([USER, asks("f"), SentMessage(is_user_text=True, answers=(CallReading(result="ok"),)), asks("g")], 1),
        ([USER, asks("f"), SentMessage(is_user_text=True, answers=(CallReading(), REFUSED)), asks("g")], 3),
        ([USER, asks("f"), SentMessage(answers=(REFUSED,)), USER, asks("g")], 1),
    ],
)
def test_messages_behind_the_last_text_of_a_user(messages: list[SentMessage], left: int) -> None:
    """A text in one message with a refusal begins no turn; without such a text, all messages are of this one."""
    assert messages[len(messages) - left :] == after_user(messages)


def made(name: str | None = "f", call_id: str | None = None, arguments: Any = NOT_RECORDED) -> CallReading:
    """Return an executed call."""
    return CallReading(name=name, call_id=call_id, arguments=arguments)


@pytest.mark.parametrize(
    ("calls", "asked", "place"),
    [
        ([], [["f"], ["g"]], 1),
        ([made()], [["f"], ["g"]], 0),
        ([made("g")], [["f"], ["g"]], 1),
        ([made(arguments={"a": 1})], [["f"], ["g"]], 0),
        ([made(arguments={"a": 1}), made(arguments={"a": 2})], [["f"], ["f"], ["g"]], 0),
        ([made(), made("g")], [["f"], ["g"]], 0),
        ([made("x")], [["f"], ["g"]], 1),
        ([made(call_id="1"), made(call_id="1")], [["f"], ["g"], ["f 1"]], 2),
        ([made(), made()], [["f"], ["f", "f"]], 1),
        ([made(None)], [["f"], ["g"]], 1),
        ([made(None), made()], [["f"], ["g"]], 0),
        ([made("f"), made("g"), made("h")], [["h"], ["g", "f"]], 0),
    ],
)
def test_the_fewest_last_answers_that_asked_for_all_calls(
    calls: list[CallReading], asked: list[list[str]], place: int
) -> None:
    """By id however often a call was made, else one by one; the last answer if all together did not ask for them."""
    assert place == asked_since(calls, [[SentCall(request(each), None) for each in answer] for answer in asked])


def test_a_restored_call() -> None:
    """As its answer says that it was made, else as it was asked for; it has no span."""
    asked = CallRequest(name="f", arguments={"a": 1}, call_id="1")
    assert ToolCall(name="f", arguments={"a": 1}, call_id="1", agent="x", restored=True) == restored(
        SentCall(asked, None), "x"
    )
    answer = CallReading(result="r", error="e", arguments={"b": 2}, call_id="2")
    assert ToolCall(
        name="f", arguments={"a": 1}, result="r", error="e", call_id="1", agent=None, restored=True
    ) == restored(SentCall(asked, answer), None)
    other = CallReading(name="g", arguments={"b": 2}, result="r")
    assert ToolCall(name="g", arguments={"b": 2}, result="r", call_id="1", restored=True) == restored(
        SentCall(asked, other), None
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, (None, False)),
        (CallReading(result="ok"), ("made", False)),
        (CallReading(state="waits"), ("waits", True)),
        (CallReading(state="waits", result="ok"), ("waits", False)),
        (CallReading(state="refused"), ("refused", False)),
    ],
)
def test_an_approved_call_of_the_provider(answer: CallReading | None, expected: tuple[str | None, bool]) -> None:
    """A person has approved it, and it has no result yet."""
    call = SentCall(CallRequest(name="f"), answer)
    assert expected == (call.state, call.is_approved)


def test_what_a_call_has_in_common_with_its_repetition() -> None:
    """The name, and arguments that are equal as JSON."""
    assert ("f", None) == content_of(made())
    assert content_of(made(arguments={"a": 1, "b": 2})) == content_of(made(arguments={"b": 2.0, "a": 1}, call_id="1"))
    assert content_of(made(arguments={"a": 1})) != content_of(made(arguments={"a": 2}))
