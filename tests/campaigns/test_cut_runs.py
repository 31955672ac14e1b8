"""The campaign of recorded runs that are cut, in its short form."""

from __future__ import annotations

import pytest

from campaigns import cut_runs
from corpora import NAMES

pytestmark = pytest.mark.campaign


def test_labels_of_both_parts() -> None:
    """They are those of the whole run or skipped, but for the known limits; nine of ten where the messages tell."""
    found = cut_runs.cut_all(NAMES[::8])

    assert ([], 0) == (found.wrong, sum(count for (kind, *_), count in found.differing.items() if kind == "first"))
    assert found.parts.total() > 50
    assert found.parts["unknown"] < found.parts.total() / 4
    assert found.labels_told["skipped"] < found.labels_told.total() / 10
