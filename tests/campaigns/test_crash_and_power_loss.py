"""The campaigns that end in seconds; each is a command of its own for longer ones."""

from __future__ import annotations

import logging

import pytest

from campaigns import crash, power_loss

pytestmark = pytest.mark.campaign


@pytest.mark.parametrize(
    ("durability", "idle", "kills"),
    [
        ("crash", crash.LONG, {"crash": 12}),
        ("power", crash.LONG, {"power": 12}),
        ("both", "50ms", {"crash": 6, "power": 6}),
    ],
)
def test_kills_lose_nothing_and_repeat_nothing(durability: str, idle: str, kills: dict[str, int]) -> None:
    """Whenever the receiver is killed, every span that it acknowledged is in one score, and its counts add up.

    A run that pauses is scored once as whole, and a turn is in one conversation.
    """
    outcome = crash.run(12, durability=durability, idle=idle, torn=4, seed=7)

    assert (kills, 0, 0, 0) == (outcome.kills, outcome.lost, outcome.repeated, outcome.unbalanced)
    assert outcome.acknowledged > outcome.kills.total()
    assert (0, 0) == (outcome.turns.repeated, outcome.turns.in_part)
    assert not outcome.failed
    assert min(outcome.turns.finished, outcome.pauses) > 0


@pytest.mark.parametrize("durability", ["power", "crash"])
def test_a_loss_of_power_loses_what_is_stated(durability: str, caplog: pytest.LogCaptureFixture) -> None:
    """With `power` nothing that was acknowledged is lost, with `crash` what was acknowledged within the window."""
    caplog.set_level(logging.CRITICAL)
    outcome = power_loss.run(300, durability)

    assert (300, False) == (outcome.states, outcome.failed)
    assert outcome.acknowledged > outcome.states
