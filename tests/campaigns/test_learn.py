"""The judge of what is learned: its runs are what they say they are, and it tells good expectations from bad ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import spanscore
from campaigns import learn
from campaigns.learned_agents.agents import AGENTS, CODING, DELEGATING, PARALLEL, REFUND, RETRYING
from campaigns.learned_agents.faults import FAULTS
from campaigns.learned_agents.recording import write
from campaigns.learned_agents.runs import Agent
from spanscore.cli._overview import SUMMARIES

SIZES = learn.Sizes(learned=4, good=6, faulty=3)
STRICT = """
evaluators:
  steps:
    type: expected_trajectory
    steps: [lookup_order, check_policy, issue_refund, notify_customer]
    other_calls: forbid
"""
LENIENT = "evaluators: {known: {type: run_budget, tool_calls: 10000}}"
BLIND = "evaluators: {known: {type: tool_policy, match: {service.name: another}, allowed: [nothing]}}"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_fault_is_one_for_certain(agent: Agent) -> None:
    """Good runs are the agent's own, and no run with a fault is."""
    cases = learn.trial(agent, 1, learn.Sizes(good=50)).cases
    good = [case.run for case in cases if case.kind == learn.GOOD]

    assert all(map(agent.accepts, [*good, *learn.trial(agent, 1, SIZES).learned]))
    assert not any(agent.accepts(case.run) for case in cases if case.kind != learn.GOOD)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_each_agent_can_have_each_fault(agent: Agent) -> None:
    """As often as they are asked for."""
    kinds = [case.kind for case in learn.trial(agent, 1, SIZES).cases]

    assert dict.fromkeys(FAULTS, SIZES.faulty) == {fault: kinds.count(fault) for fault in FAULTS}


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_recording_is_read_as_what_was_done(agent: Agent, tmp_path: Path) -> None:
    """Each run is a trajectory with its calls, arguments and errors, in their order."""
    runs = [case.run for case in learn.trial(agent, 2, SIZES).cases]
    ids = write(tmp_path / "runs.jsonl", agent, runs, random.Random(1))

    read = {each.trace_id.hex(): each for each in spanscore.read([tmp_path / "runs.jsonl"])}

    assert ids == list(read)
    for trace_id, run in zip(ids, runs, strict=True):
        made = [(call.tool, call.arguments, call.agent, call.error is None) for call in run.calls]
        found = [(call.name, call.arguments, call.agent, call.error is None) for call in read[trace_id].calls]
        assert made == found


def test_good_runs_vary_as_they_should() -> None:
    """There are failures in passing, tests that fail until the last, parallel calls in each order, and delegations."""
    chance = random.Random(1)
    retried = [RETRYING.draw(chance) for _ in range(50)]
    assert {True, False} == {any(call.error for call in run.calls) for run in retried}
    tested = [[call for call in CODING.draw(chance).calls if call.tool == "run_tests"] for _ in range(50)]
    assert {1, 2, 3, 4} == {len(calls) for calls in tested}
    assert all([call.error is None for call in calls] == [False] * (len(calls) - 1) + [True] for calls in tested)
    assert len({tuple(call.tool for call in PARALLEL.draw(chance).turns[0]) for _ in range(100)}) == 6
    assert {"report-agent", "researcher"} == {call.agent for call in DELEGATING.draw(chance).calls}


def test_the_same_seed_gives_the_same_runs() -> None:
    """And another one others."""
    assert learn.trial(REFUND, 1, SIZES) == learn.trial(REFUND, 1, SIZES)
    assert learn.trial(REFUND, 1, SIZES) != learn.trial(REFUND, 2, SIZES)


def _judged(agent: Agent, directory: Path, config: str) -> learn.Findings:
    return learn.campaign([agent], 1, SIZES, directory, lambda _, learned: learned.write_text(config) and None)


def test_expectations_that_see_the_order_alone_are_told_from_those_that_see_all(tmp_path: Path) -> None:
    """Faults in the steps are found, those in arguments are not, and that is below the bar."""
    found = _judged(REFUND, tmp_path, STRICT)
    seen = {kind: found.rate([REFUND.name], [kind]).right for kind in (learn.GOOD, *FAULTS)}

    assert 6 == seen[learn.GOOD]
    assert dict.fromkeys(("left out", "order", "tool added", "twice", "loop", "wrong tool"), 3).items() <= seen.items()
    assert dict.fromkeys(("type", "range", "new value", "not retried"), 0).items() <= seen.items()
    assert not found.is_good_enough(each_cell=False)
    assert "100.0" in list(found.table())[-1]
    assert "0.0*" in list(found.table())[-1]


def test_expectations_that_accept_everything_are_below_the_bar(tmp_path: Path) -> None:
    """Though all good runs pass."""
    found = _judged(REFUND, tmp_path, LENIENT)

    assert found.rate([REFUND.name], [learn.GOOD]).is_reached
    assert 0 == found.rate([REFUND.name], FAULTS).right
    assert not found.is_good_enough(each_cell=False)


def test_a_run_without_a_verdict_neither_passes_nor_fails(tmp_path: Path) -> None:
    """Expectations that are of no run reach nothing."""
    found = _judged(REFUND, tmp_path, BLIND)

    assert {"none"} == {each.said.verdict for each in found.all}
    assert not any(each.is_right for each in found.all)


def test_a_configuration_that_cannot_be_read_is_no_rate(tmp_path: Path) -> None:
    """It is an error with what the command said."""
    with pytest.raises(learn.UnusableError, match=r"score .* ended with 2: .*nonsense"):
        _judged(REFUND, tmp_path, "nonsense: true")


def test_rates_are_judged_by_their_own_bar() -> None:
    """97 of 100 good runs are enough, 96 are not; 19 of 20 faults are, 18 are not; nothing judged reaches nothing."""
    assert learn.Rate(97, 100, learn.PASS_AT_LEAST).is_reached
    assert not learn.Rate(96, 100, learn.PASS_AT_LEAST).is_reached
    assert learn.Rate(19, 20, learn.FAIL_AT_LEAST).is_reached
    assert not learn.Rate(18, 20, learn.FAIL_AT_LEAST).is_reached
    assert not learn.Rate(0, 0, learn.FAIL_AT_LEAST).is_reached


@pytest.mark.campaign
@pytest.mark.skipif("learn" not in SUMMARIES, reason="needs the command `spanscore learn`")
def test_what_is_learned_reaches_the_bar(capsys: pytest.CaptureFixture[str]) -> None:
    """Of two agents with one seed; the command does all with several."""
    assert 0 == learn.main(["refund-agent", "docs-assistant", "--seeds", "1"]), capsys.readouterr().out
