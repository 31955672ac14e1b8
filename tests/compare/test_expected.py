from __future__ import annotations

from collections.abc import Callable

import pytest

from spanscore.compare.expected import UnrecordedError, need_arguments, need_missing, need_results, numbered
from spanscore.compare.names import exact, sanitized
from spanscore.model import Completeness, ToolCall, Trajectory

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

    need_arguments(run, exact, {"a"})
    with pytest.raises(UnrecordedError, match=r"^arguments of 2 calls of 'b' were not recorded$"):
        need_arguments(run, exact, {"a", "b"})
    with pytest.raises(UnrecordedError, match=r"^arguments of 1 call of 'c' were not recorded$"):
        need_arguments(run, exact, {"c"})


def test_results_that_are_lacking() -> None:
    """A call that failed has none, and where results are recorded a call without one returned nothing."""
    run = Trajectory(calls=CALLS, completeness=LOST)

    need_results(run, exact, {"a", "c"})
    need_results(Trajectory(calls=CALLS), exact, {"b"})
    with pytest.raises(UnrecordedError, match=r"^results of 2 calls of 'b' were not recorded$"):
        need_results(run, exact, {"a", "b", "c"})


@pytest.mark.parametrize("need", [need_arguments, need_results])
def test_names_are_normalised(need: Callable[..., None]) -> None:
    """A tool is looked at by the name that the evaluator compares."""
    run = Trajectory(calls=(ToolCall(name="web search"),), completeness=LOST)

    need(run, exact, {"web_search"})
    with pytest.raises(UnrecordedError):
        need(run, sanitized, {"web_search"})


def test_what_is_missing_of_a_trace_that_was_cut_off() -> None:
    """It may be in the part that was not received; where nothing is missing, or nothing was cut off, all is known."""
    cut = Trajectory(calls=CALLS, completeness=Completeness(truncated=True))

    need_missing(cut, 0)
    need_missing(Trajectory(calls=CALLS), 2)
    with pytest.raises(UnrecordedError, match=r"^the trace was cut off by a limit; missing calls \(2\) may be in"):
        need_missing(cut, 2)
