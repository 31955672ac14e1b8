from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.alignment import Aligned
from spanscore.compare.deviations import DETAILED
from spanscore.compare.differences import Difference
from spanscore.compare.steps._candidates import Pair
from spanscore.compare.steps._conditions import CallVerdict
from spanscore.compare.steps.parsing import read_pattern
from spanscore.compare.steps.pattern import groups, leaves
from spanscore.compare.steps.step_alignment import StepAlignment, StepDeviation
from spanscore.model import ToolCall


def aligned(
    tools: str, made: str, taken: list[int | None], *, unexpected: str = "", wrong: int | None = None
) -> StepAlignment:
    """Steps, calls, and which call takes which step."""
    steps = list(leaves(read_pattern(list(tools), str).row))
    return StepAlignment(
        pairs=[Pair(leaf, call) for leaf, call in zip(steps, taken, strict=True)],
        calls=[ToolCall(name=name) for name in made],
        compared=range(len(made)),
        unexpected=frozenset(index for index, name in enumerate(made) if name in unexpected),
        takers={index: [leaf for leaf in steps if leaf.tool.text == name] for index, name in enumerate(made)},
        verdict=lambda _leaf, call: CallVerdict("arguments") if call == wrong else CallVerdict(),
    )


def test_rows() -> None:
    """Calls stand in their order, and what is missing where it was to be made."""
    rows, names = aligned("abc", "axc", [0, None, 2], unexpected="x").rows()

    assert names == ["a", "b", "c"]
    assert rows == [Aligned(0, 0, "ok"), Aligned(1, None, "missing"), Aligned(None, 1, "extra"), Aligned(2, 2, "ok")]


def test_counts() -> None:
    """Missing steps, calls with something wrong, and unexpected calls without a step count as one each."""
    found = aligned("abcd", "axbxd", [0, 2, None, 4], unexpected="axb", wrong=2)

    assert found.missing == 1
    assert found.count == 4
    assert len(list(found.deviations(found.rows()[0]))) == 4


def test_calls_that_are_ignored_are_passed_over() -> None:
    """In their order, before and behind those that take a step."""
    rows, _ = aligned("a", "xaxy", [1]).rows()

    assert rows == [
        Aligned(None, 0, "ignored"),
        Aligned(0, 1, "ok"),
        Aligned(None, 2, "ignored"),
        Aligned(None, 3, "ignored"),
    ]


DIFFERENT = Difference(("x",), 1, 2)


def taken(steps: list[Any], calls: list[ToolCall], taking: list[int | None], verdict: CallVerdict) -> StepAlignment:
    """Steps that may be groups, and the calls that take them, about all of which one thing is said."""
    row = read_pattern(steps, str).row
    found = list(leaves(row))
    return StepAlignment(
        pairs=[Pair(leaf, call) for leaf, call in zip(found, taking, strict=True)],
        calls=calls,
        compared=range(len(calls)),
        unexpected=frozenset(),
        takers={index: [leaf for leaf in found if leaf.tool.text == call.name] for index, call in enumerate(calls)},
        verdict=lambda _leaf, _call: verdict,
        group_of=dict(groups(row)),
    )


@pytest.mark.parametrize(
    ("step", "verdict", "words", "row"),
    [
        (
            "a",
            CallVerdict("arguments", (DIFFERENT,)),
            "a.x: expected 1, got 2 (call 1)",
            {"kind": "arguments", "reason": "a.x: other value", "path": "x", "expected": 1, "actual": 2},
        ),
        (
            "a",
            CallVerdict("result", (DIFFERENT,)),
            "a result.x: expected 1, got 2 (call 1)",
            {"kind": "result", "reason": "a result.x: other value", "path": "x", "expected": 1, "actual": 2},
        ),
        (
            {"call": "a", "error": True},
            CallVerdict("error"),
            "a was expected to fail, but did not (call 1)",
            {"kind": "error", "reason": "a did not fail", "path": None, "expected": "failure", "actual": None},
        ),
        (
            {"call": "a", "error": False},
            CallVerdict("error"),
            "a failed (call 1)",
            {"kind": "error", "reason": "a failed: error", "path": None, "expected": None, "actual": None},
        ),
        (
            {"call": "a", "error": True},
            CallVerdict("result"),
            "a: not the expected result (call 1)",
            {"kind": "result", "reason": "a result: other value", "path": None, "expected": None, "actual": None},
        ),
    ],
)
def test_a_call_that_takes_its_step_wrongly(step: Any, verdict: CallVerdict, words: str, row: dict[str, Any]) -> None:
    """It is told what is wrong with it, and a program gets the place of the step."""
    found = taken([step], [ToolCall(name="a")], [0], verdict)
    (deviation,) = found.deviations(found.rows()[0])

    assert words == deviation.words(content=True)
    assert {"tool": "a", "step": "steps[0]", "call": 0, "span_id": None} | row == deviation.as_json()


def test_differences_are_told_of_the_first_deviations() -> None:
    """Of so many, as everywhere; those before that are no deviations do not count."""
    found = taken(["a"] * 30, [ToolCall(name="a")] * 30, [*range(30)], CallVerdict("arguments", (DIFFERENT,)))

    assert [True] * DETAILED + [False] * 10 == [bool(each.differences) for each in found.deviations(found.rows()[0])]


def test_missing_and_unexpected() -> None:
    """Of equal steps the place among them is told; a call at another place is not said to be unknown."""
    found = aligned("aab", "xb", [None, None, 1], unexpected="x")
    rows = [each.as_json() for each in found.deviations(found.rows()[0])]

    assert [
        ("missing", "steps[0]", "a", None),
        ("missing", "steps[1]", "a", None),
        ("unexpected", None, None, "x"),
    ] == [(row["kind"], row["step"], row["expected"], row["actual"]) for row in rows]
    assert [(1, 2), (2, 2), (None, None)] == [(row.get("nth"), row.get("of")) for row in rows]
    moved = aligned("abc", "bca", [None, 0, 1], unexpected="abc")
    assert ["a was called out of order (call 3)", "a was not expected at this place (call 3)"] == [
        each.words(content=True) for each in moved.deviations(moved.rows()[0])
    ]


def test_unrecorded() -> None:
    """Calls of which it is not known whether they fulfil their step."""
    found = taken(["a", "a"], [ToolCall(name="a")] * 2, [None, 1], CallVerdict(unrecorded="the arguments of"))

    assert [(1, "the arguments of")] == list(found.unrecorded())
    assert [] == list(taken(["a"], [ToolCall(name="a")], [0], CallVerdict()).unrecorded())


TURNS = [ToolCall(name=name, turn=turn) for name, turn in (("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 1))]


@pytest.mark.parametrize(
    ("steps", "taking", "moved", "words"),
    [
        ([{"turn": [*"abd"]}], [0, 1, None], 3, "d was called, but not in the same model turn as b, a (call 4)"),
        ([{"turn": [*"bda"]}], [1, None, 0], 3, "d was called, but not in the same model turn as b, a (call 4)"),
        ([{"parallel": [*"ad"]}], [0, None], 3, "d was called, but not in parallel with a (call 4)"),
        (
            [{"parallel": [*"aabbcd"]}],
            [None, 0, None, 1, 2, None],
            3,
            "d was called, but not in parallel with c, b, a (call 4)",
        ),
        ([{"turn": [*"de"]}], [None, 4], 3, "d was called out of order (call 4)"),
        ([{"turn": [*"ac"]}, "d", {"turn": [*"e"]}], [0, 2, None, 4], 3, "d was called out of order (call 4)"),
        ([{"any_order": [*"ad"]}], [0, None], 3, "d was called out of order (call 4)"),
        ([{"turn": [*"a"]}, {"turn": [*"de"]}], [0, None, 4], 3, "d was called out of order (call 4)"),
        ([{"turn": [*"ab", {"turn": [*"d"]}]}], [0, 1, None], 3, "d was called out of order (call 4)"),
    ],
)
def test_a_call_that_was_not_made_together_with_others(
    steps: list[Any], taking: list[int | None], moved: int, words: str
) -> None:
    """Those that took the other steps of its group, and of no other, are named."""
    found = taken(steps, TURNS, taking, CallVerdict())
    place = max(place for place, call in enumerate(taking) if call is None)
    (deviation,) = found.deviations([Aligned(place, moved, "order")])

    assert words == deviation.words(content=False)


def test_rounds_of_a_repeated_group_are_apart() -> None:
    """A call is told from the others of its own round, before it and behind it."""
    found = taken([{"repeat": {"turn": [*"abc"]}}], TURNS, [None] * 3, CallVerdict())
    leaf_a, leaf_b, leaf_c = (pair.leaf for pair in found.pairs)
    pairs = [Pair(leaf_a, 0), Pair(leaf_b, None), Pair(leaf_c, 2), Pair(leaf_a, 3), Pair(leaf_b, None), Pair(leaf_c, 4)]
    calls = [ToolCall(name=name, turn=turn) for turn, name in enumerate("abcdef")]
    rounds = StepAlignment(
        pairs=pairs,
        calls=calls,
        compared=range(6),
        unexpected=frozenset(),
        takers={},
        verdict=lambda _leaf, _call: CallVerdict(),
        group_of=found.group_of,
    )

    for place, others in ((1, ("a", "c")), (4, ("d", "e"))):
        (deviation,) = rounds.deviations([Aligned(place, 5, "order")])
        assert others == deviation.apart_from, place


def test_several_others_are_named_and_the_rest_counted() -> None:
    """Three; a program gets all of them."""
    deviation = StepDeviation(
        kind="order", tool="x", call=0, step="steps[0]", together="turn", apart_from=tuple("abcde")
    )

    assert "x was called, but not in the same model turn as a, b, c and 2 more (call 1)" == deviation.words(
        content=True
    )
    assert (["a", "b", "c", "d", "e"], "turn", "x") == tuple(
        deviation.as_json()[key] for key in ("apart_from", "together", "expected")
    )
    assert "together" not in StepDeviation(kind="order", tool="x", call=0, step="steps[0]").as_json()


@pytest.mark.parametrize(
    ("tools", "made", "taking", "statuses"),
    [
        ("aab", "ba", [None, None, 0], "order missing ok ignored"),
        ("aab", "baa", [None, None, 0], "order order ok ignored ignored"),
        ("ab", "ba", [None, 0], "order ok ignored"),
        ("ab", "b", [None, 0], "missing ok"),
    ],
)
def test_where_missing_calls_were_made(tools: str, made: str, taking: list[int | None], statuses: str) -> None:
    """The first call that is left takes the first step that is."""
    rows, _ = aligned(tools, made, taking).rows()

    assert statuses.split() == [row.status for row in rows]
    assert [row.actual for row in rows if row.status == "order"] == sorted(
        row.actual for row in rows if row.status == "order" and row.actual is not None
    )
