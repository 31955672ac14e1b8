from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from catalogue.bounds import costs_at_most
from emitters.reports import PASSED, report
from reports.test_reasons import failing
from spanscore.model import ModelCall, Outcome, Report, Trajectory
from spanscore.runs.diff import Change, changes


def runs(*made: Iterable[str | Mapping[str, Any]], first: int = 0) -> list[Trajectory]:
    """Runs with these calls, each a name or a mapping."""
    return [
        replace(
            Trajectory.from_calls(
                [{"name": call, "arguments": {}} if isinstance(call, str) else call for call in calls]
            ),
            trace_id=(first + number).to_bytes(16, "big"),
        )
        for number, calls in enumerate(made)
    ]


def told(base: list[Trajectory], new: list[Trajectory]) -> dict[tuple[str, ...], Change]:
    """The changes by what is told, and of which tools."""
    return {(each.what, *each.tools): each for each in changes(reports(base), reports(new))}


def reports(made: list[Trajectory], *outcomes: Outcome) -> list[Report]:
    """Return a report of each run, with these outcomes."""
    return [report(*outcomes, about=each) for each in made]


def test_tools_that_are_new_or_gone_are_told_with_examples() -> None:
    """And not once more for their order and their arguments."""
    found = told(runs(*[["a", "b"]] * 10), runs(*[["a", {"name": "c", "arguments": {"x": 1}}]] * 10, first=100))

    assert {("new: called", "c"), ("gone: called", "b")} == set(found)
    new = found["new: called", "c"]
    assert ("0 of 10 runs", "10 of 10 runs") == (new.base, new.new)
    assert tuple(f"{number:032x}" for number in (100, 101, 102)) == new.examples
    assert new.examples == found["gone: called", "b"].examples


def test_another_order_is_told() -> None:
    """Which call follows which."""
    found = told(runs(*[["a", "b"]] * 10), runs(*[["b", "a"]] * 10))

    assert ("gone: one right after the other", "a", "b") in found
    assert ("new: one right after the other", "b", "a") in found


def test_the_form_of_arguments_is_told_and_not_their_values() -> None:
    """Paths, with the type of what stands there."""

    def made(**arguments: Any) -> list[dict[str, Any]]:
        return [{"name": "a", "arguments": arguments}]

    found = told(
        runs(*[made(order="A", lines=[{"sku": 1}])] * 10), runs(*[made(order=17, lines=[{"sku": 2, "n": 1}])] * 10)
    )

    assert {
        ("new: argument order: number", "a"),
        ("gone: argument order: string", "a"),
        ("new: argument lines[].n: number", "a"),
    } == set(found)


def test_failures_calls_durations_and_tokens_are_told_where_they_are_no_chance() -> None:
    """With what they were, and what they are."""
    fast, slow = ({"name": "a", "arguments": {}, "duration_ms": ms} for ms in (10, 30))
    failed = {**slow, "error": "TimeoutError"}

    def spent(trajectory: Trajectory, tokens: int) -> Trajectory:
        return replace(trajectory, model_calls=(ModelCall(input_tokens=tokens, output_tokens=1),))

    base = [spent(each, 100 + number) for number, each in enumerate(runs(*[[fast]] * 12))]
    new = [spent(each, 300 + number) for number, each in enumerate(runs(*[[failed, slow]] * 12))]

    found = told(base, new)

    assert ("0 of 12 runs", "12 of 12 runs") == found["new: fails", "a"][2:4]
    assert ("1", "2") == found["calls a run", "a"][2:4]
    assert ("106", "306") == found[("tokens of a run",)][2:4]
    assert ("calls a run, of all tools",) in found


def test_what_may_be_chance_is_not_told() -> None:
    """One run of ten does as it likes; and nothing is told of nothing."""
    assert {} == told(runs(*[["a", "b"]] * 9, ["a"]), runs(*[["a", "b"]] * 10))
    assert [] == changes([], reports(runs(["a"])))


def test_reasons_are_told_first() -> None:
    """One that is new or gone, and one that is more or less frequent, if that is no chance."""
    same = runs(*[["a"]] * 20)
    often, seldom = reports(same, failing("x")), [*reports(same[:4], failing("x")), *reports(same[4:], PASSED)]
    never = reports(same, PASSED)

    (more,) = changes(seldom, often)
    assert ("reason e1: x", (), "4 of 20 runs", "20 of 20 runs") == more[:4]
    assert more.examples == tuple(f"{number:032x}" for number in range(3))
    assert ["new: reason e1: x"] == [each.what for each in changes(never, seldom)]
    assert ["gone: reason e1: x"] == [each.what for each in changes(often, never)]
    assert [] == changes(seldom, [*reports(same[:5], failing("x")), *reports(same[5:], PASSED)])
    found = changes(never, reports(runs(*[["b"]] * 20), failing("x")))
    assert "new: reason e1: x" == found[0].what


def test_very_many_pairs_of_tools() -> None:
    """Each of 10,000 pairs is of two tools, which few of the 500 runs of a version call: within 2 s."""
    chance = Random(1)
    names = [f"tool-{number}" for number in range(2_000)]
    base, new = (reports(runs(*(chance.sample(names, 10) for _ in range(500)), first=first)) for first in (0, 500))
    with costs_at_most(cpu_s=2):
        found = changes(base, new)

    assert found
