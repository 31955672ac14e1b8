from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.steps.parsing import read_pattern
from spanscore.compare.steps.pattern import is_plain, leaves, required


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], 0),
        (["a", ["b"]], 2),
        ([{"any_order": ["a", ["b", "c"]]}], 3),
        ([{"one_of": [["a", "b"], ["c"]]}], 1),
        ([{"optional": ["a", "b"]}], 0),
        ([{"repeat": ["a", "b"], "min": 3}], 6),
        ([{"agent": "x", "steps": ["a"]}], 1),
    ],
)
def test_required(steps: list[Any], expected: int) -> None:
    """The least number of calls."""
    assert required(read_pattern(steps, str).row) == expected


def test_leaves() -> None:
    """The calls in order; those that have to be made together are asked for by how."""
    row = read_pattern(["a", {"parallel": ["b", {"turn": ["c"]}]}, {"optional": ["d"]}], str).row

    assert [leaf.tool.text for leaf in leaves(row)] == ["a", "b", "c", "d"]
    assert [leaf.tool.text for leaf in leaves(row, "parallel")] == ["b", "c"]
    assert [leaf.tool.text for leaf in leaves(row, "turn")] == ["c"]


def test_is_plain() -> None:
    """All calls have to be made, whatever their order."""
    assert is_plain(read_pattern(["a", {"any_order": ["b", ["c"]]}], str).row)
    assert not is_plain(read_pattern(["a", {"any_order": ["a", {"optional": ["b"]}]}], str).row)
