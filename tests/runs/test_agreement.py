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
        ((0, 0, 0, 0), Worth.UNKNOWN, "too few labels: none of a run that it scored"),
        ((0, 1, 0, 5), Worth.UNKNOWN, "too few labels: none of a run that it failed"),
        ((3, 0, 0, 4), Worth.UNKNOWN, "too few labels: about 1 more fail needed"),
        # With each failure the bar is higher.
        ((3, 0, 0, 3), Worth.UNKNOWN, "too few labels: more good runs needed"),
        ((2, 1, 2, 1), Worth.UNKNOWN, "too few labels: about 89 more fails needed"),
        # Nobody saw a good run, so that a fail distinguishes nothing.
        ((50, 0, 0, 0), Worth.UNKNOWN, "too few labels: more good runs needed"),
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


def test_as_many_fails_as_are_said_to_be_needed_are_enough() -> None:
    """With one less, the judgement is open."""
    for right, good, both_pass in ((1, 0, 9), (2, 2, 9), (3, 1, 20), (0, 1, 5), (4, 1, 9)):
        told = counted(right, 0, good, both_pass).told
        assert told.startswith("too few labels: about ")
        needed = int(told.removeprefix("too few labels: about ").split()[0])
        share = right / (right + good)
        for more, is_known in ((needed - 1, False), (needed, True)):
            added = round(share * more)
            later = counted(right + added, 0, good + more - added, both_pass)
            assert is_known is (later.worth is not Worth.UNKNOWN), (right, good, more)


def test_an_evaluator_that_fails_the_same_runs_as_another() -> None:
    """The second one says so; the verdict does not, and is never worth keeping."""
    labels: dict[tuple[str, str], PersonsVerdict] = {(str(n), ""): "fail" if n < 9 else "pass" for n in range(18)}
    fails: dict[str, Ruling] = {"rules": "fail", "again": "fail", "none": "pass", "never": "pass", "": "fail"}
    passes: dict[str, Ruling] = dict.fromkeys(fails, "pass")
    found = agreements(list(fails), labels, {str(n): fails if n < 9 else passes for n in range(18)})

    missed = "misses 9 of 9 failures that people saw"
    again = "worth keeping; fails the same runs as rules"
    assert ["worth keeping", again, missed, missed, "-"] == [each.told for each in found]


def test_a_trace_of_several_runs_fails_by_one() -> None:
    """The order of its runs does not matter."""
    assert ("fail", "fail", "pass") == (joint("pass", "fail"), joint("fail", "skipped"), joint("skipped", "pass"))
    assert "skipped" == joint(None, "skipped")
