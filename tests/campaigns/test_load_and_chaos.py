"""Campaigns of load and chaos, as long as a test may last; each is a command of its own for longer ones."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from campaigns import chaos, load, overload

pytestmark = pytest.mark.campaign


def test_everything_that_is_sent_is_received(tmp_path: Path) -> None:
    """At ten thousand spans a second each is counted once, and memory stays small."""
    outcome = load.steady(tmp_path, 2)

    assert (outcome.sent, 0, 0) == (outcome.received, outcome.unbalanced, outcome.gave_up)
    assert outcome.peak_rss < 150 * 2**20


def test_too_much_is_received_later(tmp_path: Path) -> None:
    """However many send at once to a receiver that has no time for them, in the end it has everything."""
    outcome = load.overload(tmp_path, 1, senders=96, spans=load.SPANS)

    assert (outcome.sent, 0, 0) == (outcome.received, outcome.unbalanced, outcome.gave_up)
    assert outcome.sent > 0


def test_the_sdks_exporters_lose_nothing_in_an_overload(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While the receiver has time for a third of what they send, all of it is scored, once and whole."""
    caplog.set_level(logging.CRITICAL)
    outcome = overload.run(tmp_path, 2)

    assert (0, 0, 0) == (outcome.lost, outcome.incomplete, outcome.repeated)
    assert outcome.sent > overload.TRACES_PER_EXPORT


def test_broken_connections_lose_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever happens on the way, each trace that was acknowledged is scored once, with all of its calls."""
    caplog.set_level(logging.CRITICAL)
    faults = [fault for fault in chaos.Fault if fault is not chaos.Fault.STALL]
    outcome = chaos.run(tmp_path, 0.3, faults)

    assert (0, 0, 0) == (outcome.lost, outcome.incomplete, outcome.repeated)
    assert outcome.acknowledged > len(faults)
