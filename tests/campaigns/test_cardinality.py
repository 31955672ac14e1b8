"""The campaign of ever new names in its short form."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import cardinality

pytestmark = pytest.mark.campaign

TRACES = 3_000


def test_ever_new_names_make_few_series(tmp_path: Path) -> None:
    """With more tools, agents and services than series, each metric has 2,000 at most, and its sum is exact."""
    outcome = cardinality.run(tmp_path, TRACES)

    assert {TRACES} == set(outcome.sums.values())
    assert TRACES > cardinality.MAX_SERIES >= outcome.most_series
    assert not outcome.failed
