"""A short form of the campaign; it is a command of its own for all sets."""

from __future__ import annotations

import random

import pytest

from campaigns import growth
from spanscore.reports.since import Growth


@pytest.mark.parametrize("kind", growth.KINDS, ids=lambda kind: kind.name)
def test_a_planted_change_is_found(kind: growth.Kind) -> None:
    """Of one set of each kind, with its time."""
    finding = growth.found(growth.planted(random.Random(kind.name), kind, growth.SEVERAL))

    assert finding.planted
    assert finding.is_timed


@pytest.mark.parametrize("traffic", [False, True])
@pytest.mark.parametrize("share", [False, True])
def test_steady_runs_show_nothing(*, traffic: bool, share: bool) -> None:
    """Of three sets."""
    for number in range(3):
        assert [] == growth.found(growth.steady(random.Random(number), traffic=traffic, share=share)).grown


def test_a_sample_is_what_it_says() -> None:
    """2,000 runs; from the change on at least 50 more fail, only of the kind's agents; traffic and share change."""
    kind = growth.Kind("both", agents=growth.AGENTS[:1], rate=0, between=(0.5, 0.5), traffic=True, share=True)
    sample = growth.planted(random.Random(1), kind, growth.SEVERAL)
    early, late = ([run for run in sample.runs if (run.start_ns >= sample.changed_ns) == is_late] for is_late in (0, 1))
    failed = [run for run in sample.runs if growth.PLANTED in run.reasons]

    assert growth.RUNS == len(sample.runs) == len(early) + len(late)
    assert 2 == pytest.approx(len(late) / len(early), rel=0.2)
    for runs, share in ((early, 0.2), (late, 0.35)):
        assert share == pytest.approx(sum(run.agent == growth.AGENTS[0] for run in runs) / len(runs), abs=0.04)
    assert 50 <= len(failed) <= 200
    assert {growth.AGENTS[0]} == {run.agent for run in failed}
    assert all(run in late for run in failed)


def test_failures_come_in_clusters() -> None:
    """Of 2 to 10 runs of an agent that follow each other, if a sample has them."""
    sample = growth.steady(random.Random(1), clustered=True)
    lengths = []
    for text, evaluator in sample.reasons.items():
        for agent in growth.AGENTS:
            length = 0
            for run in sample.runs:
                if run.agent == agent and evaluator in run.evaluators:
                    if text not in run.reasons and length:
                        lengths.append(length)
                    length = length + 1 if text in run.reasons else 0

    assert 2 == min(lengths)
    assert 6 == pytest.approx(sum(lengths) / len(lengths), abs=1.5)


def test_a_finding_is_the_first_or_the_second_reason() -> None:
    """The third one is not found, and a time outside of the interval is missed."""
    grown = {text: Growth(None, 10, 20, 9.0) for text in ("steady 1", growth.PLANTED, "steady 2")}
    second = growth.Finding(15, list(grown.items()))

    assert second.planted
    assert second.is_timed
    assert not second._replace(changed_ns=21).is_timed
    third = growth.Finding(15, sorted(grown.items(), reverse=True))
    assert third.planted is None
    assert not third.is_timed


@pytest.mark.campaign
def test_the_bar_is_reached(capsys: pytest.CaptureFixture[str]) -> None:
    """With the sets of the command; few of those that have no bar."""
    assert 0 == growth.main(["--limits", "10"]), capsys.readouterr().out
