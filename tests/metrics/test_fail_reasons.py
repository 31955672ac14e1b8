from __future__ import annotations

import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.contracts.instruments.instrument import FAIL_REASONS
from spanscore.metrics.fail_reasons import MOST_ADMITTED, MOST_COUNTED, ReasonAdmission
from spanscore.metrics.series import OTHER, SeriesTable, name_limits

HOUR_S = 3_600.0


class CountedReasons:
    """The series of the metric, at a time that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._table: SeriesTable[list[int]] = SeriesTable(FAIL_REASONS, lambda *_: [0], name_limits(lambda: self.now_s))

    def add(self, reason: str, agent: str = "refunds", runs: int = 1) -> None:
        """Count runs that failed for a reason."""
        for _ in range(runs):
            self._table[reason, agent, "shop"][0] += 1

    @property
    def counts(self) -> dict[str, int]:
        """The runs of each reason, of all agents."""
        total: Counter[str] = Counter()
        for (reason, *_), series in self._table.series.items():
            total[reason] += series[0]
        return dict(total)


def test_own_value_from_the_fifth_run() -> None:
    """The first four runs of a reason are `_other`, whichever agents they are of; the fifth has its name."""
    counted = CountedReasons()
    counted.add("order: a was not called", "refunds", 3)
    counted.add("order: a was not called", "search")
    assert {OTHER: 4} == counted.counts
    counted.add("order: a was not called", "search", 2)

    assert {OTHER: 4, "order: a was not called": 2} == counted.counts


@pytest.mark.parametrize(("between", "is_admitted"), [(MOST_COUNTED - 1, True), (MOST_COUNTED, False)])
def test_the_reasons_seen_last_are_counted(between: int, *, is_admitted: bool) -> None:
    """The runs of a reason are forgotten when 1,024 others were seen since its last run."""
    admission = ReasonAdmission()
    assert [False] * 4 == [admission.admits("again", 0) for _ in range(4)]
    assert not any(admission.admits(f"once {number}", 0) for number in range(between))

    assert is_admitted == admission.admits("again", 0)


def test_no_more_than_eighty_in_an_hour() -> None:
    """The 81st reason is `_other` until one of the others was not seen for an hour; that one then gives way."""
    counted = CountedReasons()
    for number in range(MOST_ADMITTED):
        counted.add(f"r{number}", runs=5)
    counted.now_s = 1.0
    for number in range(1, MOST_ADMITTED):
        counted.add(f"r{number}")
    counted.now_s = HOUR_S - 0.001
    counted.add("new", runs=9)
    assert "new" not in counted.counts
    counted.now_s = HOUR_S
    counted.add("new")
    counted.add("newer", runs=9)

    assert (1, "newer" in counted.counts) == (counted.counts["new"], False)
    before = counted.counts["r0"]
    counted.add("r0", runs=4)
    assert before == counted.counts["r0"]


def test_a_fault_among_single_texts_has_its_name() -> None:
    """Where one run in fifty brings a text of its own, a fault that comes later is named from its fifth run on."""
    counted = CountedReasons()
    for number in range(5_000):
        counted.now_s = number / 10
        counted.add(f"once {number}" if number % 50 == 0 else f"usual {number % 7}")
    counted.add("fault", runs=6)

    assert 2 == counted.counts["fault"]
    assert not any(reason.startswith("once") for reason in counted.counts)


def test_reasons_keep_their_names_where_agents_are_many() -> None:
    """When the series run out, agents become `_other`; 79 reasons and `_other` take the 80 series that are left."""
    counted = CountedReasons()
    for number in range(2_500):
        counted.add("usual", f"agent {number}")
    others = [f"r{number}" for number in range(MOST_ADMITTED - 2)]
    for reason in others:
        counted.add(reason, "another agent", runs=5)

    assert {"usual", OTHER, *others} == counted.counts.keys()
    assert 2_500 + 5 * len(others) == sum(counted.counts.values())


@at_most(50)
@given(st.lists(st.tuples(st.integers(0, 120), st.integers(1, 7), st.integers(0, 40)), max_size=400))
def test_whatever_comes(some: list[tuple[int, int, int]]) -> None:
    """No run is lost, none has the name of another reason, and at most 80 names are in use within an hour."""
    counted = CountedReasons()
    expected: Counter[str] = Counter()
    named: list[tuple[float, str]] = []
    for number, runs, minutes in some:
        counted.now_s += 60.0 * minutes
        reason = f"r{number}"
        before = counted.counts.get(reason, 0)
        counted.add(reason, runs=runs)
        expected[reason] += runs
        if counted.counts.get(reason, 0) > before:
            named.append((counted.now_s, reason))
        assert len({each for at_s, each in named if at_s > counted.now_s - HOUR_S}) <= MOST_ADMITTED

    assert expected.total() == sum(counted.counts.values())
    assert all(count <= max(0, expected[reason] - 4) for reason, count in counted.counts.items() if reason != OTHER)


@pytest.mark.full_size
def test_three_hundred_thousand_texts() -> None:
    """They leave at most 80 names, exact sums and less than 1 MB, also where the characters are wide."""
    wide = "\U00020000" * 110
    tracemalloc.start()
    try:
        counted = CountedReasons()
        for number in range(300_000):
            counted.now_s = number / 100
            counted.add(f"once {number} {wide if number > 298_000 else ''}")
            if number % 10 == 0:
                counted.add(f"again {number // 10 % 90} {wide}")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 1_000_000
    assert MOST_ADMITTED + 1 == len(counted.counts)
    assert 330_000 == sum(counted.counts.values())
    assert all(reason == OTHER or reason.startswith("again") for reason in counted.counts)
