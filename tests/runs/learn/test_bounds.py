"""Bounds of learning: counts of work, so that a slow machine changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.config import build_evaluator
from spanscore.model import Trajectory
from spanscore.runs.learn import Learned, false_alarms, learned, plain
from spanscore.runs.learn.learned import not_too_many
from spanscore.runs.learn.structure import learned_steps


def run(names: Sequence[str], failed: Sequence[int] = ()) -> Trajectory:
    """A run that calls these tools; the calls at some places fail."""
    return Trajectory.from_calls(
        [
            {"name": name, "arguments": {"n": place}, "error": "E" if place in failed else None}
            for place, name in enumerate(names)
        ]
    )


def told(runs: Sequence[Trajectory]) -> Learned:
    """What runs teach."""
    return learned(runs, build_evaluator)


@pytest.mark.full_size
def test_very_many_calls_are_learned_from_in_part_and_the_result_says_so() -> None:
    """Runs are left out evenly over the recording; runs that fit are all learned from."""
    long = run(["a"] * 1_500)
    assert 20 == len(not_too_many([long] * 20))

    found = told([*[long] * 60])

    assert found.remarks[0] == (
        "learned from 15 of 60 runs: at most 150,000 calls are compared, and a call of a long run counts several times"
    )


@pytest.mark.full_size
def test_false_alarms_of_many_runs_are_estimated_by_parts() -> None:
    """Five parts are left out in turn: learning from the others takes no more work than is granted."""
    runs = [run(["a", "b", "c", "d", "e"]) for _ in range(2_000)]
    shown: list[tuple[int, int]] = []

    alarms = false_alarms(runs, build_evaluator, 0, lambda done, total: shown.append((done, total)))

    assert [(part, 5) for part in range(1, 6)] == shown
    assert (2_000, 0) == (alarms.runs, alarms.alarms)


def test_false_alarms_take_fewer_runs_the_more_work_each_is() -> None:
    """The work is known of learning from all of them."""
    runs = [run(["a", "b"]) for _ in range(70)]

    assert 35 == false_alarms(runs, build_evaluator).runs
    assert 3 == false_alarms(runs, build_evaluator, 10**8).runs


def test_runs_that_no_steps_can_be_compared_with_have_none() -> None:
    """Steps that would be skipped for every run are left out, with the reason, once."""
    runs = [run([f"t{(place * 7 + number) % 5}" for place in range(1_500 + number)]) for number in range(2)]

    found = told(runs)

    assert "steps" not in found.evaluators
    assert {"arguments", "budget"} <= found.evaluators.keys()
    assert 1 == sum("aligning the calls with the steps takes more than" in remark for remark in found.remarks)
    assert "steps and rules are left out" in found.remarks


def test_more_tools_than_can_be_compared_are_told() -> None:
    """Their order is not looked for, steps cannot list them, and the tools that are called most have schemas."""
    names = [f"tool-{number}" for number in range(1_500)]
    shown: list[tuple[int, int]] = []

    found = learned([run(names), run(names[::-1])], build_evaluator, lambda done, total: shown.append((done, total)))

    assert "the order of the calls is too much work to find: steps are in any order" in found.remarks
    assert "steps cannot be learned: there are more than 500 calls in the steps" in found.remarks
    left_out = "arguments: 1,000 tools left out, as 500 are called as often or more: tool-500, tool-501, tool-502, …"
    assert left_out in found.remarks
    assert len(set(found.remarks)) == len(found.remarks)
    assert [(part, 7) for part in range(1, 8)] == shown
    assert 500 == len(plain(found.evaluators["arguments"]["schemas"]))


def test_tools_of_hardly_any_run_are_named_up_to_a_number() -> None:
    """Where there are more, another one is to be expected: calls of any other tool are allowed."""
    runs = [run(["a", *(f"tool-{number}-{each}" for each in range(30))]) for number in range(20)]

    found = told(runs)

    assert "allow" == found.evaluators["steps"]["other_calls"]
    assert "600 tools of too few runs to know where they stand: others may be called" in found.remarks


def test_steps_within_steps_end() -> None:
    """Whatever the effort."""
    with pytest.raises(TooMuchWorkError):
        learned_steps([["a", "b"]] * 10, effort=Effort(1))


def test_failures_are_looked_at_once_each() -> None:
    """A call that fails again and again is made good by the first success of its tool, if there is one."""
    runs = [run(["a"] * 3_000 + ["b"], range(2_999)), run(["a"] * 3_000, range(3_000))]

    recovery = told(runs).evaluators["recovery"]

    assert 3_000 == plain(recovery)["max_retries"]
