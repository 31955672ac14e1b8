"""The campaign of kept traces, in short; each part is a command of its own for longer ones."""

from __future__ import annotations

import pytest

from campaigns import keep

pytestmark = pytest.mark.campaign


def test_estimates_are_unbiased() -> None:
    """By rule, with samplers in front, traces without a decision, and late spans."""
    found = keep.estimates(400, seed=3)

    assert 9 == len(found.z)
    assert {} == {name: z for name, z in found.z.items() if abs(z) >= keep.HIGHEST_Z}
    assert 0 == found.failing_split


def test_kills_split_and_lose_no_trace() -> None:
    """Whatever is open is sent on whole, or not at all, as its verdict and its randomness say."""
    found = keep.killed(10, seed=5)

    assert (10, 0, 0) == (found.kills, found.lost, found.split)
    assert min(found.kept, found.dropped) > 0
