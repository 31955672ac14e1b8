"""What matchers share while a run is evaluated, and what each of them answers."""

from __future__ import annotations

import pytest

from spanscore.compare.differences import MOST, Described
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.matchers.base import MAX_STEPS, Results
from spanscore.compare.matchers.compiler import matcher


def test_work_is_bounded_for_a_run() -> None:
    """However many calls are compared: the last step that is allowed is taken, the next is not."""
    run = Results()
    run.spend(MAX_STEPS)
    with pytest.raises(TooMuchWorkError, match="more than 1000000 steps"):
        run.spend()


def test_items_in_items_do_not_take_for_ever() -> None:
    """A matcher that looks at each item, in a value of very many, ends at the limit."""
    compiled = matcher({"$one_of": [{"$contains": {"$range": [number, number]}} for number in range(1, 1_000)]})
    with pytest.raises(TooMuchWorkError):
        compiled.differences([0] * 10_000)


def test_mismatches_are_bounded() -> None:
    """The first 20 are told, in words that are no value."""
    found = matcher([{"$type": "string"}] * 100).differences([1] * 100)

    assert MOST == len(found)
    assert isinstance(found[0].expected, Described)
    assert ((0,), "expected string, got 1", "not the expected value") == (
        found[0].path,
        found[0].words,
        found[0].words_without_content,
    )
