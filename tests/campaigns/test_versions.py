"""The campaign of simulated pairs with fewer of them; it is a command of its own for all."""

from __future__ import annotations

import pytest

from campaigns import versions
from spanscore.runs.diff import Verdict

pytestmark = pytest.mark.campaign

PAIRS = 60


def test_where_nothing_changed_few_are_called_worse() -> None:
    """As many as alpha allows, and the rest of what chance may add."""
    for kind in versions.KINDS:
        if not kind.changed and kind.runs == 20 and kind.evaluators < 20:
            verdicts = versions.simulated(kind, PAIRS).verdicts
            assert versions.allowed(PAIRS) >= max(verdicts[Verdict.WORSE], verdicts[Verdict.BETTER]), kind.name


def test_a_fall_from_95_to_70_percent_is_found() -> None:
    """In more than a third of the pairs of 20 runs a side, and in none is it called better."""
    (kind,) = [each for each in versions.KINDS if each.name == "20 runs a side, 95 % to 70 %"]

    verdicts = versions.simulated(kind, PAIRS).verdicts

    assert PAIRS / 3 < verdicts[Verdict.WORSE]
    assert 0 == verdicts[Verdict.BETTER]
