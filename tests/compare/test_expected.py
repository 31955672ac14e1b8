from __future__ import annotations

from spanscore.compare.expected import cut_off, numbered, unrecorded_arguments, unrecorded_results
from spanscore.compare.names import exact, sanitized
from spanscore.model import Completeness, Skipped, ToolCall, Trajectory

LOST = Completeness(arguments_recorded=False, results_recorded=False)
CALLS = (
    ToolCall(name="a", arguments={}, result="x"),
    ToolCall(name="b"),
    ToolCall(name="c", error="declined"),
    ToolCall(name="b"),
)


def test_keys_are_counted_by_name() -> None:
    """Each name counts for itself, from 0."""
    assert ["a_0", "b_0", "a_1", "a_2"] == [*numbered(["a", "b", "a", "a"])]


def test_arguments_that_are_lacking() -> None:
    """Only those of the tools that are looked at; the sentence has their number and names."""
    run = Trajectory(calls=CALLS, completeness=LOST)

    assert unrecorded_arguments(run, exact, {"a"}) is None
    assert Skipped("arguments of 2 calls of 'b' were not recorded") == unrecorded_arguments(run, exact, {"a", "b"})
    assert Skipped("arguments of 1 call of 'c' were not recorded") == unrecorded_arguments(run, exact, {"c"})


def test_results_that_are_lacking() -> None:
    """A call that failed has none, and where results are recorded a call without one returned nothing."""
    run = Trajectory(calls=CALLS, completeness=LOST)

    assert unrecorded_results(run, exact, {"a", "c"}) is None
    assert Skipped("results of 2 calls of 'b' were not recorded") == unrecorded_results(run, exact, {"a", "b", "c"})
    assert unrecorded_results(Trajectory(calls=CALLS), exact, {"b"}) is None


def test_names_are_normalised() -> None:
    """A tool is looked at by the name that the evaluator compares."""
    run = Trajectory(calls=(ToolCall(name="web search"),), completeness=LOST)

    assert unrecorded_arguments(run, sanitized, {"web_search"}) is not None
    assert unrecorded_results(run, sanitized, {"web_search"}) is not None
    assert unrecorded_results(run, exact, {"web_search"}) is None


def test_what_is_missing_of_a_trace_that_was_cut_off() -> None:
    """It may be in the part that was not received; where nothing is missing, or nothing was cut off, all is known."""
    cut = Trajectory(calls=CALLS, completeness=Completeness(truncated=True))

    reason = "the trace was cut off by a limit; what is missing (2) may be in the part not received"
    assert (Skipped(reason), None) == (cut_off(cut, 2), cut_off(cut, 0))
    assert cut_off(Trajectory(calls=CALLS), 2) is None
