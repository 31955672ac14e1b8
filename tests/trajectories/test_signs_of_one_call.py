"""Spans and log records of one call, for each sign: nesting, ids, times, instrumentations, and names of the tool."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dialects.spans import span
from given_readings import given_agent, given_call, given_model, given_tree
from spanscore.contracts import CallReading
from spanscore.model import LOG_RECORD, NOT_RECORDED, Recorded, Span
from spanscore.trajectories.same_calls import merged_calls, same_calls
from traces import lasting

X: Final = {"x": 1}
Y: Final = {"x": 2}


def call(number: int, name: str | None = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a call."""
    return given_call(number, name, call_id, **more)


def part(number: int, name: str = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a part of a call."""
    return given_call(number, name, call_id, part_of_call=True, **more)


def record(number: int, tool: str = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a log record of a call."""
    fields = {"name": "one", "kind": LOG_RECORD, "scope": "log", **more}
    return given_call(number, tool, call_id, arguments=fields.pop("arguments", NOT_RECORDED))._replace(
        **{
            "parent_span_id": span(1, "").span_id if fields.pop("parent", 0) else b"",
            **fields,
            "name": f"span {fields['name']}",
        }
    )


def server(*, method: bool = True, name: str | None = None, **more: Any) -> Span:
    """Return a call below the first, by default a request to an MCP server."""
    return given_call(2, name, parent=1, attributes={"mcp.method.name": "x"} if method else {}, **more)


def other(number: int, **fields: Any) -> Span:
    """Return a span that no dialect reads."""
    return span(number, "GET /", **fields)


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        ("below the call", [call(1), other(2, parent=1), part(3, parent=2)], [(0, 2)]),
        ("by its id", [call(1, "pay", "a"), call(3, "pay", "b"), part(9, "pay", "a")], [(0, 2), (1, 1)]),
        ("another id", [call(1, "pay", "a"), part(9, "pay", "z")], [(0, 1)]),
        ("the last call before it", [call(1), call(3), part(9)], [(0, 1), (1, 2)]),
        ("a second part", [call(1), call(3), part(9), part(10)._replace(name="span 9")], [(0, 2), (1, 2)]),
        ("a part of another kind", [call(1), call(3), part(9), part(10)], [(0, 1), (1, 3)]),
        ("a call that starts with it", [call(1), call(3), part(9, at_ms=3)], [(0, 1), (1, 2)]),
        ("before all calls", [call(3), part(1)], [(0, 1)]),
        ("another tool", [call(1), call(3, "book"), part(9)], [(0, 2), (1, 1)]),
        ("other arguments", [call(1, arguments=X), call(3, arguments=Y), part(9, arguments=X)], [(0, 2), (1, 1)]),
        (
            "a call of two spans",
            [lasting(call(1, "pay", "a"), 9), call(2, "pay", "a", parent=1), part(9, "pay", "a")],
            [(0, 3)],
        ),
    ],
)
def test_parts_of_calls(case: str, spans: list[Span], expected: list[tuple[int, int]]) -> None:
    """A part is of the call above it or with its id, else of the last call of its tool that has no such part."""
    assert expected == [(index, len(readings)) for index, readings in same_calls(given_tree(*spans)).items()], case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        ("by its id", [call(1, "pay", "a"), call(3, "pay", "b"), record(9, "pay", "a")], [(0, 2), (1, 1)]),
        ("an id of another tool", [call(1, "pay", "a"), record(9, "book", "a")], [(0, 1), (1, 1)]),
        ("two records of an id", [call(1, "pay", "a"), record(8, "pay", "a"), record(9, "pay", "a")], [(0, 3)]),
        ("records without a span", [record(8, "pay", "a"), record(9, "pay", "a")], [(0, 2)]),
        ("as many records as calls", [call(1), call(3), record(8), record(9)], [(0, 2), (1, 2)]),
        ("more records than calls", [call(1), record(8), record(9)], [(0, 2), (2, 1)]),
        ("the nearest end", [call(1), call(5), call(30), record(9)], [(0, 1), (1, 2), (2, 1)]),
        ("the nearest end, behind", [call(1), call(20), record(3)], [(0, 2), (1, 1)]),
        (
            "by order only if each fits",
            [call(1, arguments=X), call(3, arguments=Y), record(8, arguments=Y), record(9, arguments=X)],
            [(0, 2), (1, 2)],
        ),
        ("below its call", [lasting(call(1), 3), lasting(call(20), 9), record(22, parent=1)], [(0, 2), (1, 1)]),
        (
            "below its call, with an id",
            [lasting(call(1), 3), lasting(call(20), 9), record(22, call_id="a", parent=1)],
            [(0, 2), (1, 1)],
        ),
        ("two kinds, one with an empty id", [record(8, call_id=""), record(9, call_id="a", name="other")], [(0, 2)]),
        ("below another call", [lasting(call(1, "ask"), 30), call(3), record(22, parent=1)], [(0, 1), (1, 2)]),
        ("records of two kinds", [call(1), record(8), record(9, name="other")], [(0, 3)]),
        ("records of two scopes", [call(1), record(8), record(9, scope="log2")], [(0, 3)]),
        (
            "two kinds of two calls",
            [call(1), call(3), record(8), record(9), record(10, name="other")],
            [(0, 2), (1, 3)],
        ),
        ("records with an id and without", [record(8, "pay", "a"), record(9, scope="log2")], [(0, 2)]),
        (
            "records of two scopes with an id",
            [call(1), record(8, "pay", "a"), record(9, "pay", "a", scope="log2")],
            [(0, 3)],
        ),
        ("an id that no call has", [call(1), record(8, "pay", "a")], [(0, 2)]),
    ],
)
def test_log_records_of_calls(case: str, spans: list[Span], expected: list[tuple[int, int]]) -> None:
    """A record is of the call with its id, at its place, or nearest to it; each kind describes a call once."""
    assert expected == [(index, len(readings)) for index, readings in same_calls(given_tree(*spans)).items()], case


@pytest.mark.parametrize(
    ("case", "spans", "expected"),
    [
        ("two ids", [call(1, "pay", "a"), call(2, "pay", "b")], [(0, 1), (1, 1)]),
        ("two scopes without ids", [lasting(call(1, scope="a"), 9), call(2, scope="b")], [(0, 2)]),
        (
            "two scopes with empty ids",
            [lasting(call(1, "pay", "", scope="a"), 9), call(2, "pay", "", scope="b")],
            [(0, 2)],
        ),
        ("below, without an id", [lasting(call(1, "pay", "a"), 9), call(2, "pay", None, parent=1)], [(0, 2)]),
        (
            "two scopes with an id",
            [lasting(call(1, "pay", "a", scope="a"), 9), call(2, "pay", "a", scope="b")],
            [(0, 2)],
        ),
        ("one scope with an id", [lasting(call(1, "pay", "a"), 9), call(2, "pay", "a")], [(0, 2)]),
        (
            "two scopes with two ids",
            [lasting(call(1, "pay", "a", scope="a"), 9), call(2, "pay", "b", scope="b")],
            [(0, 1), (1, 1)],
        ),
        ("an id that comes again", [call(1, "pay", "a"), call(8, "pay", "a"), call(9, "pay", "a")], [(0, 1), (1, 2)]),
        ("one scope without ids", [lasting(call(1), 9), call(2)], [(0, 1), (1, 1)]),
        ("three scopes", [lasting(call(1, scope="a"), 9), call(2, scope="b"), call(3, scope="c")], [(0, 3)]),
        ("a scope twice", [lasting(call(1, scope="a"), 9), call(2, scope="b"), call(3, scope="b")], [(0, 2), (2, 1)]),
        (
            "two scopes with other arguments",
            [lasting(call(1, arguments=X, scope="a"), 9), call(2, arguments=Y, scope="b")],
            [(0, 1), (1, 1)],
        ),
        ("an agent between", [lasting(call(1), 9), given_agent(2, parent=1), call(3, parent=2)], [(0, 1), (2, 1)]),
        ("an agent that is the call", [lasting(call(1), 9), given_call(2, "pay", is_agent=True, parent=1)], [(0, 2)]),
        ("a model between", [lasting(call(1), 9), given_model(2, parent=1), call(3, parent=2)], [(0, 1), (2, 1)]),
        (
            "a server below its agent's call",
            [lasting(call(1, "travel_book", "a", scope="a"), 9), server(name="book", scope="b")],
            [(0, 2)],
        ),
        (
            "a server with a dash",
            [lasting(call(1, "travel-book", "a", scope="a"), 9), server(name="book", scope="b")],
            [(0, 2)],
        ),
        (
            "a server of the same scope",
            [lasting(call(1, "travel_book", "a", scope="a"), 9), server(name="book", scope="a")],
            [(0, 1), (1, 1)],
        ),
        (
            "no request to a server",
            [lasting(call(1, "travel_book", "a", scope="a"), 9), server(name="book", scope="b", method=False)],
            [(0, 1), (1, 1)],
        ),
        (
            "no prefix",
            [lasting(call(1, "travelbook", "a", scope="a"), 9), server(name="book", scope="b")],
            [(0, 1), (1, 1)],
        ),
        (
            "a server with an id",
            [lasting(call(1, "travel_book", "a", scope="a"), 9), server(name="book", call_id="b", scope="b")],
            [(0, 1), (1, 1)],
        ),
        (
            "an agent's call without an id",
            [lasting(call(1, "travel_book", scope="a"), 9), server(name="book", scope="b")],
            [(0, 1), (1, 1)],
        ),
        (
            "a server with other arguments",
            [
                lasting(call(1, "travel_book", "a", arguments=X, scope="a"), 9),
                server(name="book", arguments=Y, scope="b"),
            ],
            [(0, 1), (1, 1)],
        ),
        ("a server without a name", [lasting(call(1, "travel_book", "a", scope="a"), 9), server(scope="b")], [(0, 2)]),
        (
            "an agent's call without a name",
            [lasting(call(1, None, "a", scope="a"), 9), server(name="book", scope="b")],
            [(0, 2)],
        ),
        (
            "another name of the outer call",
            [lasting(call(1, "x", "a", other_names=("pay",)), 9), call(2, "pay", "a", parent=1)],
            [(0, 2)],
        ),
        (
            "other names of both",
            [lasting(call(1, "x", "a", other_names=("pay",)), 9), call(2, "y", "a", parent=1, other_names=("pay",))],
            [(0, 2)],
        ),
        (
            "other names that differ",
            [lasting(call(1, "x", "a", other_names=("pay",)), 9), call(2, "y", "a", parent=1, other_names=("q",))],
            [(0, 1), (1, 1)],
        ),
    ],
)
def test_spans_of_one_call(case: str, spans: list[Span], expected: list[tuple[int, int]]) -> None:
    """They are nested, or overlap and have one id or several instrumentations; tool and arguments fit."""
    assert expected == [(index, len(readings)) for index, readings in same_calls(given_tree(*spans)).items()], case


def read(**fields: Any) -> CallReading:
    """Return the reading of a call."""
    return CallReading(name="pay", **fields)


@pytest.mark.parametrize(
    ("readings", "error", "state", "result"),
    [
        ([read(error="a"), read(error="b", error_type="B")], ("b", "B"), "made", NOT_RECORDED),
        ([read(error="a"), read(error="b")], ("a", None), "made", NOT_RECORDED),
        ([read(), read(error="b", error_type="B")], ("b", "B"), "made", NOT_RECORDED),
        ([read(error_type="A"), read(error="b")], ("b", None), "made", NOT_RECORDED),
        ([read(error="a", error_type="A"), read(error="b", error_type="B")], ("a", "A"), "made", NOT_RECORDED),
        ([read(state="waits"), read(error="a", error_type="A")], (None, None), "waits", NOT_RECORDED),
        ([read(state="refused", error="a"), read()], (None, None), "refused", NOT_RECORDED),
        ([read(state="uncertain"), read()], (None, None), "made", NOT_RECORDED),
        ([read(state="uncertain"), read(state="uncertain")], (None, None), "uncertain", NOT_RECORDED),
        ([read(state="uncertain"), read(state="waits")], (None, None), "waits", NOT_RECORDED),
        ([read(result=1), read(result=2)], (None, None), "made", 1),
        ([read(), read(result=2)], (None, None), "made", 2),
    ],
)
def test_what_the_spans_of_a_call_say_together(
    readings: list[CallReading], error: tuple[str | None, str | None], state: str, result: Recorded
) -> None:
    """A failure with its kind is better than one without; a call that waits or was refused has not failed."""
    spans = [call(number, parent=number - 1) for number, _ in enumerate(readings, 1)]
    tree = given_tree(*spans)
    tree.calls.update(enumerate(readings))
    ((index, found),) = merged_calls(tree).items()
    assert (0, *error, state, result) == (index, found.error, found.error_type, found.state, found.result)


def test_records_describe_calls_in_their_order() -> None:
    """As many records as calls of a name: the first is of the first call, though it is nearer to the second."""
    told = [
        given_call(number, "pay", result=result, kind=LOG_RECORD, scope="log")._replace(name="span told")
        for number, result in ((8, "one"), (9, "two"))
    ]
    found = merged_calls(given_tree(call(1), call(3), *told))
    assert {0: "one", 1: "two"} == {index: each.result for index, each in found.items()}
