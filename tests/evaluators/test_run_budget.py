"""The budget of a run: calls, tokens, time and cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import spanscore
from spanscore.evaluators.run_budget import RunBudget
from spanscore.model import Completeness, ModelCall, Outcome, Score, Skipped, ToolCall, Trajectory
from spanscore.testing import check_evaluator

CALLS = Trajectory.from_calls([{"name": "f", "duration_ms": 500}, {"name": "g", "duration_ms": 1500}])
RUN = replace(
    CALLS,
    model_calls=(
        ModelCall(model="gpt-4o-2024", input_tokens=1000, output_tokens=200, cache_read_tokens=400),
        ModelCall(model="mini", input_tokens=500, output_tokens=100),
    ),
    start_ns=1,
    end_ns=3_000_000_001,
)
PRICES = {"gpt-4o*": {"input": 2.0, "output": 10.0, "cache_read": 1.0}, "mini": {"input": 1.0, "output": 4.0}}


def outcome(run: Trajectory = RUN, **parameters: Any) -> Outcome:
    """What an evaluator that is built as a configuration builds it says of a run."""
    return spanscore.evaluator("run_budget", parameters).evaluate(run)


def score(run: Trajectory = RUN, **parameters: Any) -> Score:
    """The same where it is a score."""
    answer = outcome(run, **parameters)
    assert isinstance(answer, Score), answer
    return answer


MEASURED = {
    "model_calls": 2,
    "tool_calls": 2,
    "steps": 4,
    "input_tokens": 1500,
    "output_tokens": 300,
    "total_tokens": 1800,
    "duration_s": 3.0,
    "tool_duration_s": 2.0,
    # 600 at 2, 400 at 1, 200 at 10; 500 at 1, 100 at 4; a million each
    "cost": pytest.approx(0.0045),
}


def test_after_a_pause_only_calls_are_known() -> None:
    """What the run took before is in another trace; a limit that this trace exceeds alone is exceeded."""
    resumed = replace(RUN, completeness=Completeness(resumed=True))
    reason = "the run continues after a pause; what it took before is in another trace"
    limits = {name: number for name, number in MEASURED.items() if name not in {"cost", "tool_calls"}}

    assert [Skipped(reason)] * len(limits) == [outcome(resumed, **{name: number}) for name, number in limits.items()]
    assert Skipped(reason) == outcome(resumed, cost=1, prices=PRICES)
    assert not score(resumed, duration_s=2).passed
    assert score(resumed, tool_calls=2).passed


@pytest.mark.parametrize(("name", "number"), [(name, number) for name, number in MEASURED.items() if name != "cost"])
def test_a_limit_itself_is_kept_and_less_is_not(name: str, number: float) -> None:
    """The value is 1 exactly at the limit and 0 where the run takes more."""
    assert score(**{name: number}).value == 1
    assert score(**{name: number - 1}).value == 0


def test_the_details_hold_every_number() -> None:
    """Also of what has no limit."""
    found = score(cost=0.01, prices=PRICES)
    assert (found.value, found.passed) == (1, True)
    assert found.details == {"measured": MEASURED, "limits": {"cost": 0.01}, "exceeded": []}


def test_cost_is_by_the_price_of_each_model() -> None:
    """The cached tokens have their own price, and noise of floating point breaks no limit."""
    assert score(cost=0.0045, prices=PRICES).value == 1
    assert score(cost=0.0044, prices=PRICES).value == 0


def test_a_model_s_own_name_goes_before_globs() -> None:
    """Of globs the first that matches counts."""
    prices = {"*": {"input": 0, "output": 0}, "gpt*": {"input": 9, "output": 9}, "mini": {"input": 2, "output": 0}}
    assert score(cost=1, prices=prices).details["measured"]["cost"] == pytest.approx(0.001)


def test_tokens_of_a_cache_that_input_tokens_leave_out_are_added() -> None:
    """More tokens of a cache than input tokens are no part of these."""
    run = replace(RUN, model_calls=(ModelCall(model="m", input_tokens=10, output_tokens=0, cache_read_tokens=1000),))
    prices = {"m": {"input": 1.0, "output": 1.0, "cache_read": 0.1}}
    assert score(run, cost=1, prices=prices).details["measured"]["cost"] == pytest.approx(110e-6)


def test_all_input_may_be_of_the_cache() -> None:
    """Then nothing of it costs what other input does."""
    run = replace(RUN, model_calls=(ModelCall(model="m", input_tokens=10, output_tokens=0, cache_read_tokens=10),))
    prices = {"m": {"input": 1.0, "output": 1.0, "cache_read": 0.1}}
    assert score(run, cost=1, prices=prices).details["measured"]["cost"] == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        ({"start_ns": 5, "end_ns": 2_000_000_005}, 2.0),
        ({"start_ns": 5, "end_ns": 5}, 0),
        ({"start_ns": 9, "end_ns": 5}, 0),
        ({"start_ns": 5}, None),
        ({"start_ns": 5, "end_ns": 5, "span_id": None}, None),
        ({"start_ns": 5, "end_ns": 1_000_000_005, "span_id": None}, 1.0),
    ],
)
def test_the_duration_of_a_call(call: dict[str, Any], seconds: float | None) -> None:
    """A call that has no span lasts no time that is known; clocks that go backwards take no time."""
    run = replace(RUN, calls=(ToolCall(**{"name": "f", "span_id": b"1"} | call),), start_ns=9, end_ns=5)
    measured = score(run, steps=9).details["measured"]
    assert (seconds, 0) == (measured["tool_duration_s"], measured["duration_s"])


def test_nothing_is_within_no_limit_but_zero() -> None:
    """A run without calls keeps even that."""
    assert score(replace(RUN, calls=()), tool_calls=0, tool_duration_s=0).value == 1


@pytest.mark.parametrize("name", ["cache_write", "cache_creation"])
def test_what_is_written_to_a_cache_has_its_price_by_either_name(name: str) -> None:
    """The conventions have renamed it; both names are of one price."""
    run = replace(RUN, model_calls=(ModelCall(model="m", input_tokens=10, output_tokens=0, cache_creation_tokens=4),))
    prices = {"m": {"input": 1.0, "output": 1.0, name: 10.0}}
    assert score(run, cost=1, prices=prices).details["measured"]["cost"] == pytest.approx(46e-6)


def test_the_explanation_names_what_was_exceeded_with_both_numbers() -> None:
    """And how many limits were kept."""
    found = score(steps=3, total_tokens=1800, duration_s=2.5)
    assert (
        found.explanation == "1 of 3 limits were kept: steps is 4, the limit is 3; duration_s is 3, the limit is 2.5."
    )
    assert found.details["exceeded"] == ["steps", "duration_s"]


@pytest.mark.parametrize(
    ("run", "parameters", "reason"),
    [
        (CALLS, {"model_calls": 1}, "no model calls were recorded"),
        (CALLS, {"input_tokens": 1}, "no model calls were recorded"),
        (CALLS, {"duration_s": 0.5}, "the duration of the run was not recorded"),
        (
            replace(RUN, model_calls=(*RUN.model_calls, ModelCall(model="mini", input_tokens=1))),
            {"total_tokens": 2000},
            "output tokens of 1 of 3 model calls were not recorded",
        ),
        (
            replace(RUN, model_calls=(*RUN.model_calls, ModelCall(model="mini", input_tokens=1))),
            {"output_tokens": 300},
            "output tokens of 1 of 3 model calls were not recorded",
        ),
        (
            replace(RUN, model_calls=(*RUN.model_calls, ModelCall(input_tokens=1, output_tokens=1))),
            {"cost": 1, "prices": PRICES},
            "the models of 1 of 3 model calls were not recorded",
        ),
        (RUN, {"cost": 1, "prices": {"mini": PRICES["mini"]}}, "there is no price for 'gpt-4o-2024'"),
        (
            Trajectory.from_calls([{"name": "f"}]),
            {"tool_duration_s": 1},
            "the durations of 1 of 1 calls were not recorded: 'f'",
        ),
        (
            replace(RUN, completeness=Completeness(truncated=True)),
            {"tool_calls": 2},
            "the trace was cut off by a limit; the part not received may exceed the budget",
        ),
    ],
)
def test_what_was_not_recorded_is_skipped(run: Trajectory, parameters: dict[str, Any], reason: str) -> None:
    """Never a made-up number."""
    assert outcome(run, **parameters) == Skipped(reason)


def test_what_was_recorded_alone_may_exceed_a_limit() -> None:
    """Then nothing that is missing could mend it."""
    run = replace(RUN, model_calls=(*RUN.model_calls, ModelCall()), completeness=Completeness(truncated=True))
    found = score(run, input_tokens=1499, output_tokens=10_000)
    assert (found.value, found.details["exceeded"]) == (0, ["input_tokens"])
    assert found.details["measured"]["input_tokens"] is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "at least one limit is needed: model_calls, .*, tool_duration_s or cost$"),
        ({"cost": 1}, "prices: needed for cost"),
        ({"step": 1}, "steps"),
        ({"steps": -1}, "steps"),
        ({"cost": 1, "prices": {"m": {"input": 1, "output": 1, "cached": 1}}}, "cached"),
        ({"duration_s": float("inf")}, "duration_s"),
        (
            {"cost": 1, "prices": {"m": {"input": 1, "output": 1, "cache_write": 0, "cache_creation": 0}}},
            "cache_write and cache_creation are two names of one price",
        ),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], message: str) -> None:
    """When the configuration is read."""
    with pytest.raises(spanscore.ConfigError, match=message):
        spanscore.evaluator("run_budget", parameters)


def test_it_keeps_the_contract() -> None:
    """As every evaluator."""
    check_evaluator(RunBudget(tool_calls=2, duration_s=1.0))
