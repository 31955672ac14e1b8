"""The rule that decides about a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emitters.reports import NOT_PASSED, PASSED, SKIPPED, report, trajectory
from spanscore.model import CloseReason, Completeness, Report, Score, Span, Trace
from spanscore.scoring.keep.rules import sampling_rules
from spanscore.scoring.keep.sampling import threshold_of
from spanscore.scoring.keep.settings import KeepRule, KeepSettings, KeepWhen

FAILED = report(PASSED, NOT_PASSED)
FINE = report(PASSED)
UNKNOWN = report(about=trajectory(recognised=False))
CUT_OFF = replace(FINE, close_reason=CloseReason.TIMED_OUT)
PAUSED = report(PASSED, about=trajectory(completeness=Completeness(paused=("refund",))))


def trace(*times: tuple[int, int]) -> Trace:
    """Return a trace with spans at these times, in seconds."""
    spans = tuple(
        Span(b"t" * 16, bytes([index + 1] * 8), b"", "work", begin * 10**9, end * 10**9)
        for index, (begin, end) in enumerate(times)
    )
    return Trace(trace_id=b"t" * 16, spans=spans, close_reason=CloseReason.ROOT_ENDED)


def matches(reports: list[Report], times: tuple[tuple[int, int], ...] = ((1, 2),), **when: Any) -> bool:
    """Return whether a rule with these conditions decides about a trace with these reports."""
    rules = sampling_rules(KeepSettings(rules=(KeepRule(name="this", when=KeepWhen(**when)),)))
    first = next(rule for rule in rules if rule.matches(trace(*times), reports))
    return first.name == "this"


@pytest.mark.parametrize(
    ("reports", "verdict"),
    [([FINE, FAILED], "fail"), ([FINE, report(SKIPPED)], "pass"), ([report(SKIPPED)], "none"), ([UNKNOWN], "none")],
)
def test_the_verdict_of_a_trace(reports: list[Report], verdict: str) -> None:
    """One failing run makes it fail."""
    assert [verdict] == [each for each in ("pass", "fail", "none") if matches(reports, verdict=each)]


def test_the_lowest_score_counts() -> None:
    """Of all runs; a score that does not exist is not below anything."""
    runs = [
        report(health=Score(0.9, passed=True, explanation="")),
        report(health=Score(0.5, passed=True, explanation="")),
    ]
    assert matches(runs, score="health", below=0.6)
    assert not matches(runs, score="health", below=0.5)
    assert not matches(runs, score="other", below=0.9)
    assert not matches([report(health=SKIPPED)], score="health", below=0.9)


def test_what_is_not_whole() -> None:
    """A part of a run that pauses is not broken."""
    assert matches([FINE, CUT_OFF], incomplete=True)
    assert not matches([PAUSED], incomplete=True)
    assert matches([PAUSED, FINE], incomplete=False)


def test_traces_of_others() -> None:
    """No span of them is known."""
    assert matches([UNKNOWN], recognised=False)
    assert not matches([FINE, UNKNOWN], recognised=False)
    assert matches([FINE], recognised=True)


def test_how_long_it_took() -> None:
    """From the first start to the last end, whatever the order."""
    assert matches([FINE], ((5, 31), (1, 9)), longer_than_s=29.0)
    assert not matches([FINE], ((5, 31), (1, 9)), longer_than_s=30.0)
    assert not matches([], (), longer_than_s=0.0)


def test_attributes() -> None:
    """All globs match in one of the runs."""
    runs = [report(about=trajectory(attributes={"service.name": "shop-eu", "region": "eu"}))]
    assert matches(runs, match={"service.name": "shop-*", "region": "eu"})
    assert not matches(runs, match={"service.name": "shop-*", "region": "us"})
    assert not matches(runs, match={"tenant": "*"})


def test_conditions_are_and_ed_and_the_first_rule_decides() -> None:
    """At the end is the default."""
    rules = sampling_rules(
        KeepSettings(
            rules=(
                KeepRule(name="slow and failing", when=KeepWhen(verdict="fail", longer_than_s=10.0)),
                KeepRule(name="failing", when=KeepWhen(verdict="fail"), keep=0.5),
            ),
            default=0.05,
        )
    )

    def first(reports: list[Report], *times: tuple[int, int]) -> str:
        return next(rule.name for rule in rules if rule.matches(trace(*times), reports))

    assert "slow and failing" == first([FAILED], (1, 20))
    assert "failing" == first([FAILED], (1, 2))
    assert "default" == first([FINE], (1, 20))
    assert [0, threshold_of(0.5), threshold_of(0.05)] == [rule.threshold for rule in rules]
