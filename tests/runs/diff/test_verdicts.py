from __future__ import annotations

from collections.abc import Sequence

from spanscore.model import CloseReason, Evaluation, Report, Score, Skipped, Trajectory
from spanscore.runs.diff import Compared, Measure, Settings, Verdict, compared, overall, pairing

Scores = dict[str, float | None]


def reports(*runs: tuple[str | None, Scores], first: int = 0, informational: Sequence[str] = ()) -> list[Report]:
    """Runs, each of a case, with what evaluators gave; None is skipped."""
    return [
        Report(
            trajectory=Trajectory(
                calls=(),
                trace_id=(first + number).to_bytes(16, "big"),
                attributes={} if case is None else {"test.case.id": case},
            ),
            evaluations=tuple(
                Evaluation(
                    name=name,
                    type="simulated",
                    outcome=Skipped("nothing") if value is None else Score(value, value >= 0.5, ""),
                    informational=name in informational,
                )
                for name, value in scores.items()
            ),
            close_reason=CloseReason.ROOT_ENDED,
        )
        for number, (case, scores) in enumerate(runs)
    ]


def judged(base: list[Report], new: list[Report], *names: str, margin: float = 0.05) -> list[Compared]:
    """Each measure of the evaluators with its verdict."""
    return compared(base, new, names, pairing(base, new), Settings(margin=margin))


def side(values: Sequence[float], first: int = 0) -> list[Report]:
    """Runs of no case, scored by one evaluator."""
    return reports(*((None, {"e": value}) for value in values), first=first)


def test_verdicts_are_what_the_runs_can_say() -> None:
    """Worse, better, the same within the margin, and too few to say, with how many would do."""
    many = [1.0] * 285 + [0.0] * 15

    assert [Verdict.WORSE] == [each.verdict for each in judged(side([1] * 19 + [0]), side([1] * 13 + [0] * 7, 99), "e")]
    assert [Verdict.BETTER] == [each.verdict for each in judged(side([0] * 9), side([1] * 9, 99), "e")]
    assert [Verdict.SAME] == [each.verdict for each in judged(side(many), side(many, 999), "e")]
    (unsaid,) = judged(side([1] * 5), side([1] * 4 + [0], 99), "e")
    assert Verdict.INCONCLUSIVE is unsaid.verdict
    assert unsaid.decided_by is not None
    assert 5 < unsaid.decided_by


def test_a_fall_within_the_margin_is_none() -> None:
    """However sure it is."""
    base, new = side([1.0] * 2000), side([1.0] * 1960 + [0.0] * 40, 9999)

    assert [Verdict.SAME] == [each.verdict for each in judged(base, new, "e")]
    assert [Verdict.WORSE] == [each.verdict for each in judged(base, new, "e", margin=0.01)]


def test_what_is_compared_with_itself_is_the_same() -> None:
    """The same runs, or the same cases with the same scores: nothing is left to chance there."""
    few = side([1, 0, 1])
    cases = reports(("a", {"e": 1}), ("b", {"e": 0}))
    again = reports(("a", {"e": 1}), ("b", {"e": 0}), first=9)

    assert [(Verdict.SAME, "no run differs")] == [(each.verdict, each.reason) for each in judged(few, few, "e")]
    assert [Verdict.SAME] == [each.verdict for each in judged(cases, again, "e")]
    assert [Verdict.INCONCLUSIVE] == [each.verdict for each in judged(few, side([1, 0, 1], 9), "e")]


def test_scores_count_where_they_are_not_just_passed_or_not() -> None:
    """And alone where the evaluator is informational."""
    base = reports(*((None, {"e": 0.9 + number / 300, "i": 0.9}) for number in range(20)), informational=["i"])
    new = reports(*((None, {"e": 0.6 + number / 300, "i": 0.9}) for number in range(20)), first=99, informational=["i"])

    found = judged(base, new, "e", "i")

    assert [("e", Measure.PASS_RATE), ("e", Measure.SCORE), ("i", Measure.SCORE)] == [
        (each.evaluator, each.measure) for each in found
    ]
    assert Verdict.WORSE is found[1].verdict
    assert Verdict.WORSE is overall(found)


def test_what_was_not_scored_is_inconclusive() -> None:
    """With the reason; nothing at all is, too."""
    found = judged(reports((None, {"e": 1})), reports((None, {"e": None}), first=9), "e")

    assert [(Verdict.INCONCLUSIVE, "scored 1 runs of the base and 0 of the new version")] == [
        (each.verdict, each.reason) for each in found
    ]
    assert Verdict.INCONCLUSIVE is overall([])


def test_evaluators_that_say_the_same_of_every_run_cost_nothing() -> None:
    """They are none of those among which a difference is looked for."""
    idle = {f"idle{number}": 1.0 for number in range(20)}
    base = reports(*((None, {"e": value, **idle}) for value in [1] * 19 + [0]))
    new = reports(*((None, {"e": value, **idle}) for value in [1] * 13 + [0] * 7), first=99)

    assert Verdict.WORSE is judged(base, new, "e", *idle)[0].verdict


def test_cases_go_before_everything_where_both_have_them() -> None:
    """At least half of them; those of one side only are left out, and named."""
    base = reports(*((f"c{number}", {"e": 1}) for number in range(10)))
    new = reports(*((f"c{number}", {"e": 1}) for number in range(2, 11)), first=99)

    paired = pairing(base, new)

    assert ("test.case.id", 8, ["c0", "c1"], ["c10"]) == (
        paired.key,
        len(paired.common),
        paired.only_base,
        paired.only_new,
    )
    few = pairing(base, reports(("c0", {"e": 1}), *((f"d{number}", {"e": 1}) for number in range(9))))
    assert (None, ["c0"]) == (few.key, few.common)
    assert pairing(base, new, "no.such.key").key is None


def test_the_number_of_runs_that_would_do_is_one_for_both_sides() -> None:
    """Whichever has fewer: as many are said as do."""
    for few, many in ((10, 30), (30, 10), (30, 30), (3, 30)):
        (unsaid,) = judged(side([1] * few), side([1] * many, 999), "e")
        enough = unsaid.decided_by or 0

        (said,) = judged(side([1] * enough), side([1] * enough, 999), "e")
        (still_unsaid,) = judged(side([1] * (enough - 1)), side([1] * (enough - 1), 999), "e")
        assert (Verdict.INCONCLUSIVE, Verdict.SAME) == (unsaid.verdict, said.verdict)
        assert Verdict.INCONCLUSIVE is still_unsaid.verdict


def test_cases_that_few_runs_are_of_do_not_stand_for_the_others() -> None:
    """Else thirty failing runs without a case would be left out beside one that has one."""
    base = reports(("a", {"e": 1}), *((None, {"e": 1}) for _ in range(30)))
    new = reports(("a", {"e": 1}), *((None, {"e": 0}) for _ in range(30)), first=99)

    assert [Verdict.WORSE] == [each.verdict for each in judged(base, new, "e")]
    assert pairing(base, new).key is None
    half = reports(("a", {"e": 1}), (None, {"e": 1}))
    assert ("test.case.id", 1, 1) == (pairing(half, half).key, *pairing(half, half)[-2:])


def test_the_number_of_runs_that_would_tell_a_fall_does() -> None:
    """Every fifth run fails now: as many runs as are said show that it is no chance."""
    for count in (10, 15, 20, 25):
        base, new = side([1] * 5 * (count // 5)), side(([1] * 4 + [0]) * (count // 5), 999)
        (unsaid,) = judged(base, new, "e")
        if unsaid.verdict is Verdict.WORSE:
            continue
        enough = unsaid.decided_by or 0
        failing = enough // 5

        (said,) = judged(side([1] * enough), side([1] * (enough - failing) + [0] * failing, 9_999), "e")
        assert Verdict.WORSE is said.verdict
        assert 22 <= enough <= 32
