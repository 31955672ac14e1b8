from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spanscore
from examples import at_most
from spanscore.config import build_evaluator
from spanscore.model import ModelCall, Score, ToolCall, Trajectory
from spanscore.runs.learn import Learned, false_alarms, learned, plain

CORPUS = Path(__file__).parents[2] / "corpus"
RECORDINGS = [
    CORPUS / f"{name}.jsonl.gz"
    for name in ("strands", "crewai-oi", "google-adk-oi", "mastra", "codex-cli-logs", "genkit")
]
CALLS = st.fixed_dictionaries(
    {"name": st.sampled_from("abcd"), "arguments": st.dictionaries(st.sampled_from("xy"), st.integers(0, 3))},
    optional={"error": st.just("TimeoutError"), "result": st.integers(0, 1)},
)


def run(*calls: str | Mapping[str, Any]) -> Trajectory:
    """A run with these calls, each a name or a mapping."""
    made = [{"name": call, "arguments": {}} if isinstance(call, str) else call for call in calls]
    return Trajectory.from_calls(made)


def told(runs: Iterable[Trajectory]) -> Learned:
    """What runs teach."""
    return learned(list(runs), build_evaluator)


def failing(found: Learned, trajectory: Trajectory) -> set[str]:
    """The evaluators that a run fails."""
    left_out = {name: frozenset(entry.get("ignore_tools", ())) for name, entry in found.evaluators.items()}
    names = set()
    for name, entry in found.evaluators.items():
        params = plain({key: value for key, value in entry.items() if key not in {"type", "ignore_tools"}})
        seen = replace(trajectory, calls=tuple(call for call in trajectory.calls if call.name not in left_out[name]))
        outcome = build_evaluator(entry["type"], params).evaluate(seen)
        if isinstance(outcome, Score) and not outcome.passed:
            names.add(name)
    return names


def test_a_call_without_a_result_is_not_one_that_returned_null() -> None:
    """So that two with the same result are more than there ever were."""
    polled = {"name": "poll", "arguments": {}}
    found = told(run(polled, {**polled, "result": None}) for _ in range(10))

    assert {"repeats"} == failing(found, run({**polled, "result": None}, {**polled, "result": None}))


def test_what_an_argument_decides_is_a_rule() -> None:
    """A branch that belongs to another value is another's."""
    ways = {"billing": "invoice", "technical": "ticket", "account": "password"}
    found = told(run({"name": "route", "arguments": {"to": to}}, tool) for to, tool in list(ways.items()) * 10)

    assert set() == failing(found, run({"name": "route", "arguments": {"to": "billing"}}, "invoice"))
    assert {"rules"} == failing(found, run({"name": "route", "arguments": {"to": "billing"}}, "ticket"))


def test_what_goes_together_by_chance_is_no_rule() -> None:
    """Tools that nearly all runs call are also called with nearly every other."""
    calls = [["a", *(["b"] if number % 10 else []), *(["c"] if number % 3 else [])] for number in range(30)]

    found = told(run(*made) for made in calls)

    assert "rules" not in found.evaluators


def test_the_first_of_calls_in_rounds_stays_the_first() -> None:
    """What the steps leave open, and no run did otherwise."""
    runs = [run("x", *order, "z") for order in ("abb", "aab", "abab", "aabb", "abba", "ab") * 5]

    assert failing(told(runs), run("x", "b", "a", "z"))


def test_the_same_call_twice_is_told_from_calls_with_other_arguments() -> None:
    """Where a tool is called several times in a run, and never with the same arguments."""

    def searches(*words: str) -> Trajectory:
        return run(*({"name": "search", "arguments": {"words": each}} for each in words))

    found = told(searches(*[f"word {number} {each}" for each in range(1 + number % 3)]) for number in range(12))

    assert set() == failing(found, searches("tea", "cup"))
    assert {"repeats"} == failing(found, searches("tea", "tea"))


def test_failures_that_were_made_good_have_to_be() -> None:
    """By another try, or by the tool that was called instead; those that were let stand are left alone."""
    failed = {"name": "pay", "arguments": {}, "error": "TimeoutError"}
    lost = {"name": "log", "arguments": {}, "error": "TimeoutError"}
    good = [run("start", "pay", "end"), run("start", failed, "pay", "end"), run("start", "pay", lost, "end")] * 5

    found = told(good)

    assert {"steps", "recovery"} == failing(found, run("start", failed, "end"))
    assert set() == failing(found, run("start", "pay", lost, "end"))
    assert ["failures were let stand: log"] == [each for each in found.remarks if "let stand" in each]
    assert ["cache"] == told(
        [run({"name": "web", "arguments": {}, "error": "E"}, "cache", "end"), run("web", "end")] * 5
    ).evaluators["recovery"]["alternatives"]["web"]


def test_failures_that_are_part_of_the_work_keep_their_place() -> None:
    """Tests that fail until the code is right: between two of them something is done about it."""
    wrong = {"name": "test", "arguments": {}, "error": "AssertionError"}
    good = [run("open", *["edit", wrong] * (number % 3), "edit", "test", "commit") for number in range(12)]

    found = told(good)

    assert set() == failing(found, run("open", "edit", wrong, "edit", "test", "commit"))
    assert "rounds" in failing(found, run("open", "edit", wrong, wrong, "edit", "edit", "test", "commit"))


def test_budgets_are_what_was_recorded_in_all_runs() -> None:
    """With room; what one run does not tell is in none."""
    tokens = ModelCall(input_tokens=100, output_tokens=20)
    runs = [replace(run("a"), model_calls=(tokens,) * calls, start_ns=0, end_ns=10**9) for calls in (1, 2, 3)]

    budget = plain(told(runs).evaluators["budget"])

    assert {"type": "run_budget", "model_calls": 7, "tool_calls": 2, "total_tokens": 820, "duration_s": 10} == budget
    slow = [replace(each, end_ns=20 * 10**9) for each in runs]
    assert 60 == plain(told(slow).evaluators["budget"])["duration_s"]
    unknown = replace(runs[0], model_calls=(ModelCall(),), end_ns=None)
    assert {"type", "model_calls", "tool_calls"} == set(told([*runs, unknown]).evaluators["budget"])


def test_what_cannot_be_known_is_said() -> None:
    """Few runs, arguments that were not recorded, tools that are never used."""
    bare = Trajectory(calls=(ToolCall(name="a"), ToolCall(name="a")))
    known = replace(run("a"), tool_definitions={"a": {}, "b": {}})

    found = told([known, bare])

    assert found.remarks[0].startswith("few runs, 2: ")
    assert ["tools never used: b", "arguments were not recorded, or not always: a"] == found.remarks[1:]
    assert {"steps", "recovery", "budget"} == set(found.evaluators)


def test_names_that_are_globs_are_remarked() -> None:
    """No configuration can name such a tool alone."""
    found = told([run("a", "*", "!b", "c?")] * 10)

    assert "tools whose names are read as globs, so that other tools match, too: !b, *, c?" in found.remarks


def test_false_alarms_are_runs_that_fail_what_the_others_teach() -> None:
    """The one that calls another tool is one."""
    runs = [run("a", "b")] * 19 + [run("a", "c", "b")]

    alarms = false_alarms(runs, build_evaluator)

    assert (20, 1, {"steps": 1}) == (alarms.runs, alarms.alarms, dict(alarms.by))
    assert 0 == false_alarms([run("a", "b")] * 5, build_evaluator).alarms


def test_of_many_runs_some_are_left_out_in_turn() -> None:
    """As many as tell enough."""
    assert 50 == false_alarms([run("a")] * 150, build_evaluator).runs


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_real_runs_pass_what_they_teach(recording: Path) -> None:
    """Whoever recorded them."""
    runs = [each for each in spanscore.read(recording) if each.recognised and each.unread is None]

    found = told(runs)

    assert "steps" in found.evaluators
    assert not any(failing(found, each) for each in runs)


@at_most(60)
@given(st.lists(st.lists(CALLS, max_size=6), min_size=1, max_size=6))
def test_every_run_passes_what_it_teaches(runs: list[list[dict[str, Any]]]) -> None:
    """And nothing that was found had to be taken back."""
    trajectories = [run(*({key: each[key] for key in each} for each in calls)) for calls in runs]

    found = told(trajectories)

    assert not any(failing(found, each) for each in trajectories)
    assert not any("do not keep" in remark or "cannot be learned" in remark for remark in found.remarks)
