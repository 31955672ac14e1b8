from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.runs.agreement import RULINGS, Agreement, PersonsVerdict, Ruling, Worth, agreements, joint
from spanscore.runs.repeats import wilson_interval

LABELS: tuple[PersonsVerdict, ...] = ("fail", "pass")


def counted(both_fail: int, missed: int, good: int, both_pass: int) -> Agreement:
    """An evaluator with these counts."""
    found = Agreement("rules")
    found.counts.update(
        {
            ("fail", "fail"): both_fail,
            ("fail", "pass"): missed,
            ("pass", "fail"): good,
            ("pass", "pass"): both_pass,
        }
    )
    return found


@pytest.mark.parametrize(
    ("counts", "worth", "told"),
    [
        ((10, 1, 1, 10), Worth.KEEP, "worth keeping"),
        ((8, 60, 0, 60), Worth.KEEP, "worth keeping, but misses 60 of 68 failures that people saw"),
        ((2, 5, 20, 20), Worth.FAILS_GOOD_RUNS, "20 of 22 fails were good runs"),
        ((90, 0, 60, 0), Worth.FAILS_GOOD_RUNS, "60 of 150 fails were good runs"),
        ((0, 10, 0, 10), Worth.MISSES_FAILURES, "misses 10 of 10 failures that people saw"),
        ((1, 20, 1, 20), Worth.MISSES_FAILURES, "misses 20 of 21 failures that people saw"),
        ((0, 0, 0, 0), Worth.UNKNOWN, "too few labels to tell"),
        ((3, 0, 0, 3), Worth.UNKNOWN, "too few labels to tell"),
        ((2, 1, 2, 1), Worth.UNKNOWN, "too few labels to tell"),
        # Nobody saw a good run, so that a fail distinguishes nothing.
        ((50, 0, 0, 0), Worth.UNKNOWN, "too few labels to tell"),
        # Of nineteen fails in twenty, chance gets as many right.
        ((19, 76, 1, 4), Worth.MISSES_FAILURES, "misses 76 of 95 failures that people saw"),
    ],
)
def test_the_judgement(counts: tuple[int, int, int, int], worth: Worth, told: str) -> None:
    """By the intervals, as the enumeration has it."""
    found = counted(*counts)
    assert (worth, told) == (found.worth, found.told)


def test_the_shares() -> None:
    """Precision is of what failed, recall of what people saw fail; where there is none, there is no share."""
    found = counted(6, 2, 3, 9)
    assert found.precision is not None
    assert found.recall is not None
    assert (6 / 9, *wilson_interval(6, 9)) == found.precision
    assert (6 / 8, *wilson_interval(6, 8)) == found.recall
    assert 20 == found.scored
    assert (None, None) == (counted(0, 0, 0, 5).precision, counted(0, 0, 3, 5).recall)


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(RULINGS))))
def test_every_labelled_run_is_counted_once(runs: list[tuple[PersonsVerdict, Ruling]]) -> None:
    """Skipped runs and errors are counted, and are in no share; each disagreement is named, up to ten of a kind."""
    labels = {(str(number), ""): label for number, (label, _) in enumerate(runs)}
    (found,) = agreements(["rules"], labels, {str(n): {"rules": ruling} for n, (_, ruling) in enumerate(runs)})

    assert len(runs) == found.counts.total() == found.scored + found.of("skipped") + found.of("error")
    assert [str(n) for n, run in enumerate(runs) if run == ("fail", "pass")][:10] == found.missed
    assert [str(n) for n, run in enumerate(runs) if run == ("pass", "fail")][:10] == found.good
    for share in (found.precision, found.recall):
        assert share is None or 0 <= share.low <= share.value <= share.high <= 1


def test_an_evaluators_own_label_comes_first() -> None:
    """The verdict of the run is compared with labels of the run alone, and a run without a label with nothing."""
    labels: dict[tuple[str, str], PersonsVerdict] = {("a", ""): "pass", ("a", "rules"): "fail", ("b", "rules"): "pass"}
    rulings: dict[str, dict[str, Ruling]] = {run: {"rules": "fail", "": "fail"} for run in "abc"}
    rules, verdict = agreements(["rules", ""], labels, rulings)

    assert {("fail", "fail"): 1, ("pass", "fail"): 1} == dict(rules.counts)
    assert (["b"], ["a"]) == (rules.good, verdict.good)
    assert {("pass", "fail"): 1} == dict(verdict.counts)


def test_an_evaluator_that_was_not_asked_about_a_run() -> None:
    """It has no count of it."""
    (rules,) = agreements(["rules"], {("a", ""): "fail"}, {"a": {"": "fail"}})
    assert not rules.counts


def test_a_trace_of_several_runs_fails_by_one() -> None:
    """The order of its runs does not matter."""
    assert ("fail", "fail", "pass") == (joint("pass", "fail"), joint("fail", "skipped"), joint("skipped", "pass"))
    assert "skipped" == joint(None, "skipped")
