from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.reports.since import Bar, Growth, TimedRun, bars, since

NEW = "order: check_policy was not called"
OTHER = "order: search was not expected"
REASONS = {NEW: "order", OTHER: "order", "budget: exceeds duration_s": "budget"}
SECOND_NS = 10**9
BEGIN_NS = 1_790_000_000 * SECOND_NS

seeds = st.integers(0, 2**32)


def spaced(failing: Iterable[int], runs: int, text: str = NEW, agents: Sequence[str] = ("shop",)) -> list[TimedRun]:
    """Return runs one second apart; those of these numbers fail."""
    numbers = set(failing)
    return [
        TimedRun(number * SECOND_NS, agents[number % len(agents)], {text} if number in numbers else set(), {"order"})
        for number in range(runs)
    ]


def drawn(seed: int, size: int = 300) -> list[TimedRun]:
    """Return runs with changes, of which some start at the same time; an evaluator skips some of them."""
    chance = random.Random(seed)
    step = chance.choice((1, SECOND_NS, 600 * SECOND_NS))
    changes = {text: (chance.randrange(size), chance.random() * 0.2, chance.random()) for text in REASONS}
    runs = []
    for number in range(size):
        agent = chance.choice((None, "", "shop", "refunds"))
        evaluators = {name for name in ("order", "budget") if chance.random() < 0.9}
        rates = {text: after if number >= at else before for text, (at, before, after) in changes.items()}
        reasons = {text for text, rate in rates.items() if chance.random() < rate * (0.5 if agent else 1)}
        runs.append(TimedRun(BEGIN_NS + number * 30 * SECOND_NS // step * step, agent, reasons, evaluators))
    return runs


def by_definition(runs: Sequence[TimedRun], text: str) -> tuple[float, float | None, int, int]:
    """Return the best gain of a reason, its ratio and its interval, for runs in their order with different times."""
    scored = [run for run in runs if REASONS[text] in run.evaluators]
    sizes = Counter(run.agent for run in scored)
    failed = Counter(run.agent for run in scored if text in run.reasons)
    expected = [failed[run.agent] / sizes[run.agent] for run in scored]
    gains = {}
    for k in range(1, len(scored)):
        before, after = (sum(text in run.reasons for run in part) for part in (scored[:k], scored[k:]))
        expected_before, expected_after = sum(expected[:k]), sum(expected[k:])
        if after > expected_after:
            gain = (before * log(before / expected_before) if before else 0) + after * log(after / expected_after)
            gains[k] = (gain, after * expected_before / (before * expected_after) if before else None)
    best = max(gains, key=lambda k: gains[k][0])
    near = [k for k, (gain, _) in gains.items() if gain >= gains[best][0] - 3]
    return *gains[best], scored[near[0] - 1].start_ns, scored[near[-1]].start_ns


def test_a_new_reason_has_no_ratio() -> None:
    """The change is after the last run that cannot be explained otherwise, and before the first failure."""
    runs = spaced(range(240, 480, 2), 480)

    assert since(runs, {NEW: "order"}) == {
        NEW: Growth(
            None, pytest.approx(234 * SECOND_NS, abs=3 * SECOND_NS), 240 * SECOND_NS, pytest.approx(120 * log(2))
        )
    }


def test_a_reason_that_becomes_more_frequent_has_a_ratio() -> None:
    """Five times as frequent after run 600: ten of 600 runs, then fifty."""
    found = since(spaced([*range(0, 600, 60), *range(600, 1200, 12)], 1200), {NEW: "order"})[NEW]

    assert found is not None
    assert 5 == pytest.approx(found.ratio, rel=0.1)
    assert found.begin_ns < 600 * SECOND_NS <= found.end_ns


def test_a_reason_that_becomes_rarer_did_not_grow() -> None:
    """The same runs backwards."""
    assert {NEW: None} == since(spaced([*range(0, 600, 12), *range(600, 1200, 60)], 1200), {NEW: "order"})


def test_a_reason_with_a_steady_rate_did_not_grow() -> None:
    """However often it is."""
    assert {NEW: None} == since(spaced(range(0, 1000, 2), 1000), {NEW: "order"})


def test_more_runs_of_an_agent_that_fails_more_often_are_no_growth() -> None:
    """Each agent is compared with itself; were they one agent, the reason would have grown."""
    chance = random.Random(1)
    agents = [*chance.choices(("good", "bad"), (8, 1), k=1000), *chance.choices(("good", "bad"), (1, 1), k=1000)]
    failing = [number for number, agent in enumerate(agents) if agent == "bad" and chance.random() < 0.4]

    assert {NEW: None} == since(spaced(failing, 2000, agents=agents), {NEW: "order"})
    assert since(spaced(failing, 2000), {NEW: "order"})[NEW] is not None


def test_failures_in_clusters_are_less_evidence() -> None:
    """Each second of 24 parts has all its failures: a variance 24 * 5 / 22 times that of Poisson."""
    clusters = [number for number in range(240, 480) if number // 10 % 2 == 0]
    found = since(spaced(clusters, 480), {NEW: "order"})[NEW]

    assert found is not None
    assert found.evidence == pytest.approx(120 * log(2) / (24 * 5 / 22))


def test_the_evidence_must_be_larger_the_more_reasons_are_tested() -> None:
    """Ten failures in the last 90 of 200 runs: enough for one reason, or beside reasons of nine runs; not for fifty."""
    failing = range(110, 200, 9)
    others = {f"order: {number}": "order" for number in range(49)}

    def beside(count: int) -> Growth | None:
        spread = {number * 200 // count for number in range(count)}
        runs = [
            run._replace(reasons=run.reasons | (others.keys() if number in spread else set()))
            for number, run in enumerate(spaced(failing, 200))
        ]
        return since(runs, {NEW: "order"} | others)[NEW]

    alone = since(spaced(failing, 200), {NEW: "order"})[NEW]
    assert alone is not None
    assert alone.evidence == pytest.approx(10 * log(200 / 90))
    assert alone == beside(9)
    assert beside(10) is None


def test_a_reason_of_nine_runs_is_not_tested() -> None:
    """However new it is; one of ten is."""
    assert since(spaced(range(990, 1000), 1000), {NEW: "order"})[NEW] is not None
    assert since(spaced(range(991, 1000), 1000), {NEW: "order"})[NEW] is None


def test_only_runs_that_its_evaluator_scored_count() -> None:
    """Runs that the evaluator skipped change nothing."""
    runs = spaced(range(240, 480, 2), 480)
    skipped = [TimedRun(number * SECOND_NS // 3, "shop", set(), {"budget"}) for number in range(3000)]

    assert since(runs, {NEW: "order"}) == since(runs + skipped, {NEW: "order"})
    assert bars(runs, {NEW: "order"}) == bars(runs + skipped, {NEW: "order"})


def test_no_change_is_between_runs_of_the_same_time() -> None:
    """A hundred runs of one time, and a hundred of a later one, of which ten failed."""
    runs = [
        run._replace(start_ns=number // 100 * 100 * SECOND_NS)
        for number, run in enumerate(spaced(range(150, 160), 200))
    ]

    assert since(runs, {NEW: "order"}) == {NEW: Growth(None, 0, 100 * SECOND_NS, pytest.approx(10 * log(2)))}


def test_the_evidence_must_be_above_a_threshold() -> None:
    """For one reason above ln 100 + 1.5, which is 6.1: ten failures in the last 108 of 200 runs are, in 112 are not."""
    assert 6.1 < 10 * log(200 / 108) < 6.2
    assert since(spaced(range(92, 200, 11), 200), {NEW: "order"})[NEW] is not None
    assert 5.7 < 10 * log(200 / 112) < 5.8
    assert since(spaced(range(88, 198, 11), 200), {NEW: "order"})[NEW] is None


@given(seeds)
def test_it_is_what_its_definition_says(seed: int) -> None:
    """Where a reason grew, gain, ratio and interval are those of all possible changes, tried one by one."""
    runs = [run._replace(start_ns=number * SECOND_NS) for number, run in enumerate(drawn(seed, 150))]

    for text, growth in since(runs, REASONS).items():
        if growth is not None:
            gain, ratio, begin_ns, end_ns = by_definition(runs, text)
            assert log(100) + 1.5 < growth.evidence <= gain + 1e-6
            assert growth == Growth(ratio and pytest.approx(ratio), begin_ns, end_ns, growth.evidence)


@given(seeds, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(seed: int, chance: random.Random) -> None:
    """Not even of runs with the same time."""
    runs = drawn(seed)
    mixed = chance.sample(runs, len(runs))

    assert since(runs, REASONS) == since(mixed, REASONS)
    assert bars(runs, REASONS) == bars(mixed, REASONS)


@given(seeds, seeds)
def test_runs_without_a_time_are_left_out(seed: int, other: int) -> None:
    """They are neither in the shares nor in the bars."""
    runs = drawn(seed)
    timeless = [run._replace(start_ns=None) for run in drawn(other)]

    assert since(runs, REASONS) == since(timeless + runs, REASONS)
    assert bars(runs, REASONS) == bars(timeless + runs, REASONS)
    assert dict.fromkeys(REASONS) == since(timeless, REASONS)
    assert dict.fromkeys(REASONS, ()) == bars(timeless, REASONS)


@given(seeds, st.integers(1, 1000), st.integers(0, BEGIN_NS))
def test_other_times_change_the_interval_alone(seed: int, factor: int, shift: int) -> None:
    """Times that are multiplied and shifted give the same growth at their own times."""
    runs = drawn(seed)
    moved = [run._replace(start_ns=run.start_ns * factor + shift) for run in runs if run.start_ns is not None]
    expected = {
        text: growth
        and growth._replace(begin_ns=growth.begin_ns * factor + shift, end_ns=growth.end_ns * factor + shift)
        for text, growth in since(runs, REASONS).items()
    }

    assert expected == since(moved, REASONS)


@given(seeds)
def test_in_few_runs_nothing_grew(seed: int) -> None:
    """In fewer than 100 with a time."""
    few = drawn(seed)[-99:]

    assert dict.fromkeys(REASONS) == since([*few, few[0]._replace(start_ns=None)], REASONS)


@given(seeds)
def test_within_a_minute_nothing_grew(seed: int) -> None:
    """If the first and the last run start at most a minute apart."""
    runs = drawn(seed)
    close = [run._replace(start_ns=BEGIN_NS + number * 60 * SECOND_NS // 299) for number, run in enumerate(runs)]

    assert dict.fromkeys(REASONS) == since(close, REASONS)


def test_a_hundred_runs_in_more_than_a_minute_are_enough() -> None:
    """Just as many, and just as long."""
    runs = spaced(range(60, 100, 2), 100)
    exactly = [run._replace(start_ns=number * 60 * SECOND_NS // 99) for number, run in enumerate(runs)]

    assert since(runs, {NEW: "order"})[NEW] is not None
    assert since(exactly, {NEW: "order"})[NEW] is None
    assert since([*exactly[:-1], exactly[-1]._replace(start_ns=60 * SECOND_NS + 1)], {NEW: "order"})[NEW] is not None


def test_bars_are_shares_of_equally_many_runs() -> None:
    """48 runs, of which each second one of the last half fails: 24 bars of two runs."""
    found = bars(spaced(range(24, 48, 2), 48), {NEW: "order", OTHER: "budget"})

    assert found[NEW][0] == Bar(0, SECOND_NS, runs=2, failed=0)
    assert found[NEW][-1] == Bar(46 * SECOND_NS, 47 * SECOND_NS, runs=2, failed=1)
    assert [0.0] * 12 + [0.5] * 12 == [bar.share for bar in found[NEW]]
    assert found[OTHER] == ()


@given(seeds, st.integers(0, 300))
def test_bars_have_each_run_once(seed: int, size: int) -> None:
    """They follow each other, and none has two runs more than another."""
    runs = drawn(seed)[:size]

    for text, found in bars(runs, REASONS).items():
        scored = [run for run in runs if REASONS[text] in run.evaluators]
        assert len(scored) == sum(bar.runs for bar in found)
        assert sum(text in run.reasons for run in scored) == sum(bar.failed for bar in found)
        assert len(found) == min(24, len(scored))
        assert len({bar.runs for bar in found}) <= 2
        starts = [each for bar in found for each in (bar.begin_ns, bar.end_ns)]
        assert starts == sorted(starts)


def test_ten_thousand_runs_with_two_hundred_reasons_take_less_than_a_second() -> None:
    """Of CPU time; half of the runs fail, for five reasons each."""
    chance = random.Random(1)
    reasons = {f"{number % 10}: {number}": str(number % 10) for number in range(200)}
    names, evaluators = list(reasons), set(reasons.values())
    runs = [
        TimedRun(
            chance.randrange(3600 * SECOND_NS),
            chance.choice("abc"),
            set(chance.choices(names, k=5 * (k % 2))),
            evaluators,
        )
        for k in range(10_000)
    ]

    before = time.process_time()
    found = since(runs, reasons)
    used_s = time.process_time() - before

    assert 200 == len(found)
    assert used_s < 1
