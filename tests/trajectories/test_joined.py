"""Executed calls and the requests of models: which belong together, and what a request adds to a call."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import pytest

from given_readings import Given, given, given_agent, given_model, given_tree
from spanscore.contracts import CallReading, CallRequest, Reading, SentMessage
from spanscore.model import JSON, NOT_RECORDED
from spanscore.trajectories.joined import joined
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import Readings
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.tree import SpanTree

A: Final = {"a": 1}
B: Final = {"b": 2}
LONG: Final = "x" * 128
"""The shortest text that may be cut."""
USER: Final = SentMessage(is_user_text=True)

Joined: TypeAlias = "list[tuple[int | None, str | None, object, str | None]]"
"""Of each call the rank of its request, its name, its arguments and its id."""


def request(name: str, arguments: Any = NOT_RECORDED, call_id: str | None = None) -> CallRequest:
    """Return a request."""
    return CallRequest(name=name, arguments=arguments, call_id=call_id)


def call(
    name: str | None = None, arguments: Any = NOT_RECORDED, call_id: str | None = None, **more: Any
) -> CallReading:
    """Return an executed call."""
    return CallReading(name=name, arguments=arguments, call_id=call_id, **more)


def of(answers: list[list[CallRequest]], calls: list[CallReading], **fields: Any) -> Joined:
    """Return the calls of a trace, joined to the requests in the answers of its models."""
    models = [given_model(number, *asked, parent=1, **fields) for number, asked in enumerate(answers or [[]], 2)]
    executed = [given(Reading(call=each), number, parent=1) for number, each in enumerate(calls, 10)]
    tree = given_tree(given_agent(1), *models, *executed)
    return [(rank, each.name, each.arguments, each.call_id) for rank, each in joined(Requested(tree), tree.calls)]


@pytest.mark.parametrize(
    ("case", "answers", "calls", "expected"),
    [
        (
            "by their own ids",
            [[request("f", A, "1"), request("g", B, "2")]],
            [call("g", B, "2"), call("f", A, "1")],
            [(1, "g", B, "2"), (0, "f", A, "1")],
        ),
        ("an id that no request has", [[request("f", A, "1")]], [call("f", A, "9")], [(None, "f", A, "9")]),
        (
            "one id in two answers, by name",
            [[request("f", A, "1")], [request("g", B, "1")]],
            [call("g", B, "1"), call("f", A, "1")],
            [(1, "g", B, "1"), (0, "f", A, "1")],
        ),
        (
            "one id in two answers, by id",
            [[request("f", A, "1")], [request("g", B, "1")]],
            [call("x", B, "1"), call("f", A, "1")],
            [(1, "x", B, "1"), (0, "f", A, "1")],
        ),
        (
            "one id in two answers, by order",
            [[request("f", A, "1")], [request("f", B, "1")]],
            [call("f", B, "1"), call("f", A, "1")],
            [(0, "f", B, "1"), (1, "f", A, "1")],
        ),
        (
            "requests with an id and without",
            [[request("f", A, "1"), request("f", A)]],
            [call("f", A), call("f", A, "1")],
            [(1, "f", A, None), (0, "f", A, "1")],
        ),
        ("a call without an id", [[request("f", A, "1")]], [call("f", A)], [(0, "f", A, "1")]),
        (
            "equal calls by order",
            [[request("f", A), request("f", A)]],
            [call("f", A), call("f", A)],
            [(0, "f", A, None), (1, "f", A, None)],
        ),
        (
            "not by order, if one does not fit",
            [[request("f", A), request("f", B)]],
            [call("f", B), call("f", A)],
            [(1, "f", B, None), (0, "f", A, None)],
        ),
        (
            "by order, if calls lack arguments",
            [[request("f", A), request("f", B)]],
            [call("f"), call("f")],
            [(0, "f", A, None), (1, "f", B, None)],
        ),
        (
            "by order, if requests lack arguments",
            [[request("f"), request("f", B)]],
            [call("f", A), call("f", B)],
            [(0, "f", A, None), (1, "f", B, None)],
        ),
        (
            "fewer calls than requests",
            [[request("f", A), request("f", B)]],
            [call("f")],
            [(None, "f", NOT_RECORDED, None)],
        ),
        (
            "fewer calls than requests, by content",
            [[request("f", A), request("f", B)]],
            [call("f", B)],
            [(1, "f", B, None)],
        ),
        (
            "by order of each name",
            [[request("f", A), request("g", B)]],
            [call("g"), call("f")],
            [(1, "g", B, None), (0, "f", A, None)],
        ),
        (
            "by name and arguments",
            [[request("f", A), request("g", A), request("f", B)]],
            [call("f", B)],
            [(2, "f", B, None)],
        ),
        ("without a name, by arguments", [[request("f", A), request("g", B)]], [call(None, B)], [(1, "g", B, None)]),
        (
            "without anything, by order",
            [[request("f", A), request("g", B)]],
            [call(), call()],
            [(0, "f", A, None), (1, "g", B, None)],
        ),
        (
            "without anything, fewer than requests",
            [[request("f", A), request("g", B)]],
            [call()],
            [(None, None, NOT_RECORDED, None)],
        ),
        (
            "without anything, the request that is left",
            [[request("f", A), request("g", B)]],
            [call("g"), call()],
            [(1, "g", B, None), (0, "f", A, None)],
        ),
        (
            "made-up ids, by content",
            [[request("f", A), request("f", B)]],
            [call("f", B, "x"), call("f", A, "y")],
            [(1, "f", B, "x"), (0, "f", A, "y")],
        ),
        (
            "made-up ids, only requests without an id",
            [[request("f", A, "1"), request("f", B)]],
            [call("f", A, "x"), call("f", B, "y")],
            [(None, "f", A, "x"), (1, "f", B, "y")],
        ),
        (
            "made-up ids, by name",
            [[request("f", A), request("f", B)]],
            [call("f", call_id="x"), call("f", call_id="y")],
            [(0, "f", A, "x"), (1, "f", B, "y")],
        ),
        ("made-up ids, other arguments", [[request("f", A)]], [call("f", B, "x")], [(None, "f", B, "x")]),
        ("made-up ids, another name", [[request("g", A)]], [call("f", call_id="x")], [(None, "f", NOT_RECORDED, "x")]),
        (
            "made-up ids, by a lone argument",
            [[request("f", {"q": "t"})]],
            [call("f", call_id="x", sole_argument="t")],
            [(0, "f", {"q": "t"}, "x")],
        ),
        (
            "a lone argument of a request with an id",
            [[request("f", {"q": "t"}, "1"), request("g")]],
            [call("f", call_id="x", sole_argument="t")],
            [(0, "f", {"q": "t"}, "x")],
        ),
        (
            "by a lone argument",
            [[request("f", {"q": "t"}), request("f", {"q": "u"})]],
            [call("f", sole_argument="u")],
            [(1, "f", {"q": "u"}, None)],
        ),
        (
            "by a lone argument of requests with ids",
            [[request("f", {"q": "t"}, "1"), request("f", {"q": "u"}, "2"), request("f", {"q": "v"}, "2")]],
            [call("f", sole_argument="u")],
            [(1, "f", {"q": "u"}, "2")],
        ),
        (
            "another lone argument",
            [[request("f", {"q": "t"}), request("f", {"q": "u"})]],
            [call("f", sole_argument="v")],
            [(None, "f", NOT_RECORDED, None)],
        ),
        (
            "one of two arguments",
            [[request("f", {"q": "t", "r": "u"})]],
            [call("f", sole_argument="t")],
            [(None, "f", NOT_RECORDED, None)],
        ),
        (
            "a lone argument that is no text",
            [[request("f", {"q": 1})]],
            [call("f", sole_argument="1")],
            [(None, "f", NOT_RECORDED, None)],
        ),
        (
            "arguments that may be a lone one",
            [[request("f", {"q": "t"})]],
            [call("f", {"input": "t"}, sole_argument="t")],
            [(0, "f", {"q": "t"}, None)],
        ),
        (
            "arguments that are no lone one",
            [[request("f", {"input": {"x": 1}})]],
            [call("f", {"input": {"x": 1}}, sole_argument="t")],
            [(0, "f", {"input": {"x": 1}}, None)],
        ),
        (
            "equal lone arguments by order",
            [[request("f", {"q": "t"}), request("f", {"q": "t"})]],
            [call("f", sole_argument="t"), call("f", sole_argument="t")],
            [(0, "f", {"q": "t"}, None), (1, "f", {"q": "t"}, None)],
        ),
        (
            "another name of the tool",
            [[request("f", A, "1")]],
            [call("gw_f", A, "1", other_names=("g", "f"))],
            [(0, "f", A, "1")],
        ),
        (
            "another name, if its own is asked for as well",
            [[request("f", A, "1"), request("gw_f", A, "2")]],
            [call("gw_f", A, "2", other_names=("f",))],
            [(1, "gw_f", A, "2")],
        ),
        (
            "other names that nobody asked for",
            [[request("h", A, "1")]],
            [call("gw_f", A, "1", other_names=("g", "f"))],
            [(0, "gw_f", A, "1")],
        ),
        ("a name from the request", [[request("f", A, "1")]], [call(None, NOT_RECORDED, "1")], [(0, "f", A, "1")]),
        ("what the call records stays", [[request("f", A, "1")]], [call("F", B, "1")], [(0, "F", B, "1")]),
        ("no request", [], [call("f", A)], [(None, "f", A, None)]),
    ],
)
def test_each_call_joins_its_request(
    case: str, answers: list[list[CallRequest]], calls: list[CallReading], expected: Joined
) -> None:
    """By id, else by order, by content or by what is left; a request is the request of one call."""
    assert expected == of(answers, calls), case


@pytest.mark.parametrize(
    ("asked", "made", "expected"),
    [
        (request("f", {"q": "t"}, "1"), call("f", sole_argument="t"), (-1, "f", {"q": "t"}, "1")),
        (request("f", {"q": "t"}, "1"), call("f", sole_argument="u"), (-1, "f", {"q": "u"}, "1")),
        (request("f", {"q": "t"}, "1"), call(sole_argument="u"), (None, None, NOT_RECORDED, None)),
        (request("f", {"q": "t"}, "1"), call("g", sole_argument="u"), (None, "g", NOT_RECORDED, None)),
        (request("f", {"q": f"{LONG}y"}, "1"), call("f", sole_argument=LONG), (-1, "f", {"q": f"{LONG}y"}, "1")),
        (request("f", {"q": f"{LONG}y"}, "1"), call("f", sole_argument=LONG[1:]), (-1, "f", {"q": LONG[1:]}, "1")),
        (request("f", {"q": 1}, "1"), call("f", sole_argument="u"), (-1, "f", {"q": 1}, "1")),
        (request("f", {"q": "t", "r": 1}, "1"), call("f", sole_argument="u"), (-1, "f", {"q": "t", "r": 1}, "1")),
        (request("f", A, "1"), call("f", B), (-1, "f", B, "1")),
        (request("f", A, "1"), call("f", B, "9"), (-1, "f", B, "9")),
        (request("f", A, "1"), call("f"), (-1, "f", A, "1")),
        (request("f", A), call("f", A, "9"), (-1, "f", A, "9")),
        (request("f", A, "1"), call("g", B), (None, "g", B, None)),
    ],
)
def test_a_call_with_which_a_run_continues(
    asked: CallRequest, made: CallReading, expected: tuple[int | None, str | None, object, str | None]
) -> None:
    """The call that a run waited for may be made by another id; a person may have changed its arguments."""
    history = (
        USER,
        SentMessage(requests=(asked,)),
        SentMessage(answers=(call(None, call_id=asked.call_id, result="ok"),)),
    )
    tree = given_tree(given_agent(1), given(Reading(call=made), 2, parent=1), given_model(5, parent=1, history=history))
    ((rank, found),) = joined(Requested(tree), tree.calls)
    assert expected == (rank, found.name, found.arguments, found.call_id)


DEFINED: Final[dict[str, JSON]] = {
    "f": {"properties": {"q": {}}},
    "g": {"properties": {"q": {}, "r": {}}},
    "h": {},
    "i": 1,
    "j": {"properties": []},
}


@pytest.mark.parametrize("name", ["f", "g", "h", "i", "j", "k", None])
def test_a_lone_argument_has_the_only_name_that_the_tool_defines(name: str | None) -> None:
    """With several names, or without a definition, it has none; recorded arguments stay."""
    expected = {"q": "t"} if name == "f" else NOT_RECORDED
    assert [(None, name, expected, None)] == of([], [call(name, sole_argument="t")], tool_definitions=DEFINED)
    assert [(None, name, A, None)] == of([], [call(name, A, sole_argument="t")], tool_definitions=DEFINED)


@pytest.mark.parametrize(
    ("calls", "results"),
    [
        ([call("f", A, "1")], ["one"]),
        ([call("f", A, "1", result="own")], ["own"]),
        ([call("f", A, "1", error="failed")], [NOT_RECORDED]),
        ([call("f", A, "1"), call("g", A, "2")], ["one", "two"]),
        ([call("f", A, "1"), call("g", A, "1"), call("g", A, "2")], [NOT_RECORDED, NOT_RECORDED, "two"]),
        ([call("f", A, "9"), call("g", A)], [NOT_RECORDED, NOT_RECORDED]),
        ([call("f", A, "1", result="own"), call("g", A, "2")], ["own", "two"]),
    ],
)
def test_a_call_without_a_result_has_that_which_a_model_was_sent(calls: list[CallReading], results: list[Any]) -> None:
    """By an id that no other call has; a call that failed has none. So it is with requests and without them."""
    for requests in ([], [request("f", A, "1")]):
        executed = [given(Reading(call=each), number, parent=1) for number, each in enumerate(calls, 10)]
        asked = given_model(2, *requests, parent=1), given_model(30, parent=1, answers={"1": "one", "2": "two"})
        tree = given_tree(given_agent(1), *asked, *executed)
        assert results == [each.result for _, each in joined(Requested(tree), tree.calls)]


@pytest.mark.parametrize(("results", "expected"), [(True, "one"), (False, NOT_RECORDED)])
def test_results_are_searched_only_if_somebody_needs_them(expected: Any, *, results: bool) -> None:
    """Messages to models are long."""
    spans = (
        given_agent(1),
        given_model(5, parent=1, answers={"1": "one"}),
        given(Reading(call=call("f", A, "1")), 3, parent=1),
    )
    tree = SpanTree(Readings.of(spans, DialectReader([Given()], results=results)))
    assert [expected] == [each.result for _, each in joined(Requested(tree), tree.calls)]
