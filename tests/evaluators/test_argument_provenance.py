"""Where the values in arguments came from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import spanscore
from spanscore.evaluators.argument_provenance import ArgumentProvenance
from spanscore.model import NOT_RECORDED, Outcome, Score, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy
from spanscore.testing import check_evaluator

ASKED = "Refund order R-1 of November 3, 2026, to Anna Müller: 1,234.50 EUR, please."


def run(*calls: dict[str, Any], user: tuple[str, ...] = (ASKED,), system: tuple[str, ...] = ()) -> Trajectory:
    """A run with what the user said."""
    return replace(Trajectory.from_calls(calls), user_text=user, system_text=system)


def outcome(trajectory: Trajectory, **parameters: Any) -> Outcome:
    """What an evaluator that is built as a configuration builds it says of a run."""
    return spanscore.evaluator("argument_provenance", parameters).evaluate(trajectory)


def score(trajectory: Trajectory, **parameters: Any) -> Score:
    """The same where it is a score."""
    answer = outcome(trajectory, **parameters)
    assert isinstance(answer, Score), answer
    return answer


@pytest.mark.parametrize(
    ("value", "grade"),
    [
        ("R-1", "exact"),
        ("Anna Müller", "exact"),
        (3, "exact"),
        (1234.5, "derived"),
        ("1234.5", "derived"),
        ("2026-11-03", "derived"),
        ("03.11.2026", "derived"),
        ("2026-11-03T00:00:00Z", "derived"),
        ("anna müller", "derived"),
        ("R-1\n", "derived"),
        ("Novem", "derived"),
        ("Nov", "unseen"),
        ("R-2", "unseen"),
        (4, "unseen"),
        ("2026-11-04", "unseen"),
        ("1,234.51", "unseen"),
    ],
)
def test_a_value_has_the_grade_of_the_nearest_form_that_was_seen(value: Any, grade: str) -> None:
    """Exact in whole words; derived in other formats, case, untrimmed or from 4 characters of a text on."""
    found = score(run({"name": "f", "arguments": {"v": value}}), derived=0.5)
    assert found.details["totals"] == {"exact": 0, "derived": 0, "unseen": 0} | {grade: 1}
    assert found.value == {"exact": 1, "derived": 0.5, "unseen": 0}[grade]


@pytest.mark.parametrize(("threshold", "told"), [(0.5, 0), (0.6, 1)])
def test_values_in_another_form_deviate_where_they_fail_a_run(threshold: float, told: int) -> None:
    """Where nothing is unseen, only they lower the value."""
    found = score(run({"name": "f", "arguments": {"v": "anna müller"}}), derived=0.5, threshold=threshold)

    assert told == len(found.details.get("deviations", ()))


def test_results_count_for_later_calls_alone() -> None:
    """What a call returns was not known when it was made."""
    find = {"name": "find", "arguments": {"id": "k-9"}, "result": {"orders": [{"id": "k-9", "n": 77}]}}
    use = {"name": "use", "arguments": {"id": "k-9", "n": 77}, "result": "ok"}
    assert score(run(find, use)).details["totals"] == {"exact": 2, "derived": 0, "unseen": 1}
    assert score(run(use, find)).details["totals"] == {"exact": 0, "derived": 0, "unseen": 3}


def test_calls_that_ran_at_the_same_time_know_nothing_of_each_other() -> None:
    """A result counts from the end of its call on."""
    first = ToolCall(name="f", arguments={}, result="k-9", span_id=b"1", start_ns=1, end_ns=10)
    during = ToolCall(name="g", arguments={"id": "k-9"}, result="", span_id=b"2", start_ns=9, end_ns=11)
    after = replace(during, start_ns=10)
    assert score(Trajectory(calls=(first, during), user_text=(ASKED,))).value == 0
    assert score(Trajectory(calls=(first, after), user_text=(ASKED,))).value == 1


def test_calls_of_one_turn_know_nothing_of_each_other() -> None:
    """Where times do not tell, the turn does."""
    one = run({"name": "f", "arguments": {}, "result": "k-9"}, {"name": "g", "arguments": {"id": "k-9"}})
    together = replace(one, calls=tuple(replace(call, turn=0) for call in one.calls))
    assert (score(one).value, score(together).value) == (1, 0)


def test_system_text_and_constants_are_sources() -> None:
    """As the user's words are."""
    made = run({"name": "f", "arguments": {"a": "desk-4", "b": "EUR", "c": 10}}, system=("You are desk-4.",))
    assert score(made, constants=[10]).value == 1
    assert score(made).details["totals"] == {"exact": 2, "derived": 0, "unseen": 1}


def test_only_named_tools_and_paths_are_checked() -> None:
    """Globs choose calls and paths; what is ignored is not checked."""
    made = run(
        {"name": "get_a", "arguments": {"id": "x-1", "page": {"limit": 50}}, "result": "ok"},
        {"name": "put", "arguments": {"id": "y"}},
    )
    assert score(made).details["totals"]["unseen"] == 3
    assert score(made, tools=["get_*"]).details["totals"]["unseen"] == 2
    assert score(made, tools=["get_*"], ignore=["*.limit"]).details["totals"]["unseen"] == 1
    assert score(made, arguments=["page.*"]).details["totals"]["unseen"] == 1


def test_the_explanation_names_the_argument_and_tells_the_value_only_where_it_may() -> None:
    """With numbers from which the value can be recomputed."""
    found = score(run({"name": "refund", "arguments": {"order": "R-1", "amount": 400}}))
    counted = "Of 2 values in arguments, 1 were seen before the call, 0 in another form (each counts 1), and 1 not."
    assert (found.value, found.passed) == (0.5, False)
    assert found.explanation == f"{counted} refund.amount: not seen before, got 400 (call 1)."
    assert found.without_content == f"{counted} refund: not seen before (call 1)."
    (deviation,) = found.details["deviations"]
    assert (deviation["kind"], deviation["path"], deviation["actual"]) == ("provenance", "amount", 400)


def test_arguments_that_the_configuration_names_are_told() -> None:
    """Without content, too; every other key is a star, and a path of which no key is named is left out."""
    arguments = {"items": {"k-1": {"sku": "R-8"}}, "amount": 400, "list": ["R-9"]}
    made = run({"name": "refund", "arguments": arguments})

    def reason(*named: str) -> str:
        (row, *_) = score(made, arguments=named).details["deviations"]
        told: str = row["reason"]
        return told

    assert "refund.items.*.sku: not seen before" == reason("items.*.sku")
    assert "refund.amount: not seen before" == reason("am*", "amount")
    assert ["refund: not seen before"] * 3 == [reason("am*"), reason("*"), reason("*.sku")]
    assert "refund.list.*: not seen before" == reason("list.*")


def test_what_may_stand_in_what_was_not_recorded_is_skipped() -> None:
    """A value that is unseen there is not made up for that."""
    made = run({"name": "f", "arguments": {"a": "R-2"}}, user=())
    assert outcome(made) == Skipped("the user's messages were not recorded; unseen values may come from them")
    assert score(made, constants=["R-2"]).value == 1
    blind = run({"name": "f", "arguments": {}}, {"name": "g", "arguments": {"a": "R-2"}})
    assert outcome(blind) == Skipped("the results of 1 call were not recorded; unseen values may come from them")


def test_without_arguments_or_values_there_is_nothing_to_score() -> None:
    """Booleans, null and empty texts are no values."""
    assert outcome(run({"name": "f", "arguments": {"a": True, "b": None, "c": " "}})) == Skipped(
        "there are no values in arguments to check"
    )
    lacking = Trajectory(calls=(ToolCall(name="f"),), user_text=(ASKED,))
    lacking = replace(lacking, completeness=lacking.completeness.of(lacking.calls))
    assert lacking.calls[0].arguments is NOT_RECORDED
    assert outcome(lacking) == Skipped("arguments of 1 call of 'f' were not recorded")


def test_the_value_itself_is_enough_and_earlier_results_may_mend_less() -> None:
    """Where a share is enough, so may further calls anywhere."""
    made = run({"name": "refund", "arguments": {"order": "R-1", "amount": 400}})
    assert [True, False] == [score(made, threshold=threshold).passed for threshold in (0.5, 0.51)]
    assert score(made).mended_by == MendedBy.EARLIER | MendedBy.BETWEEN
    assert score(made, threshold=0.9).mended_by == MendedBy.ANY


def test_wrong_parameters_are_named() -> None:
    """When the configuration is read."""
    with pytest.raises(spanscore.ConfigError, match="derived"):
        spanscore.evaluator("argument_provenance", {"derived": 2})
    with pytest.raises(spanscore.ConfigError, match="tools: at least one"):
        spanscore.evaluator("argument_provenance", {"tools": []})


def test_ten_thousand_calls_that_copy_results_are_scored_in_full() -> None:
    """Of values that are copied whole nothing is looked through."""
    calls = [{"name": "f", "arguments": {"id": f"k-{n}"}, "result": {"id": f"k-{n + 1}"}} for n in range(10_000)]
    assert score(run(*calls, user=("k-0",))).details["totals"] == {"exact": 10_000, "derived": 0, "unseen": 0}


def test_more_than_can_be_looked_through_is_skipped() -> None:
    """Many values that are nowhere, in long texts: a bound ends the search."""
    calls = [{"name": "f", "arguments": {"id": f"k-{n}"}, "result": "x" * 1_000} for n in range(5_000)]
    assert outcome(run(*calls)) == Skipped("there are too many values and texts to look through")
    assert isinstance(outcome(run({"name": "f", "arguments": {"a": "b"}}, user=("x" * (17 << 20),))), Skipped)


def test_it_keeps_the_contract() -> None:
    """As every evaluator."""
    check_evaluator(ArgumentProvenance(constants=("search", 10)))


def test_a_run_with_too_many_values_is_skipped() -> None:
    """Empty ones count, too: a run of 16 MiB may have eight million."""
    calls = [{"name": "send", "arguments": {"to": [None] * 90_000}, "result": None} for _ in range(6)]

    assert outcome(run(*calls)) == Skipped("the arguments have more than 500000 values")
