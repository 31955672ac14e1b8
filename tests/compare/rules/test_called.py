from __future__ import annotations

from spanscore.compare.names import canonical, exact
from spanscore.compare.rules.called import CalledTools, named
from spanscore.model import ToolCall, Trajectory

RUN = Trajectory(
    calls=(
        ToolCall(name="A", result="x"),
        ToolCall(name="b", error="timeout"),
        ToolCall(name="c"),
        ToolCall(name="a", error="timeout"),
    ),
    tool_definitions={"WebSearch": {}},
)


def test_calls_that_failed_may_not_count() -> None:
    """Then neither in order nor by name; that they failed is known, and so are their names."""
    every, kept = (CalledTools(RUN, canonical, ignore_failed=ignored) for ignored in (False, True))

    assert ([0, 1, 2, 3], [0, 2]) == (list(every.order), list(kept.order))
    assert {"a": [0, 3], "b": [1], "c": [2]} == {name: list(calls) for name, calls in every.called.items()}
    assert {"a": [0], "c": [2]} == kept.called
    assert {1, 3} == every.failed == kept.failed
    assert ("a", "b", "c", "a") == every.names == kept.names


def test_calls_of_tools_that_match() -> None:
    """In the order in which they were made, of all tools; a name is normalised, and a glob is not."""
    run = CalledTools(RUN, canonical)

    assert [0, 2, 3] == run.where(lambda name: name in "ac")
    assert [] == run.where(named(canonical, "x*"))
    assert [1] == run.where(named(canonical, "B"))
    assert [0, 1, 2, 3] == run.where(named(canonical, "?"))


def test_declared_tools_are_normalised() -> None:
    """As the calls are."""
    assert {"web_search"} == CalledTools(RUN, canonical).declared
    assert {"WebSearch"} == CalledTools(RUN, exact).declared


def test_results_are_found_by_normalised_names() -> None:
    """Matchers look for those of a tool."""
    assert [("a", "x")] == list(CalledTools(RUN, canonical).matching.results[:1])
