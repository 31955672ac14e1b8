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
        [{"repeat": ["a"], "min": 2, "max": 2}, "b"],
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
    assert len(graph({"repeat": ["a"], "min": 2, "max": 4}).skips) == 1 + 4 + 1
    assert len(graph({"repeat": ["a"], "min": 3}).skips) == 1 + 2 + 3


MANY = [f"t{index}" for index in range(40)]


@pytest.mark.parametrize(
    ("steps", "is_free", "has_turns"),
    [
        (["a"], True, False),
        ([{"any_order": MANY}], True, False),
        ([{"parallel": ["a", "b"]}], False, False),
        ([{"turn": ["a", "b"]}], False, True),
        ([{"any_order": [{"parallel": ["a"]}, "b"]}], False, False),
        ([{"any_order": [{"turn": ["a"]}, "b"]}], False, True),
        ([{"parallel": [{"turn": ["a"]}, "b"]}], False, True),
        ([{"parallel": ["a"]}, {"any_order": MANY}], False, False),
        ([{"turn": ["a"]}, {"any_order": MANY}], False, True),
    ],
)
def test_what_matters(steps: list[Any], is_free: bool, has_turns: bool) -> None:  # noqa: FBT001
    """Order and turns do not, where no calls have to be made together; a turn is the only thing that has an end."""
    found = graph(*steps)

    assert (is_free, has_turns) == (found.is_free, found.has_turns)


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
