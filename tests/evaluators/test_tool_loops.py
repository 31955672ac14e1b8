from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluators.runs import NO_ARGUMENTS, around_its_value, called, details_of, made, value_of
from spanscore.config import loads
from spanscore.evaluators.tool_loops import Cycle, ToolLoops
from spanscore.model import Score, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy
from spanscore.testing import check_evaluator

EXACT: dict[str, Any] = {"similar": None}


def run(text: str) -> Trajectory:
    """A run of calls: `a1 b2=x` is a call of a with 1, and one of b with 2 whose result is x."""
    calls = []
    for each in text.split():
        call, _, result = each.partition("=")
        recorded = {"result": result} if result else {}
        calls.append(ToolCall(name=call[0], arguments={"x": call[1:]}, **recorded))
    return Trajectory(calls=tuple(calls))


def loops(text: str, **parameters: Any) -> list[tuple[str, list[int]]]:
    """The loops of a run, with the calls that are part of them."""
    return [
        (each["kind"], each["calls"])
        for each in details_of(ToolLoops(**EXACT | parameters).evaluate(run(text)))["loops"]
    ]


@pytest.mark.parametrize(
    ("calls", "parameters", "expected"),
    [
        ("a1 a1", {}, []),
        ("a1 a1 a1", {}, [("identical", [0, 1, 2])]),
        ("a1 b1 a1 c1 a1", {}, [("identical", [0, 2, 4])]),
        ("a1 b1 a1 c1 a1", {"adjacent": True}, []),
        ("b1 a1 a1 a1 b1", {"adjacent": True}, [("identical", [1, 2, 3])]),
        ("a1 a2 a3", {}, []),
        ("a1 a1", {"identical": 2}, [("identical", [0, 1])]),
        ("a1 a1 a1 a1", {"identical": None}, []),
        ("a1=x a1=y a1=z", {}, []),
        ("a1=x a1=y a1=z", {"results": "any"}, [("identical", [0, 1, 2])]),
        ("a1=x a1=x a1=x a1=y", {}, [("identical", [0, 1, 2])]),
        ("a1 b1 a1 b1 a1 b1", {"identical": None}, [("cycle", [0, 1, 2, 3, 4, 5])]),
        ("a1 b1 a1 b1", {"cycle": Cycle(times=2)}, [("cycle", [0, 1, 2, 3])]),
        ("a1 b1 c1 a1 b1 c1", {"cycle": Cycle(times=2, longest=2)}, []),
        ("a1 b1 a1 b1 a1 b1", {"identical": None, "cycle": None}, []),
        ("a1=x b1 a1=y b1 a1=z b1", {"identical": None}, []),
        ("a1 b1 c1 d1 e1 " * 3, {"identical": None}, []),
    ],
)
def test_loops(calls: str, parameters: dict[str, Any], expected: list[Any]) -> None:
    """The same call again and again, or the same round; calls that find something new are none."""
    assert expected == loops(calls, **parameters)


@pytest.mark.parametrize(("similar", "found"), [(0.9, 1), (0.999, 0), (None, 0)])
def test_similar_arguments(similar: float | None, found: int) -> None:
    """Arguments that differ by a character or two are the same call."""
    queries = ["the weather in Paris this week", "the weather in Paris this week?", "the weather in Paris, this week"]
    outcome = ToolLoops(similar=similar).evaluate(made(*(("search", {"query": query}) for query in queries)))

    assert found == len(details_of(outcome)["loops"])
    told = "search was called again with similar arguments, 3 times in total (call 2)."
    assert isinstance(outcome, Score)
    assert bool(found) == outcome.explanation.endswith(told)


def test_other_tools_and_other_arguments_are_not_similar() -> None:
    """However alike the texts of two tools are."""
    outcome = ToolLoops().evaluate(made(("a", {"q": "Paris"}), ("b", {"q": "Paris"}), ("a", {"q": "Rome"})))
    assert 1.0 == value_of(outcome)


def test_what_is_told() -> None:
    """How many calls are in loops, and where each begins to repeat itself."""
    outcome = ToolLoops().evaluate(run("a1 b1 a1 c1 a1"))

    assert isinstance(outcome, Score)
    assert 0.4 == outcome.value
    told = "3 of 5 calls are part of a loop. a was called again with the same arguments, 3 times in total (call 3)."
    assert told == outcome.explanation
    assert [{"kind": "identical", "tools": ["a"], "calls": [0, 2, 4], "times": 3}] == details_of(outcome)["loops"]
    assert {"calls": 5, "in_loops": 3} == details_of(outcome)["totals"]
    assert [("a", 2, "identical: 3 times")] == [
        (each["tool"], each["call"], each["expected"]) for each in details_of(outcome)["deviations"]
    ]
    nothing = ToolLoops().evaluate(run(""))
    assert isinstance(nothing, Score)
    assert (1.0, "No tool was called.") == (nothing.value, nothing.explanation)


def test_a_round_of_calls_is_told() -> None:
    """How many calls it has, how often it was made, and where it is made again."""
    outcome = ToolLoops(identical=None).evaluate(run("a1 b1 a2 b2 a1 b1 a2 b2 a1 b1 a2 b2"))

    assert isinstance(outcome, Score)
    assert "a begins the same 4 calls again, 3 times in total (call 5)" in outcome.explanation
    assert [{"kind": "cycle", "tools": ["a", "b"] * 2, "calls": [*range(12)], "times": 3}] == outcome.details["loops"]
    shortest = ToolLoops(identical=None).evaluate(run("a1 b1 a1 b1 a1 b1"))
    assert isinstance(shortest, Score)
    assert "a begins the same 2 calls again, 3 times in total (call 3)" in shortest.explanation
    assert ["cycle of 4 calls: 3 times"] == [each["expected"] for each in details_of(outcome)["deviations"]]


@pytest.mark.parametrize(
    ("calls", "parameters", "sides"),
    [
        ("a1 a1 a1", {}, MendedBy.NOTHING),
        ("a1 a1 a1", {"threshold": 0.9}, MendedBy.ANY),
        ("a1 a1 a1", {"adjacent": True}, MendedBy.BETWEEN),
        ("a1 b1 a1 b1 a1 b1", {"identical": None}, MendedBy.BETWEEN),
        ("a1 b1 a1 b1 a1 b1", {}, MendedBy.NOTHING),
        ("aParis1 aParis2 aParis3", {"similar": 0.5}, MendedBy.EARLIER | MendedBy.BETWEEN),
        ("aParis1 aParis2 aParis3 b1 b1 b1", {"similar": 0.5}, MendedBy.NOTHING),
        ("aParis1 b1 aParis2 b1 aParis3 b1", {"similar": 0.5, "identical": None}, MendedBy.EARLIER | MendedBy.BETWEEN),
    ],
)
def test_where_further_calls_could_mend_a_loop(calls: str, parameters: dict[str, Any], sides: MendedBy) -> None:
    """Between its calls; with similar arguments, before it; where the same call may be anywhere, nowhere."""
    outcome = ToolLoops(**EXACT | parameters).evaluate(run(calls))

    assert isinstance(outcome, Score)
    assert (False, sides) == (outcome.passed, outcome.mended_by)


@pytest.mark.parametrize(
    ("calls", "parameters", "expected"),
    [
        ("a1 b1 a1 b1 b1", {"identical": 2, "tools": ("a",)}, [("identical", [0, 2])]),
        ("a1 b1 a1 c1 a1 b1", {"tools": ("a*", "x?")}, [("identical", [0, 2, 4])]),
        ("a1 c1 a1 c2 a1", {"tools": ("a",), "adjacent": True}, [("identical", [0, 2, 4])]),
        ("a1 c1 b1 a1 c2 b1 a1 b1", {"tools": ("a", "b"), "identical": None}, [("cycle", [0, 2, 3, 5, 6, 7])]),
        ("a1 a1 a1", {"tools": ("b",)}, []),
        ("a1 a2 a3", {"ignore": ("x",)}, [("identical", [0, 1, 2])]),
        ("a1 a2 a3", {"ignore": ("x.0", "y")}, []),
    ],
)
def test_what_is_looked_at(calls: str, parameters: dict[str, Any], expected: list[Any]) -> None:
    """Only the calls of the named tools, and only the arguments that are not ignored."""
    assert expected == loops(calls, **parameters)


def test_a_retry_that_succeeds_is_no_loop() -> None:
    """A failed call and its retry have different results, even unrecorded ones; with `any`, results do not matter."""
    failed, done = (ToolCall(name="a", arguments={}, error=error) for error in ("full", None))
    retried = Trajectory(calls=(failed, done))

    assert 1.0 == value_of(ToolLoops(identical=2).evaluate(retried))
    assert 0.0 == value_of(ToolLoops(identical=2).evaluate(Trajectory(calls=(failed, failed))))
    assert 0.0 == value_of(ToolLoops(identical=2, results="any").evaluate(retried))


@pytest.mark.parametrize("value", [True, False, 1, 0, None])
def test_no_result_equals_no_recorded_one(value: Any) -> None:
    """Neither true nor 1, which Python's `==` takes for the sign of a success, nor null."""
    made_twice = Trajectory(
        calls=(
            ToolCall(name="a", arguments={}),
            ToolCall(name="a", arguments={}, result=value),
            ToolCall(name="a", arguments={}, error="TimeoutError"),
        )
    )

    assert 1.0 == value_of(ToolLoops(identical=2).evaluate(made_twice))


def test_ignored_arguments_are_deep_and_told_as_the_same() -> None:
    """Also where nearly equal arguments are the same."""
    pages = [("search", {"q": "x", "filter": {"page": page, "size": 10}}) for page in ("1", "some other", "z")]
    outcome = ToolLoops(ignore=("filter.page",)).evaluate(made(*pages))

    assert isinstance(outcome, Score)
    assert outcome.explanation.endswith("search was called again with the same arguments, 3 times in total (call 2).")
    assert 1.0 == value_of(ToolLoops().evaluate(made(*pages)))


def test_tools_are_named_as_they_are_compared() -> None:
    """Of the others neither arguments nor results are needed."""
    run_of_two = called("Issue-Refund", "issue_refund", "look", "look", completeness=NO_ARGUMENTS)
    evaluator = ToolLoops(tools=("issue_*",), tool_names="canonical")

    assert Skipped("arguments of 2 calls of 'Issue-Refund', 'issue_refund' were not recorded") == evaluator.evaluate(
        run_of_two
    )
    assert 1.0 == value_of(ToolLoops(tools=("x",)).evaluate(run_of_two))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"tools": ()}, "tools: at least one is needed"), ({"ignore": ("a..b",)}, "ignore: 'a..b' must be keys joined")],
)
def test_parameters_that_are_refused(parameters: dict[str, Any], message: str) -> None:
    """The message begins with the parameter."""
    with pytest.raises(ValueError, match=f"^{message}"):
        ToolLoops(**parameters)


def test_arguments_that_were_not_recorded() -> None:
    """Of a tool that is called once they are not asked for."""
    unknown = "arguments of 2 calls of 'a' were not recorded"
    assert Skipped(unknown) == ToolLoops().evaluate(called("a", "a", completeness=NO_ARGUMENTS))
    assert 1.0 == value_of(ToolLoops().evaluate(called("a", "b", completeness=NO_ARGUMENTS)))


def test_too_many_different_arguments() -> None:
    """What cannot be compared in time is not scored."""
    many = made(*(("a", {"q": f"{number:x}" * 9}) for number in range(1_000)))
    assert Skipped("looking for similar arguments takes more than 10000 comparisons") == ToolLoops().evaluate(many)
    assert 1.0 == value_of(ToolLoops(similar=None).evaluate(many))


def test_the_threshold_itself_is_enough() -> None:
    """And with any greater one it does not pass."""
    assert (0.4, [True, True, False]) == around_its_value(ToolLoops(), run("a1 b1 a1 c1 a1"))


def test_null_switches_off() -> None:
    """In the configuration, too, where a section without keys has its defaults."""
    text = "evaluators: {a: {type: tool_loops, cycle: null, identical: null}, b: {type: tool_loops, cycle: {}}}"
    off, on = (each.resolve(Trajectory(calls=())) for each in loads(text, "c.yaml", Path()).evaluators)

    assert (ToolLoops(cycle=None, identical=None), ToolLoops()) == (off, on)


def test_the_contract() -> None:
    """It evaluates whatever comes."""
    check_evaluator(ToolLoops())
    check_evaluator(ToolLoops(identical=2, adjacent=True, cycle=Cycle(longest=2, times=2), similar=0.1, results="any"))
    check_evaluator(ToolLoops(identical=None, cycle=None, similar=None, tool_names="canonical"))
    check_evaluator(ToolLoops(identical=2, tools=("a*",), ignore=("x", "y.0")))
