from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from reports.page.shown_runs import report_of
from serving import eventually
from spanscore.reports.serialization import report_line
from spanscore.service.recent_runs import RecentRuns, ShownRun
from spanscore.testing import check_emitter


@contextmanager
def started(most: int, **how: Any) -> Iterator[RecentRuns]:
    """Keep runs without a pause."""
    recent = RecentRuns(most, **{"pace_s": 0, **how})
    recent.start()
    yield recent
    recent.close(0)


def emitted(recent: RecentRuns, *numbers: int, tools: int = 1) -> None:
    """Emit runs one after the other, each when the one before is kept."""
    for number in numbers:
        before = recent.last
        recent.emit(report_of(number, *["lookup_order"] * tools))
        eventually(lambda before=before: recent.last != before)


def traces(runs: Sequence[ShownRun]) -> list[int]:
    """Return the number of each run's trace."""
    return [int(json.loads(run.text)["runs"][0][0], 16) for run in runs]


def test_the_last_runs_are_kept() -> None:
    """Oldest first, and no more than so many; each has an id of its own."""
    with started(3) as recent:
        emitted(recent, 1, 2, 3, 4, 5)

        held = recent.held
        assert ([3, 4, 5], recent.last, recent.last) == (traces(held.runs), held.runs[-1].id, held.last)
        assert 3 == len({run.id for run in held.runs})


def test_a_revision_takes_the_place_of_what_was_shown_before() -> None:
    """Late spans have a run scored once more: it is one run, with another id."""
    with started(9) as recent:
        emitted(recent, 1, 2)
        (first, _) = recent.held.runs
        emitted(recent, 1)

        assert [2, 1] == traces(recent.held.runs)
        assert first.id not in {run.id for run in recent.held.runs}


def test_the_size_of_all_is_bounded() -> None:
    """However large runs are; the oldest give way."""
    with started(100, most_bytes=6_000) as recent:
        emitted(recent, *range(1, 30))

        assert 0 < sum(max(len(run.text), len(run.report)) for run in recent.held.runs) <= 6_000
        assert 29 == traces(recent.held.runs)[-1]


@pytest.mark.parametrize("most_bytes", [10**6, 4_000])
def test_a_line_is_the_same_whether_there_is_room_for_it(most_bytes: int) -> None:
    """A line that takes more than its part of the room is kept in fewer bytes."""
    with started(1, most_bytes=most_bytes) as recent:
        emitted(recent, 1, tools=20)

        (run,) = recent.held.runs
        assert report_line(report_of(1, *["lookup_order"] * 20)) == run.line.decode()
        assert (len(run.report) < len(run.line)) == (most_bytes == 4_000)


def test_it_says_since_when_every_run_is_kept() -> None:
    """Since the start, until the first run gives way: then since the oldest one that is kept; another start is later.

    A run that is scored once more takes no other with it.
    """
    now = iter(range(100, 200))
    with started(2, clock=lambda: float(next(now))) as recent:  # 100 is asked when it is made, 101 when it starts
        emitted(recent, 1, 2)
        assert (101, [1, 2]) == (recent.held.since_s, traces(recent.held.runs))
        emitted(recent, 1)
        assert (101, [2, 1]) == (recent.held.since_s, traces(recent.held.runs))
        emitted(recent, 3)
        first, _ = held = recent.held.runs
        assert (recent.held.since_s, [1, 3]) == (first.time_s, traces(held))

    with started(2, clock=lambda: 500.0) as recent:
        assert (500, 500, ()) == (recent.held.since_s, recent.held.as_of_s, recent.held.runs)


def test_a_huge_run_is_shown_without_its_content() -> None:
    """Or even without its calls: what is kept of one is bounded."""
    with started(9) as recent:
        emitted(recent, 1, tools=5_000)

        (run,) = recent.held.runs
        assert (True, True) == (len(run.text) < 3 * 64 * 1024, len(run.line) < 64 * 1024)


def test_what_comes_too_fast_is_counted_and_nothing_waits() -> None:
    """While nobody writes it down, the queue keeps the first, and the very last, which are shown later."""
    with started(500, pace_s=1_000) as recent:
        emitted(recent, 1)
        for number in range(2, 202):
            recent.emit(report_of(number))
        skipped = recent.skipped
        recent.close(0)
        recent.emit(report_of(999))
        eventually(lambda: len(recent.held.runs) == 66)

    assert (200 - 65, [1, *range(2, 66), 201]) == (skipped, traces(recent.held.runs))


def test_before_it_is_served_nothing_is_kept() -> None:
    """Nor are traces of others, in which no agent is known."""
    recent = RecentRuns(9)
    recent.emit(report_of(1))
    with started(9) as started_one:
        unknown = report_of(1)
        started_one.emit(replace(unknown, trajectory=replace(unknown.trajectory, recognised=False)))
        emitted(started_one, 2)

        assert ((), [2]) == (recent.held.runs, traces(started_one.held.runs))


def test_a_run_that_cannot_be_shown_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The log says why."""
    with started(9) as recent:
        recent.emit(replace(report_of(1), evaluations=None))  # type: ignore[arg-type]
        emitted(recent, 2)

        assert ([2], ["a run cannot be shown on the page"]) == (traces(recent.held.runs), caplog.messages)


def test_it_keeps_the_contract_of_emitters() -> None:
    """As every emitter does."""
    with started(9) as recent:
        check_emitter(recent)
