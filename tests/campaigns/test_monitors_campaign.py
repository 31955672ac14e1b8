"""A short form of both campaigns of monitors; each is a command of its own for all figures."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from campaigns import monitors, monitors_beside_alerts
from programs import PROMETHEUS, PROMTOOL, Programs

MISSING = Programs().missing(PROMETHEUS, PROMTOOL)


def test_streams_are_what_they_say() -> None:
    """Each fails at the objective on average."""
    chance = random.Random(1)
    streams = {
        "steady": monitors.steady(chance, 10),
        "clusters": monitors.steady(chance, 100, cluster=20),
        "bursts": monitors.bursts(chance, 10),
        "days": monitors.days(chance, 10),
    }
    for stream in streams.values():
        minutes = list(islice(stream, 14 * monitors.DAY))
        share = sum(bad for bad, _ in minutes) / sum(runs for _, runs in minutes)
        assert 0.05 == pytest.approx(share, rel=0.15)


@pytest.mark.campaign
def test_the_bar_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    """With the streams of the command."""
    assert 0 == monitors.main([]), capsys.readouterr().out


@pytest.mark.campaign
@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
def test_a_monitor_is_sooner_than_the_alerts(capsys: pytest.CaptureFixture[str]) -> None:
    """With one stream of each rate, in a real Prometheus."""
    assert 0 == monitors_beside_alerts.main(["--streams", "1"]), capsys.readouterr().out
