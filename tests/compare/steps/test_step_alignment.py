from __future__ import annotations

from spanscore.compare.alignment import Aligned
from spanscore.compare.steps._candidates import Pair
from spanscore.compare.steps._conditions import CallVerdict
from spanscore.compare.steps.parsing import read_pattern
from spanscore.compare.steps.pattern import leaves
from spanscore.compare.steps.step_alignment import StepAlignment
from spanscore.model import ToolCall


def aligned(
    tools: str, made: str, taken: list[int | None], *, unexpected: str = "", wrong: int | None = None
) -> StepAlignment:
    """Steps, calls, and which call takes which step."""
    steps = list(leaves(read_pattern(list(tools), str).row))
    return StepAlignment(
        pairs=[Pair(leaf, call) for leaf, call in zip(steps, taken, strict=True)],
        calls=[ToolCall(name=name) for name in made],
        compared=range(len(made)),
        unexpected=frozenset(index for index, name in enumerate(made) if name in unexpected),
        takers={index: [leaf for leaf in steps if leaf.tool.text == name] for index, name in enumerate(made)},
        verdict=lambda _leaf, call: CallVerdict("arguments") if call == wrong else CallVerdict(),
    )


def test_rows() -> None:
    """Calls stand in their order, and what is missing where it was to be made."""
    rows, names = aligned("abc", "axc", [0, None, 2], unexpected="x").rows()

    assert names == ["a", "b", "c"]
    assert rows == [Aligned(0, 0, "ok"), Aligned(1, None, "missing"), Aligned(None, 1, "extra"), Aligned(2, 2, "ok")]


def test_counts() -> None:
    """Missing steps, calls with something wrong, and unexpected calls without a step count as one each."""
    found = aligned("abc", "axbx", [0, 2, None], unexpected="axb", wrong=2)

    assert found.missing == 1
    assert found.count == 4
    assert len(list(found.deviations(found.rows()[0]))) == 4


def test_elsewhere() -> None:
    """Each call that was made at another place is told of one missing step."""
    found = aligned("aab", "ba", [None, None, 0])

    assert [row.status for row in found.rows()[0]] == ["order", "missing", "ok", "ignored"]
