"""The comparison of what is learned: both sides judge the same runs, and the shares are those of their verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import learned, peers
from campaigns import learn
from campaigns.learned_agents.agents import AGENTS, REFUND
from campaigns.learned_agents.runs import Agent

SIZES = learn.Sizes(learned=10, good=10, faulty=2)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_run_changed_at_random_is_none_of_the_agents(agent: Agent) -> None:
    """There are as many as good ones, beside all that the campaign judges."""
    cases = learned.trial(agent, 1, SIZES).cases
    changed = [case.run for case in cases if case.kind == learned.CHANGED]

    assert learn.trial(agent, 1, SIZES).cases == cases[: -len(changed)]
    assert SIZES.good == len(changed)
    assert not any(map(agent.accepts, changed))


def test_shares_are_those_of_the_verdicts() -> None:
    """Good runs count where they are accepted, others where they are refused; what was not judged is a dash."""
    verdicts = [
        learned.Verdict("a", learn.GOOD, is_accepted=True, value=1.0),
        learned.Verdict("a", learn.GOOD, is_accepted=False, value=0.5),
        learned.Verdict("a", learned.CHANGED, is_accepted=True, value=1.0),
        learned.Verdict("a", learned.CHANGED, is_accepted=False, value=0.0),
        learned.Verdict("a", learned.CHANGED, is_accepted=False, value=0.0),
        learned.Verdict("a", "range", is_accepted=False, value=0.9),
        learned.Verdict("b", learn.GOOD, is_accepted=True, value=1.0),
    ]
    sides = [learned.Side("one", verdicts, {"a": 0.25})]

    _, of_a, of_all = learned.models(sides, ["a"])
    assert ["a", "one", "50.0", "0.750", "66.7", "0.250", "-", "100.0"] == of_a
    assert ["all", *of_a[1:]] == of_all
    assert ["range", "100.0"] in list(learned.faults(sides, ["a"]))


def test_pm4py_judges_the_order_and_sees_no_arguments(tmp_path: Path) -> None:
    """A straight line is discovered as it is."""
    python = peers.interpreter(learned.PEER)
    if python is None:
        pytest.skip("needs pm4py: python -m bench.peers pm4py")
    sides = learned.theirs([learned.trial(REFUND, 1, SIZES)], tmp_path, python)

    assert ["pm4py, noise 0.0", "pm4py, noise 0.2"] == [side.name for side in sides]
    for side in sides:
        assert "100.0" == side.share([REFUND.name], [learn.GOOD], accepted=True)
        assert "100.0" == side.share([REFUND.name], [learned.CHANGED, "order", "left out"], accepted=False)
        assert "0.0" == side.share([REFUND.name], learned.IN_ARGUMENTS, accepted=False)
