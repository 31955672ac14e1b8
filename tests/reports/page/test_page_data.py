from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reports.page.shown_runs import EXPECTED, batch_of, report_of
from spanscore import config
from spanscore.model import CloseReason, Completeness, Evaluation, Failed, Report, Score, Skipped, WithheldCall
from spanscore.reports.page.page_data import IN_A_FILE, PageBudget, RunBatch

ROOMY = PageBudget(failed=10**6, others=10**6, bare=10**6, told=10**6, reasons=10**6)


def read(reports: Sequence[Report], room: PageBudget = ROOMY) -> list[dict[str, Any]]:
    """Return the runs of a page with their texts in place of the numbers, by the names of what they hold."""
    batch = json.loads(batch_of(reports, room=room))
    texts = batch["strings"]
    runs = []
    for trace, span, verdict, agent, service, start, took, calls, errors, outcomes, *rest, story, name in batch["runs"]:
        runs.append(
            {
                "ids": (trace, span),
                "name": texts[name],
                "verdict": verdict,
                "of": (texts[service], texts[agent]),
                "times": (start, took),
                "counts": (calls, errors),
                "outcomes": [
                    (texts[evaluator], status, value, texts[told]) for evaluator, _, status, value, told in outcomes
                ],
                "story": story
                and {
                    "content": story[0],
                    "calls": [(texts[call[0]], *call[1:3], *(texts[each] for each in call[3:6])) for call in story[1]],
                    "marks": [(call, texts[evaluator], texts[words]) for call, evaluator, words in story[2]],
                    "alignments": {
                        texts[evaluator]: [(texts[row[0]], row[1], row[2], texts[row[3]], row[4]) for row in rows]
                        for evaluator, rows in story[3]
                    },
                    "withheld": [(texts[call], state) for call, state in story[4]],
                },
                "rest": (texts[rest[0]], texts[rest[1]], rest[2]),
            }
        )
    return runs


def scored(report: Report, **outcomes: Any) -> Report:
    """Return a report with other outcomes."""
    evaluations = tuple(Evaluation(name=name, type="t", outcome=each) for name, each in outcomes.items())
    return replace(report, evaluations=evaluations)


def test_a_run_that_passed() -> None:
    """It has its ids, its times in milliseconds, its calls with begin and duration in microseconds, and its scores."""
    (run,) = read([report_of(7, *EXPECTED)])

    assert run["ids"] == ("00000000000000000000000000000007", "0000000000000001")
    assert (run["name"], run["verdict"], run["of"]) == ("run 1", 0, ("shop", "refund-agent"))
    assert (run["times"], run["counts"]) == ((1_790_000_007_000, 30.0), (3, 0))
    assert [(name, status, value) for name, status, value, _ in run["outcomes"]] == [
        ("health", 0, 1.0),
        ("golden", 0, 1.0),
    ]
    assert run["story"]["calls"] == [
        ("lookup_order", 0, 10_000, "{}", "ok", ""),
        ("check_policy", 10_000, 10_000, "{}", "ok", ""),
        ("issue_refund", 20_000, 10_000, "{}", "ok", ""),
    ]
    assert (run["story"]["marks"], run["rest"]) == ([], ("", "", 0))


def test_a_run_that_failed_says_where() -> None:
    """What was expected stands beside what was called, with what deviates; a failed call tells its error."""
    failing = {"name": "issue_refund", "arguments": {"amount": 40}, "error": "TimeoutError: slow"}
    (run,) = read([report_of(1, "lookup_order", failing)])

    assert (run["verdict"], run["counts"]) == (1, (2, 1))
    assert run["story"]["calls"][1] == ("issue_refund", 10_000, 10_000, '{"amount": 40}', "", "TimeoutError: slow")
    assert run["story"]["alignments"] == {
        "golden": [
            ("lookup_order", 0, 0, "", 0),
            ("check_policy", 1, 2, "another tool", 0),
            ("issue_refund", None, 3, "missing", 0),
        ]
    }
    assert (1, "golden", "expected check_policy") in run["story"]["marks"]


def test_calls_that_were_not_made_are_told() -> None:
    """Each with what it waits for; they are no calls of the run."""
    plain = report_of(1, "lookup_order")
    withheld = (WithheldCall("issue_refund", "waits"), WithheldCall("", "refused"))
    (run,) = read([replace(plain, trajectory=replace(plain.trajectory, withheld=withheld))])

    assert [("issue_refund", "waits"), ("", "refused")] == run["story"]["withheld"]
    assert (1, 0) == run["counts"]


def test_without_content_nothing_of_it_is_in_the_page() -> None:
    """Arguments, results, texts of errors and what deviates in arguments stay out; names and types do not."""
    secret = {"name": "issue_refund", "arguments": {"iban": "SECRET-1"}, "result": "SECRET-2"}
    broken = {"name": "check_policy", "arguments": {"x": "SECRET-3"}, "error": "SECRET-4"}
    report = report_of(1, secret, broken, content=False)
    row = {"kind": "arguments", "call": 0, "path": "iban", "expected": "SECRET-5", "actual": "SECRET-6"}
    score = Score(
        value=0.0,
        passed=False,
        explanation="SECRET-7",
        details={"deviations": [{**row, "tool": "issue_refund", "reason": "issue_refund.iban: other value"}, row]},
        without_content="wrong arguments",
    )
    told = scored(report, a=score, b=Failed("ValueError", "SECRET-8"))

    text = batch_of([told])
    (run,) = read([told])
    assert "SECRET" not in text
    assert (run["story"]["content"], run["story"]["calls"][1][-1]) == (1, "error")
    assert [(0, "a", "iban: other value"), (0, "a", "other arguments")] == run["story"]["marks"][:2]
    assert "SECRET-1" in batch_of([replace(told, tool_content=True)])


def test_every_outcome_has_its_status() -> None:
    """Passed, failed, skipped, went wrong, and measured only."""
    outcomes = (
        Score(value=1.0, passed=True),
        Score(value=0.5, passed=False, explanation="half"),
        Skipped("no calls"),
        Failed("ValueError", "bad"),
    )
    evaluations = [Evaluation(name=str(index), type="t", outcome=each) for index, each in enumerate(outcomes)]
    informational = [replace(each, name=f"i{each.name}", informational=True) for each in evaluations]
    (run,) = read([replace(report_of(1), evaluations=(*evaluations, *informational))])

    assert run["outcomes"] == [
        ("0", 0, 1.0, ""),
        ("1", 1, 0.5, "half"),
        ("2", 2, None, "no calls"),
        ("3", 3, None, "ValueError: bad"),
        ("i0", 4, 1.0, ""),
        ("i1", 4, 0.5, "half"),
        ("i2", 2, None, "no calls"),
        ("i3", 5, None, "ValueError: bad"),
    ]


@pytest.mark.parametrize(
    "details",
    [
        {"alignment": "no list"},
        {"alignment": [{"status": "ok", "call": 99, "expected": None}]},
        {"alignment": [{"status": "made up", "call": 0}]},
        {"alignment": [{"status": "folded", "calls": "many"}]},
        {"deviations": [{"kind": "rule", "call": -1}]},
        {"deviations": [{"call": 0}]},
        {"deviations": [{"kind": "schema", "call": 0, "path": "a", "more": [7]}]},
        {"deviations": {"kind": 1}},
    ],
)
def test_details_of_other_forms_are_left_alone(details: dict[str, Any]) -> None:
    """An evaluator of a plug-in may say anything there; the page shows the run without it."""
    (run,) = read(
        [scored(report_of(1, "lookup_order"), a=Score(value=0.0, passed=False, explanation="no", details=details))]
    )

    assert (run["story"]["marks"], run["story"]["alignments"]) == ([], {})


def test_what_deviates_is_said_by_kind() -> None:
    """Each kind of deviation of a call in words; an error is told by the call itself."""
    rows = [
        {"kind": "unexpected", "call": 0},
        {"kind": "wrong_tool", "call": 0, "expected": "search"},
        {"kind": "order", "call": 0},
        {"kind": "rule", "call": 0, "expected": "forbidden: x"},
        {"kind": "arguments", "call": 0, "path": "n", "expected": 1, "actual": 2, "more": [{"path": "m", "actual": 3}]},
        {"kind": "schema", "call": 0, "path": "n", "expected": "must be text", "actual": 4},
        {"kind": "error", "call": 0, "path": "", "actual": "E"},
        {"kind": "missing", "call": None},
    ]
    (run,) = read(
        [scored(report_of(1, "x"), a=Score(value=0.0, passed=False, explanation="no", details={"deviations": rows}))]
    )

    assert [words for _, _, words in run["story"]["marks"]] == [
        "not expected",
        "expected search",
        "out of order",
        "breaks forbidden: x",
        "n: expected 1, got 2; m: not expected, got 3",
        "n: must be text, got 4",
    ]


def test_what_deviates_from_expected_steps_is_marked() -> None:
    """What is missing, and what is called too often or too early, beside what was expected and in the fold."""
    evaluator = config.build_evaluator("expected_trajectory", {"steps": list(EXPECTED), "other_calls": "forbid"})
    report = report_of(1, "lookup_order", *["search"] * 30, "issue_refund", "check_policy")
    (run,) = read([scored(report, steps=evaluator.evaluate(report.trajectory))])

    assert [(index, "not expected") for index in range(1, 31)] == [
        (call, words) for call, _, words in run["story"]["marks"] if 0 < call < 31
    ]
    marked = [(expected, words) for expected, *_, words, _ in run["story"]["alignments"]["steps"] if words]
    assert ("", "not expected") in marked
    assert {"missing", "out of order"} & {words for expected, words in marked if expected == "check_policy"}


def test_marks_are_on_the_calls_of_the_run() -> None:
    """Also where calls are left out before evaluating, and on both sides of an alignment."""
    evaluator = config.build_evaluator("trajectory_match", {"reference": [{"name": "pay", "arguments": {}}]})
    report = report_of(1, "think", "pay", "refund")
    (run,) = read([scored(report, match=evaluator.evaluate(report.trajectory.keeping([1, 2])))])

    assert [(2, "match", "not expected")] == run["story"]["marks"]
    assert [("pay", 1, ""), ("", 2, "not expected")] == [
        (expected, call, words) for expected, call, _, words, _ in run["story"]["alignments"]["match"]
    ]


def test_names_that_look_alike_are_escaped() -> None:
    """What was expected and what was called, where nobody could see the difference."""
    evaluator = config.build_evaluator("tool_call_order", {"tool_calls_order": ["caf\u00e9"]})
    report = report_of(1, "cafe\u0301", "tea")
    (run,) = read([scored(report, order=evaluator.evaluate(report.trajectory))])

    assert [r"cafe\u0301", "tea"] == [name for name, *_ in run["story"]["calls"]]
    assert r"caf\u00e9" in [expected for expected, *_ in run["story"]["alignments"]["order"]]


def test_a_step_out_of_its_group_is_marked_as_that() -> None:
    """It was not made in parallel: that is no matter of order."""
    evaluator = config.build_evaluator("expected_trajectory", {"steps": [{"parallel": ["web", "docs"]}]})
    report = report_of(1, "web", "docs")
    (run,) = read([scored(report, steps=evaluator.evaluate(report.trajectory))])

    assert [(1, "steps", "not in parallel with web")] == run["story"]["marks"]
    assert "not in parallel with web" in [words for *_, words, _ in run["story"]["alignments"]["steps"]]


def test_what_a_passing_evaluator_does_not_mind_is_not_marked() -> None:
    """An alignment is shown beside any run, and marks only where the evaluator was not passed."""
    details = {
        "alignment": [{"status": "extra", "expected": None, "actual": "x", "call": 0}],
        "deviations": [{"kind": "unexpected", "call": 0}],
    }
    (run,) = read([scored(report_of(1, "x"), a=Score(value=0.9, passed=True, explanation="", details=details))])

    assert (run["story"]["marks"], run["story"]["alignments"]) == ([], {"a": [("", 0, 4, "", 0)]})


def test_texts_stand_there_once() -> None:
    """Ten runs with the same calls have hardly more texts than one."""
    one, ten = (json.loads(batch_of([report_of(n, *EXPECTED) for n in range(count)])) for count in (1, 10))

    assert len(one["strings"]) + 9 == len(ten["strings"])


def test_long_texts_are_cut_and_say_so() -> None:
    """Nothing that a tool said makes a page grow without a limit."""
    (run,) = read([report_of(1, {"name": "n" * 1000, "arguments": {}, "result": "r" * 10_000})])

    name, _, _, _, result, _ = run["story"]["calls"][0]
    assert (f"{'n' * 200}… (800 more characters)", f"{'r' * 4000}… (6,000 more characters)") == (name, result)


def test_where_there_is_no_room_content_goes_first_and_then_the_calls() -> None:
    """Every run keeps its line; those that failed have room of their own, and what is left out is counted."""
    reports = [report_of(n, {"name": "tool", "arguments": {"n": n}, "result": f"{n}" * 500}) for n in range(1, 7)]
    batch = RunBatch(PageBudget(failed=1_900, others=0, bare=250, told=0, reasons=0))
    for report in reports:
        batch.add(report)
    runs = json.loads(batch.embedded(["" for _ in reports]))["runs"]
    shown = [None if run[-2] is None else run[-2][0] for run in runs]

    assert [0, 0] == shown[:2]
    assert (2, None) == (shown[2], shown[-1])
    assert (shown.count(2), shown.count(None)) == (batch.without_content, batch.without_calls)


@pytest.mark.parametrize(
    ("close_reason", "seen", "told"),
    [
        (CloseReason.ROOT_ENDED, Completeness(), ""),
        (CloseReason.SPAN_LIMIT, Completeness(), "span_limit"),
        (CloseReason.ROOT_ENDED, Completeness(parents_missing=3), "3 spans whose parent is missing"),
        (CloseReason.TIMED_OUT, Completeness(root_seen=False, parents_missing=3), "timed_out: no root span"),
        (CloseReason.SHUTDOWN, Completeness(root_seen=False), "shutdown: no root span"),
        (CloseReason.TIMED_OUT, Completeness(), "timed_out"),
        (CloseReason.TIMED_OUT, Completeness(spans_refused=1), "1 span refused"),
        (CloseReason.ROOT_ENDED, Completeness(spans_refused=3, spans_dropped=2), "1 span refused, 2 spans dropped"),
        (CloseReason.ROOT_ENDED, Completeness(spans_missing=2), "2 spans not received"),
    ],
)
def test_what_was_not_seen_whole_says_so(close_reason: CloseReason, seen: Completeness, told: str) -> None:
    """The reason stands beside the run."""
    report = report_of(1)
    trajectory = replace(report.trajectory, completeness=seen)
    (run,) = read([replace(report, trajectory=trajectory, close_reason=close_reason, revision=2)])

    assert ("", told, 2) == run["rest"]


def test_explanations_are_cut_and_then_left_out() -> None:
    """Also what evaluators say of many runs has its bounds; the verdicts stay."""
    reports = [scored(report_of(n), a=Score(0.0, passed=False, explanation=f"{n}" * 300)) for n in range(1, 8)]
    told = [run["outcomes"][0][3] for run in read(reports, ROOMY._replace(told=500))]

    assert ["1" * 300, "2" * 300] == told[:2]
    assert [f"{n * 100}… (200 more characters)" for n in "34"] == told[2:4]
    assert ["left out, to keep the page small"] * 3 == told[4:]


@pytest.mark.parametrize("runs", [1_000, pytest.param(10_000, marks=pytest.mark.full_size)])
def test_ten_thousand_of_the_worst_runs_fit(runs: int) -> None:
    """Whatever tools and evaluators say, and it is all different, ten thousand runs are less than 10 MB.

    A tenth of them with a tenth of the room is a tenth of that.
    """
    room = PageBudget(*(size * runs // 10_000 for size in IN_A_FILE))

    def worst(number: int) -> Report:
        calls = [
            {"name": f"tool-{place}", "arguments": {"n": f"{number}-{place}" * 20}, "result": f"{place}-{number}" * 40}
            for place in range(10)
        ]
        long = {name: Score(0.0, passed=False, explanation=f"{name}{number} " * 150) for name in "abc"}
        return scored(report_of(number, *calls), **long)

    assert len(batch_of(map(worst, range(runs)), room=room).encode()) < 10e6 * runs / 10_000
    assert 6 * 2**20 == sum(IN_A_FILE)
