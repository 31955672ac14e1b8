from __future__ import annotations

from dataclasses import replace

import pytest

from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED, call, health_report, report, trajectory
from spanscore.contracts.instruments.instrument import (
    AGENT_TOOL_CALLS,
    ALL_SUCCEEDED,
    CONSECUTIVE_SAME,
    EVALUATIONS,
    FAIL_REASONS,
    LATENCY_P50,
    LATENCY_P95,
    RUNS,
    RUNS_PAUSED,
    RUNS_RESUMED,
    SCORE,
    SEQUENCE_GAPS,
    SWITCHABLE,
    TOOL_CALLS,
    TOOL_CALLS_FAILED,
    TOOL_DURATION,
    TOOL_FAILURE_RATE,
    UNIT,
)
from spanscore.metrics.measurements import measurements
from spanscore.model import Completeness, Invocation
from spanscore.testing import sample_trajectories


def test_outcomes_and_scores() -> None:
    """Every evaluation counts by its outcome; a score is measured only where there is one."""
    assert [
        (EVALUATIONS, 1, ("e1", "pass", "refund", "shop")),
        (SCORE, 1.0, ("e1", "refund", "shop")),
        (EVALUATIONS, 1, ("e2", "fail", "refund", "shop")),
        (SCORE, 0.25, ("e2", "refund", "shop")),
        (EVALUATIONS, 1, ("e3", "skipped", "refund", "shop")),
        (EVALUATIONS, 1, ("e4", "failed", "refund", "shop")),
        (RUNS, 1, ("fail", "refund", "shop")),
        (FAIL_REASONS, 1, ("e2: failed", "refund", "shop")),
        (FAIL_REASONS, 1, ("e4: went wrong: KeyError", "refund", "shop")),
        (AGENT_TOOL_CALLS, 0, ("refund", "shop")),
    ] == list(measurements(report(PASSED, NOT_PASSED, SKIPPED, BROKEN)))


def test_tool_calls() -> None:
    """Every call whose execution was seen has a duration; only a failed one has a type of error."""
    calls = (
        call("search", 1_500),
        call(
            "book", 20, error="TimeoutError: no answer", error_type="TimeoutError", agent="booker", tool_type="function"
        ),
        replace(call("asked for only"), span_id=None),
        replace(call("not ended"), end_ns=0),
        replace(call("clock went back"), end_ns=1),
    )

    assert [
        (RUNS, 1, ("none", "refund", "shop")),
        (AGENT_TOOL_CALLS, 5, ("refund", "shop")),
        (TOOL_DURATION, 1.5, ("search", None, None, "refund", "shop")),
        (TOOL_DURATION, 0.02, ("book", "function", "TimeoutError", "booker", "shop")),
        (TOOL_DURATION, 0.0, ("clock went back", None, None, "refund", "shop")),
    ] == list(measurements(report(about=trajectory(*calls))))


def test_health() -> None:
    """What tool_call_trajectory measures are metrics of their own, under its name."""
    calls = [
        call("search", 100, sequence=1),
        call("search", 300, error="no", sequence=2),
        call("book", 200, sequence=5),
    ]
    named = ("health", "refund", "shop")

    assert [
        (EVALUATIONS, 1, ("health", "fail", "refund", "shop")),
        (SCORE, 2 / 3, named),
        (TOOL_CALLS, 3, named),
        (TOOL_CALLS_FAILED, 1, named),
        (ALL_SUCCEEDED, False, named),
        (SEQUENCE_GAPS, 2, named),
        (CONSECUTIVE_SAME, 1, named),
        (TOOL_FAILURE_RATE, 0.0, ("health", "book", "refund", "shop")),
        (TOOL_FAILURE_RATE, 0.5, ("health", "search", "refund", "shop")),
        (LATENCY_P50, 0.2, named),
        (LATENCY_P95, 0.3, named),
    ] == list(measurements(health_report(*calls)))[:11]


def test_no_latency_without_a_timed_call() -> None:
    """Where no execution was seen no latency is measured, not one of zero."""
    measured = measurements(health_report(replace(call("search"), span_id=None)))

    assert {LATENCY_P50.name, LATENCY_P95.name, TOOL_DURATION.name}.isdisjoint(
        instrument.name for instrument, _, _ in measured
    )


def test_revisions_are_not_measured() -> None:
    """What late spans cause to be scored again was measured before."""
    assert [] == list(measurements(report(PASSED, revision=1)))


def test_runs_that_pause() -> None:
    """They are counted as such, once, and as runs if they fail, or go on; a run that continues is counted as both."""
    paused = replace(trajectory(), completeness=Completeness(paused=("pay",)))
    resumed = replace(trajectory(), completeness=Completeness(resumed=True))

    assert [(RUNS_PAUSED, 1, ("refund", "shop"))] == measurements(report(SKIPPED, about=paused))
    assert [] == measurements(report(SKIPPED, about=paused, revision=1))
    failed = measurements(report(NOT_PASSED, about=paused))
    assert [(RUNS, 1, ("fail", "refund", "shop")), (RUNS_PAUSED, 1, ("refund", "shop"))] == [
        each for each in failed if each[0] in {RUNS, RUNS_PAUSED}
    ]
    again = measurements(replace(report(PASSED, revision=1), paused_before=True))
    assert measurements(report(PASSED)) == again
    assert [(RUNS, 1, ("pass", "refund", "shop")), (RUNS_RESUMED, 1, ("refund", "shop"))] == [
        each for each in measurements(report(PASSED, about=resumed)) if each[0] in {RUNS, RUNS_RESUMED}
    ]


def test_a_value_for_each_attribute() -> None:
    """Every measurement has a value for each attribute of its instrument but the unit, whatever the trajectory."""
    for about in sample_trajectories():
        for instrument, value, values in measurements(health_report(*about.calls, completeness=about.completeness)):
            assert len([each for each in instrument.attributes if each != UNIT]) == len(values)
            assert value >= 0


@pytest.mark.parametrize(
    ("error_type", "expected"),
    [
        ("TimeoutError", "TimeoutError"),
        ("requests.exceptions.HTTPError", "requests.exceptions.HTTPError"),
        ("std::runtime_error", "std::runtime_error"),
        ("500", "500"),
        (None, "_OTHER"),
        ("the card was declined", "_OTHER"),
        ("", "_OTHER"),
        ("e" * 101, "_OTHER"),
    ],
)
def test_error_type(error_type: str | None, expected: str) -> None:
    """The type of a failed call's error is what the spans name, and never a word of its message."""
    failed = call("book", 20, error="issue_refund: no answer", error_type=error_type)

    assert [(TOOL_DURATION, 0.02, ("book", None, expected, "refund", "shop"))] == list(
        measurements(report(about=trajectory(failed)))
    )[-1:]


def test_calls_of_each_invocation() -> None:
    """Each agent's invocation counts its own calls; where none can be told apart, the run is one."""
    about = trajectory(call("search"), call("book"), invocations=(Invocation("refund", 0), Invocation("booker", 2)))

    assert [(0, ("refund", "shop")), (2, ("booker", "shop"))] == [
        (value, values)
        for instrument, value, values in measurements(report(about=about))
        if instrument == AGENT_TOOL_CALLS
    ]


def test_left_out() -> None:
    """What the instrumentation records itself is left out where the configuration says so, and nothing else is."""
    whole = report(PASSED, about=trajectory(call("search")))
    left_out = replace(whole, unmeasured=frozenset(each.name for each in SWITCHABLE))

    assert {AGENT_TOOL_CALLS, TOOL_DURATION} == set(SWITCHABLE)
    assert [each for each in measurements(whole) if each[0] not in SWITCHABLE] == list(measurements(left_out))
    assert len(list(measurements(left_out))) == len(list(measurements(whole))) - 2
