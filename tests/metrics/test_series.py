from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from spanscore.contracts.instruments.instrument import EVALUATIONS, TOOL_DURATION, Instrument
from spanscore.metrics.series import MAX_SERIES, OTHER, Labels, SeriesTable, Values, looked_up, name_limits


class Counted:
    """Counts in the series of an instrument."""

    def __init__(self, instrument: Instrument) -> None:
        self._table: SeriesTable[list[int]] = SeriesTable(instrument, lambda *_: [0], name_limits(lambda: 0.0))

    def add(self, *values: str | None) -> None:
        """Count one."""
        self._table[values][0] += 1

    @property
    def counts(self) -> dict[Labels, int]:
        """What was counted in each series."""
        return {labels: series[0] for labels, series in self._table.series.items()}


def test_one_series_for_equal_values() -> None:
    """Measurements with the same names are in one series, and absent names are empty labels."""
    counted = Counted(EVALUATIONS)
    counted.add("e", "pass", "agent", None)
    counted.add("e", "pass", "agent", None)
    counted.add("e", "pass", "agent", "shop")

    assert {("e", "pass", "agent", ""): 2, ("e", "pass", "agent", "shop"): 1} == counted.counts


def test_first_hundred_tool_names() -> None:
    """A hundred tool names have series of their own; all later ones share one, and the first stay as they are."""
    counted = Counted(TOOL_DURATION)
    for _ in range(2):
        for number in range(150):
            counted.add(f"tool {number}", None, None, "agent", "shop")

    expected = {(f"tool {number}", "", "", "agent", "shop"): 2 for number in range(100)}
    assert expected | {(OTHER, "", "", "agent", "shop"): 100} == counted.counts


def test_first_hundred_error_types() -> None:
    """The same for the types of errors; a call without an error stays one."""
    counted = Counted(TOOL_DURATION)
    for number in range(150):
        counted.add("tool", None, f"E{number}", "agent", "shop")
        counted.add("tool", None, None, "agent", "shop")

    assert 50 == counted.counts["tool", "", OTHER, "agent", "shop"]
    assert 150 == counted.counts["tool", "", "", "agent", "shop"]


def test_series_run_out() -> None:
    """When there are too many series, names from traffic give way; evaluators and outcomes are still told apart."""
    counted = Counted(EVALUATIONS)
    for number in range(5_000):
        counted.add("e1", "pass", f"agent {number}", "shop")
    for number in range(3):
        counted.add("e2", "fail", f"agent {number}", "shop")

    assert 5_000 - 1_900 == counted.counts["e1", "pass", OTHER, OTHER]
    assert 3 == counted.counts["e2", "fail", OTHER, OTHER]
    assert 1_902 == len(counted.counts)


def test_series_run_out_with_many_evaluators() -> None:
    """Even thousands of evaluators fit: in the end only outcomes are told apart."""
    counted = Counted(EVALUATIONS)
    for number in range(3_000):
        counted.add(f"e{number}", "pass", "agent", "shop")
        counted.add(f"e{number}", "fail", "agent", "shop")

    assert len(counted.counts) <= MAX_SERIES
    assert {"pass": 3_000, "fail": 3_000} == _by(counted.counts, 1)
    assert {(OTHER, "pass", OTHER, OTHER), (OTHER, "fail", OTHER, OTHER)} <= counted.counts.keys()


@at_most(20)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 40), st.sampled_from(["pass", "fail", "skipped", "failed"]), st.integers(0, 60), st.none()
        ),
        max_size=50,
    ),
    st.integers(0, 3_000),
)
def test_sums_stay_exact(some: list[tuple[int, str, int, None]], flood: int) -> None:
    """Whatever comes, a metric has at most 2,000 series, none is lost, and its outcomes add up."""
    counted = Counted(EVALUATIONS)
    expected: Counter[str] = Counter()
    values: list[Values] = [(f"e{name}", outcome, f"agent {agent}", None) for name, outcome, agent, _ in some]
    values += [(f"e{number % 7}", "pass", None, f"service {number}") for number in range(flood)]
    for each in values:
        counted.add(*each)
        expected[each[1] or ""] += 1

    assert len(counted.counts) <= MAX_SERIES
    assert expected == _by(counted.counts, 1)


def test_looked_up_numbers_are_clean() -> None:
    """Numbers under names that only differ in what a label must not hold are one number: no series is there twice."""
    assert {("a", ""): 3, ("b", ""): 4} == looked_up(lambda: {("a", None): 1, ("a\n", ""): 2, ("b", None): 4})


def _by(counts: dict[Labels, int], place: int) -> Counter[str]:
    """Add the counts up by one label."""
    total: Counter[str] = Counter()
    for labels, count in counts.items():
        total[labels[place]] += count
    return total
