"""When events are, and what the evaluated span itself says; what they hold is tested with what emits them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED, report, trajectory
from spanscore.model import Outcome
from spanscore.reports.evaluation_event import event_attributes, event_time_ns, span_attributes

TIMES = st.integers(0, 2**64 - 1)


@given(times=st.tuples(TIMES, TIMES).map(sorted))
def test_it_lies_in_the_span_in_nanoseconds_and_in_microseconds(times: list[int]) -> None:
    """Viewers keep the start and the duration of a span in whole microseconds, and hide what lies outside of these."""
    start, end = times
    at = event_time_ns(start, end)

    assert start <= at <= end
    assert start // 1_000 <= at // 1_000 <= start // 1_000 + (end - start) // 1_000
    assert end - at < 2_000


@given(start=TIMES, end=TIMES)
def test_a_span_that_ends_before_it_starts_has_it_at_its_start(start: int, end: int) -> None:
    """There is no time within such a span."""
    if end < start:
        assert start == event_time_ns(start, end)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ((), {}),
        ((SKIPPED,), {}),
        ((PASSED, SKIPPED), {}),
        ((PASSED, NOT_PASSED, SKIPPED, BROKEN), {"spanscore.verdict": "fail", "spanscore.failing": "e2,e4"}),
    ],
)
def test_a_failing_run_says_so(outcomes: tuple[Outcome, ...], expected: dict[str, str]) -> None:
    """What failed is on the evaluated span, by name; nothing is said of a run that did not fail."""
    assert expected == span_attributes(report(*outcomes))


def test_the_test_of_a_run() -> None:
    """The names of the test and its suite are passed on under the names that they have in the conventions."""
    named = {"test.case.name": "refund twice", "test.suite.name": "shop"}
    (evaluation,) = (run := report(PASSED, about=trajectory(attributes=named))).evaluations
    told = event_attributes(run, evaluation)

    assert ("refund twice", "shop") == (told["test.case.name"], told["test.suite.name"])
    assert not [key for key in event_attributes(report(PASSED), evaluation) if key.startswith("test.")]


def test_why_a_run_failed() -> None:
    """An evaluation that failed has its first reason; no other one has any."""
    run = report(PASSED, NOT_PASSED, SKIPPED, BROKEN)
    told = [event_attributes(run, each).get("spanscore.fail_reason") for each in run.evaluations]
    assert [None, "e2: failed", None, "e4: went wrong: KeyError"] == told
