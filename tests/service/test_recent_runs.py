from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from reports.page.shown_runs import report_of
from serving import eventually
from spanscore.service.recent_runs import RecentRuns, ShownRun
from spanscore.testing import check_emitter


@contextmanager
def started(most: int, **how: float) -> Iterator[RecentRuns]:
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

        assert ([3, 4, 5], recent.last) == (traces(recent.runs), recent.runs[-1].id)
        assert 3 == len({run.id for run in recent.runs})


def test_a_revision_takes_the_place_of_what_was_shown_before() -> None:
    """Late spans have a run scored once more: it is one run, with another id."""
    with started(9) as recent:
        emitted(recent, 1, 2)
        (first, _) = recent.runs
        emitted(recent, 1)

        assert [2, 1] == traces(recent.runs)
        assert first.id not in {run.id for run in recent.runs}


def test_the_size_of_all_is_bounded() -> None:
    """However large runs are; the oldest give way."""
    with started(100, most_bytes=6_000) as recent:
        emitted(recent, *range(1, 30))

        assert 0 < sum(len(run.text) for run in recent.runs) <= 6_000
        assert 29 == traces(recent.runs)[-1]


def test_a_huge_run_is_shown_without_its_content() -> None:
    """Or even without its calls: what is kept of one is bounded."""
    with started(9) as recent:
        emitted(recent, 1, tools=5_000)

        assert (1, True) == (len(recent.runs), len(recent.runs[0].text) < 3 * 64 * 1024)


def test_what_comes_too_fast_is_counted_and_nothing_waits() -> None:
    """While nobody writes it down, the queue keeps the newest, which are shown later."""
    with started(500, pace_s=1_000) as recent:
        emitted(recent, 1)
        for number in range(2, 202):
            recent.emit(report_of(number))
        skipped = recent.skipped
        recent.close(0)
        recent.emit(report_of(999))
        eventually(lambda: len(recent.runs) == 65)

    assert (200 - 64, [1, *range(138, 202)]) == (skipped, traces(recent.runs))


def test_before_it_is_served_nothing_is_kept() -> None:
    """Nor are traces of others, in which no agent is known."""
    recent = RecentRuns(9)
    recent.emit(report_of(1))
    with started(9) as started_one:
        unknown = report_of(1)
        started_one.emit(replace(unknown, trajectory=replace(unknown.trajectory, recognised=False)))
        emitted(started_one, 2)

        assert ([], [2]) == (recent.runs, traces(started_one.runs))


def test_a_run_that_cannot_be_shown_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The log says why."""
    with started(9) as recent:
        recent.emit(replace(report_of(1), evaluations=None))  # type: ignore[arg-type]
        emitted(recent, 2)

        assert ([2], ["a run cannot be shown on the page"]) == (traces(recent.runs), caplog.messages)


def test_it_keeps_the_contract_of_emitters() -> None:
    """As every emitter does."""
    with started(9) as recent:
        check_emitter(recent)
