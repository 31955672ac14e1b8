from __future__ import annotations

import math
from typing import Any

from spanscore.compare.steps._interleaving import chained, combinations, competing
from spanscore.compare.steps.parsing import read_pattern
from spanscore.compare.steps.pattern import Row, Step, leaves


def members(*steps: Any) -> tuple[Step, ...]:
    """Members of a group."""
    return read_pattern(list(steps), str).row.steps


def tools(steps: list[Step]) -> list[str]:
    """The tools of each step."""
    return ["".join(leaf.tool.text for leaf in leaves(step)) for step in steps]


def test_equal_calls_are_chained() -> None:
    """Of calls that are alike it is no difference which is made first; those with other arguments are not alike.

    A row of one call is that call.
    """
    x = {"call": "a", "args": {"x": 1}}

    assert tools(chained(members("a", "b", [["a"]], ["c", "d"], x, x))) == ["aa", "b", "aa", "cd"]


def test_competing() -> None:
    """Members compete where a call may be of both, also by way of a third."""
    found = competing(members(["a", "b"], ["c"], ["d", "e"], ["b", "d"], [], "x*"))

    assert sorted(sorted(tools(part)) for part in found) == [["ab", "bd", "de"], ["c"], ["x*"]]


def test_agents_do_not_compete() -> None:
    """A call is made by one agent."""
    blocks = members(
        {"agent": "one", "steps": ["a"]}, {"agent": "other", "steps": ["a"]}, {"agent": "o*", "steps": ["b"]}
    )

    assert len(competing(blocks)) == 3


def test_combinations() -> None:
    """The states of rows multiply; of others there may be any number."""
    assert combinations(members("a", ["b", "c"])) == 2 * 3
    assert combinations(members("a", {"repeat": ["b"]})) == math.inf
    assert combinations([Row(())]) == 1
