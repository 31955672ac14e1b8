from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.steps.graph import MISSING, Graph, graph_of
from spanscore.compare.steps.parsing import read_pattern
from spanscore.compare.steps.pattern import required


def graph(*steps: Any) -> Graph:
    """The graph of steps."""
    return graph_of(read_pattern(list(steps), str).row)


@pytest.mark.parametrize(
    "steps",
    [
        ["a", "b"],
        [{"any_order": ["a", "b", {"optional": ["c"]}]}],
        [{"any_order": [f"t{index}" for index in range(500)]}],
        [{"one_of": [["a", "b"], ["c"]]}],
        [{"repeat": ["a", "b"], "min": 3, "max": 7}],
        [{"repeat": ["a"], "min": 0}, {"repeat": [], "min": 5}],
        [{"parallel": ["a", ["b", "c"]]}],
    ],
)
def test_cost_without_calls(steps: list[Any]) -> None:
    """Without any call, as many steps are missing as are required at least."""
    found = graph(*steps)

    assert found.costs[found.end] == MISSING * required(read_pattern(steps, str).row)


def test_states() -> None:
    """Equal members are counted, those apart are not multiplied, and those that compete for calls are."""
    assert len(graph({"any_order": ["a"] * 500}).skips) == 501
    assert len(graph({"any_order": [f"t{index}" for index in range(500)]}).skips) == 2
    assert len(graph({"any_order": [["a", "b"], ["a", "c"]]}).skips) == 9


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        (["a", {"any_order": [{"call": "a", "args": {"x": index}} for index in range(13)]}], "steps[1]"),
        ([{"repeat": ["a", "b"], "max": 5_000}], "steps[0]"),
        ([{"repeat": ["a"], "max": 4_900}, *["b"] * 200], "steps"),
        ([{"any_order": [["a"] * 68, ["a"] * 68]}, *["b"] * 200], "steps"),
        ([{"optional": [{"repeat": [{"repeat": ["a"], "max": 100}], "max": 100}]}], "steps[0].optional[0].repeat[0]"),
    ],
)
def test_too_many_states(steps: list[Any], path: str) -> None:
    """A pattern that could explode is refused, with the reason."""
    with pytest.raises(ValueError, match="makes more than 5000 states") as caught:
        graph(*steps)

    assert str(caught.value).startswith(f"{path}: ")


def test_together_among_competitors() -> None:
    """What has to be made together cannot stand where another member may take its calls."""
    with pytest.raises(ValueError, match=r"^steps\[0\]\.any_order\[0\]: 'turn' cannot stand in a member"):
        graph({"any_order": [{"turn": ["a", "b"]}, ["a", "c"]]})
