"""Matchers stand for expected values in every evaluator that compares arguments or results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spanscore
from spanscore.errors import ConfigError
from spanscore.model import Outcome, Score, Skipped, Trajectory

NEAR = {"$near": 40, "within": 0.01}
LOOKUP = {"name": "lookup", "arguments": {}, "result": {"id": "4711"}}
FROM = {"$from": "lookup", "path": "/id"}


def outcome(kind: str, parameters: dict[str, Any], calls: list[dict[str, Any]]) -> Outcome:
    """Evaluate one run."""
    return spanscore.evaluator(kind, parameters).evaluate(Trajectory.from_calls(calls))


def value(kind: str, parameters: dict[str, Any], calls: list[dict[str, Any]]) -> float:
    """Return the value of one run that has a score."""
    found = outcome(kind, parameters, calls)
    assert isinstance(found, Score), found
    return found.value


def expecting(*arguments: Any) -> list[tuple[str, dict[str, Any]]]:
    """Expect calls of `a` with these arguments, in each way there is."""
    ways: list[tuple[str, dict[str, Any]]] = [
        ("tool_call_args", {"tool_calls": [{"name": "a", "args": each} for each in arguments], "subset": subset})
        for subset in (True, False)
    ]
    ways += [
        ("tool_call_accuracy", {"expected": [{"name": "a", "input": each} for each in arguments], "mode": mode})
        for mode in ("exact", "flexible")
    ]
    calls = [{"name": "a", "arguments": each} for each in arguments]
    ways += [("tool_call_f1", {"reference_tool_calls": calls, "mode": mode}) for mode in ("strict", "flexible")]
    ways += [
        ("trajectory_match", {"reference": calls, "mode": mode, "scoring": "f1", "arguments": how})
        for mode in ("exact", "in_order", "any_order", "unordered")
        for how in ("exact", "subset", "superset")
    ]
    return ways


@pytest.mark.parametrize(("kind", "parameters"), expecting({"amount": NEAR, "note": {"$optional": "x"}}))
def test_a_matching_key_counts_as_equal(kind: str, parameters: dict[str, Any]) -> None:
    """In all ways to compare arguments; a key that may be missing need not be there."""
    assert 1 == value(kind, parameters, [{"name": "a", "arguments": {"amount": 40.01}}])
    assert 1 == value(kind, parameters, [{"name": "a", "arguments": {"amount": 40, "note": "x"}}])
    assert 1 > value(kind, parameters, [{"name": "a", "arguments": {"amount": 400}}])


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [way for way in expecting({"amount": NEAR}) if way[0] != "tool_call_f1" or way[1]["mode"] == "strict"],
)
def test_explanations_name_the_path(kind: str, parameters: dict[str, Any]) -> None:
    """They tell what was expected and what came, but nothing of it where content may not go."""
    found = outcome(kind, parameters, [{"name": "a", "arguments": {"amount": 400}}])

    assert isinstance(found, Score)
    assert "a.amount: expected 40 ± 0.01, got 400 (call 1)" in found.explanation
    assert found.without_content is not None
    assert "a.amount: not the expected value (call 1)" in found.without_content


@pytest.mark.parametrize(("kind", "parameters"), expecting({"$any": True}))
def test_one_matcher_for_all_arguments(kind: str, parameters: dict[str, Any]) -> None:
    """It may stand in place of the whole; a call without arguments has an empty object."""
    assert 1 == value(kind, parameters, [{"name": "a", "arguments": {"x": [1]}}])
    assert 1 == value(kind, parameters, [{"name": "a"}])


@pytest.mark.parametrize(("kind", "parameters"), expecting({"order": FROM}))
def test_results_of_earlier_calls(kind: str, parameters: dict[str, Any]) -> None:
    """A value may have to come from an earlier result; where that was not recorded nothing is known."""
    if parameters.get("mode") == "exact":
        first: dict[str, Any] = {"name": "lookup", "arguments": {}}
        key = {"tool_call_accuracy": "expected"}.get(kind, "reference")
        entry = {"name": "lookup"} if kind == "tool_call_accuracy" else first
        parameters = {**parameters, key: [entry, *parameters[key]]}
    right = {"name": "a", "arguments": {"order": "4711"}}
    low = value(kind, parameters, [LOOKUP, {**right, "arguments": {"order": "1"}}])

    assert low < value(kind, parameters, [LOOKUP, right])
    run = Trajectory.from_calls([{"name": "lookup", "arguments": {}}, right])
    run = replace(run, completeness=run.completeness.of(run.calls))
    found = spanscore.evaluator(kind, parameters).evaluate(run)
    assert Skipped("results of 1 call of 'lookup' were not recorded") == found


@pytest.mark.parametrize(("kind", "parameters"), expecting({"x": {"$litteral": 1}}))
def test_mistakes_are_found_with_their_path(kind: str, parameters: dict[str, Any]) -> None:
    """When the configuration is read, with the nearest name."""
    with pytest.raises(ConfigError, match=r"\.x\.\$litteral: unknown matcher; did you mean '\$literal'\?"):
        spanscore.evaluator(kind, parameters)


PLAIN = st.dictionaries(st.sampled_from("xy"), st.sampled_from([0, 1, True, [1], {"z": 2}]), max_size=2)


@given(st.lists(PLAIN, min_size=1, max_size=3), st.lists(PLAIN, max_size=4))
def test_literals_score_as_what_they_are(expected: list[Any], made: list[Any]) -> None:
    """`{$literal: X}` is X, in every evaluator."""
    calls = [{"name": "a", "arguments": each} for each in made]
    literal = expecting(*({"$literal": each} for each in expected))
    for (kind, plain), (_, parameters) in zip(expecting(*expected), literal, strict=True):
        assert value(kind, plain, calls) == value(kind, parameters, calls)


@given(st.lists(PLAIN, min_size=1, max_size=3), st.lists(PLAIN, max_size=4))
def test_matchers_score_as_the_values_they_match(expected: list[Any], made: list[Any]) -> None:
    """Comparing one by one gives what comparing by keys gives: values in `$one_of` of one are values."""
    calls = [{"name": "a", "arguments": each} for each in made]
    matchers = [{key: {"$one_of": [item]} for key, item in each.items()} for each in expected]
    for (kind, plain), (_, parameters) in zip(expecting(*expected), expecting(*matchers), strict=True):
        assert value(kind, plain, calls) == value(kind, parameters, calls), (kind, plain)


def not_skipped(argument: str, ways: Iterable[tuple[str, dict[str, Any]]]) -> list[tuple[str, Outcome]]:
    """Evaluate 5,000 calls with this argument, of which none is like one of 60; return what is known all the same."""
    calls = [{"name": "a", "arguments": {argument: number}} for number in range(5_000)]
    skipped = Skipped("matching the arguments takes more than 250000 comparisons: the calls are too alike")
    outcomes = [(kind, outcome(kind, parameters, calls)) for kind, parameters in ways]
    return [(kind, found) for kind, found in outcomes if found != skipped]


def each_with_each() -> list[tuple[str, dict[str, Any]]]:
    """The ways in which each call may have to be compared with each of 60 expected ones."""
    ways = expecting(*({"x": {"$range": [-1 - number, -1]}} for number in range(60)))
    return [(kind, parameters) for kind, parameters in ways if parameters.get("mode") != "exact"]


@pytest.mark.parametrize("way", dict(each_with_each()).items(), ids=itemgetter(0))
def test_calls_that_are_too_many(way: tuple[str, dict[str, Any]]) -> None:
    """Comparing ends at a limit, and then nothing is known: seen in one way of each evaluator, and what is cheap."""
    assert [] == not_skipped("y", [way])


@pytest.mark.full_size
def test_calls_that_are_too_many_in_every_way() -> None:
    """It ends there in all ways to compare arguments."""
    assert [] == not_skipped("x", each_with_each())
