"""The campaign of fairness, as long as a test may last; what is promised in seconds is measured by the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import fairness
from campaigns import fairness_attacks as attacks
from campaigns.fairness import Attack, Outcome
from conformance.processes import Process


def slow_bodies(running: Process) -> None:
    """Hold a hundred slow bodies for a moment."""
    with attacks.slow_bodies(running, 100):
        attacks.held_for(1.0)


def expiry(running: Process) -> None:
    """Have thousands of traces due at once."""
    assert 200 == attacks.post(running, attacks.rootless(1 << 71, 5_000))
    attacks.held_for(1.0)


def large_json(running: Process) -> None:
    """Send a large span in JSON, twice at the same time."""
    assert [200, 200] == attacks.at_once(running, attacks.json_attributes(1 << 73, 100_000), 2)


def page_readers(running: Process) -> None:
    """Have forty clients ask for pages that they do not read."""
    with attacks.deaf_readers(running, 20):
        attacks.held_for(1.0)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "attack",
    [
        Attack(run=slow_bodies),
        Attack(run=expiry, timeout="500ms"),
        Attack(run=expiry, timeout="500ms", is_kept=True),
        Attack(run=large_json),
        Attack(run=page_readers),
    ],
    ids=["slow bodies", "expiry", "expiry with keep", "json", "page readers"],
)
def test_honest_agents_lose_nothing(tmp_path: Path, attack: Attack) -> None:
    """Beside an attack every trace of agents with stock exporters is scored, once and whole, and `/livez` answers."""
    outcome = fairness.run(tmp_path, attack, beforehand_s=0.5)

    assert (0, 0, 0, 0) == (outcome.lost, outcome.in_part, outcome.twice, outcome.unanswered)
    assert outcome.sent > 2
    assert outcome.export_s
    assert outcome.livez_s


def test_what_was_not_measured_has_failed() -> None:
    """Without a trace, without an answer of `/livez`, or with one that came late, nothing is shown."""
    good = {"sent": 1, "livez_s": [0.1]}
    assert [False, True, True, True, True] == [
        Outcome(**told).failed
        for told in (
            good,
            {**good, "sent": 0},
            {**good, "livez_s": []},
            {**good, "livez_s": [9.0]},
            {**good, "lost": 1},
        )
    ]
